package arrivals

import (
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
)

// words is the tokenizer of the tests: a token is what stands between blanks.
func words(text string) int { return len(strings.Fields(text)) }

// all reads to the end and returns what there was before the error.
func all(r *Reader) (list []Request, err error) {
	for {
		var req Request
		if err := r.Next(&req); err == io.EOF {
			return list, nil
		} else if err != nil {
			return list, err
		}
		list = append(list, req)
	}
}

// text reads a file that is only a string.
func text(s string, o Options) ([]Request, Stats, error) {
	r, err := New(strings.NewReader(s), "x", o)
	if err != nil {
		return nil, Stats{}, err
	}
	list, err := all(r)
	return list, r.Stats(), err
}

// fixture reads a file of testdata without an error.
func fixture(t *testing.T, name string, o Options) ([]Request, Stats) {
	t.Helper()
	r, err := Open(t.Context(), filepath.Join("testdata", name), o)
	if err != nil {
		t.Fatal(err)
	}
	list, err := all(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return list, r.Stats()
}

// at returns the times of requests in seconds.
func at(list []Request) (seconds []float64) {
	for _, r := range list {
		seconds = append(seconds, r.At.Seconds())
	}
	return seconds
}

func TestFormats(t *testing.T) {
	ms := units.Millisecond
	for _, c := range []struct {
		file   string
		format Format
		want   []Request
		stats  Stats
	}{
		{"burstgpt.csv", BurstGPT, []Request{{Prompt: 310, Output: 25}, {At: 24500 * ms, Prompt: 88,
			Output: 402}, {At: 53000 * ms, Prompt: 12, Output: 1}},
			Stats{Lines: 5, Skipped: map[Reason]int64{NoOutput: 1, NoPrompt: 1}, SingleToken: 1,
				Ignored: []string{"Model", "Total tokens", "Log Type"}}},
		{"burstgpt-sessions.csv", BurstGPT, []Request{{Prompt: 100, Output: 20, Session: "6f1c-a"},
			{At: 3000 * ms, Prompt: 40, Output: 9}, {At: 20000 * ms, Prompt: 160, Output: 30,
				Session: "6f1c-a"}},
			Stats{Lines: 3, Ignored: []string{"Elapsed time", "Model", "Total tokens",
				"Log Type"}}},
		{"mooncake.jsonl", Mooncake, []Request{{Prompt: 1300, Output: 210},
			{Prompt: 700, Output: 1}, {At: 3001 * ms, Prompt: 512, Output: 44}},
			Stats{Lines: 3, SingleToken: 1, Ignored: []string{"hash_ids"}}},
		{"vidur.csv", Vidur, []Request{{Prompt: 1200, Output: 10}, {At: 52 * ms, Prompt: 900,
			Output: 8}, {At: 98189 * units.Microsecond, Prompt: 64, Output: 27}},
			Stats{Lines: 3, Ignored: []string{}}},
	} {
		for _, format := range []Format{Detect, c.format} {
			list, stats := fixture(t, c.file, Options{Format: format})
			c.stats.Format, c.stats.Requests = c.format, int64(len(c.want))
			if c.stats.Skipped == nil {
				c.stats.Skipped = map[Reason]int64{}
			}
			if !reflect.DeepEqual(list, c.want) || !reflect.DeepEqual(stats, c.stats) {
				t.Errorf("%s: got %+v\n%+v\nwant %+v\n%+v", c.file, list, stats, c.want, c.stats)
			}
		}
	}
}

// TestTimesBeginAtTheFirstRequest: the clock of the file does not matter, nor what was left out
// before the first request.
func TestTimesBeginAtTheFirstRequest(t *testing.T) {
	list, _, err := text("Timestamp,Request tokens,Response tokens\n5,1,0\n19440110.25,10,2\n"+
		"19440111,10,2\n", Options{})
	if err != nil || !slices.Equal(at(list), []float64{0, 0.75}) {
		t.Errorf("%v, %v", at(list), err)
	}
}

// TestMooncakeLines: any JSON is read that says what is wanted once, and nothing else is.
func TestMooncakeLines(t *testing.T) {
	good := ` {"a\"b": "}{,\\", "n": {"timestamp": [9, {"x": "]"}]}, "output_length":3 , "input_length" : 2,"timestamp": 1.5} `
	list, stats, err := text("{\"timestamp\":0.25,\"input_length\":1,\"output_length\":1}\n"+good+
		"\n", Options{Format: Mooncake})
	if err != nil || len(list) != 2 || list[1] != (Request{At: 1250 * units.Microsecond, Prompt: 2,
		Output: 3}) || len(stats.Ignored) != 0 {
		t.Errorf("%+v, %+v, %v", list, stats, err)
	}
	for line, want := range map[string]Reason{
		`{"timestamp":0,"input_length":1,"output_length":1`: NotJSON,
		`[0, 1, 1]`: NotJSON,
		`{"timestamp":0,"input_length":1,"output_length":1}{}`:                 NotJSON,
		`{"timestamp":0,"input_length":1}`:                                     Blank,
		`{"timestamp":null,"input_length":1,"output_length":1}`:                Blank,
		`{"timestamp":"0","input_length":1,"output_length":1}`:                 NotANumber,
		`{"timestamp":0,"input_length":1e3,"output_length":1}`:                 Exponent,
		`{"timestamp":0,"input_length":1.0,"output_length":1}`:                 Fraction,
		`{"timestamp":0,"input_length":-1,"output_length":1}`:                  Negative,
		`{"timestamp":0,"input_length":[1],"output_length":1}`:                 NotANumber,
		`{"timestamp":0,"input_length":1,"output_length":1,"input_length":2}`:  TwiceKey,
		`{"timestamp":9223372036854775807,"input_length":1,"output_length":1}`: TooLarge,
	} {
		_, _, err := text("{\"timestamp\":0,\"input_length\":1,\"output_length\":1}\n"+line,
			Options{})
		bad, ok := errors.AsType[*LineError](err)
		if !ok || bad.Reason != want || bad.Line != 2 {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

// TestRefusedFiles: what is no trace at all is said at once, with what to do.
func TestRefusedFiles(t *testing.T) {
	long := strings.Repeat("x", 100)
	for _, c := range []struct {
		text   string
		format Format
		kind   error
		says   string
	}{
		{"", Detect, ErrFormat, "empty"},
		{"\xef\xbb\xbf", Vidur, ErrFormat, "empty"},
		{"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", Detect,
			ErrUnsupported, "git lfs pull"},
		{"\x1f\x8b\x08\x00", Azure2024, ErrUnsupported, "gzip -dc"},
		{"<!DOCTYPE html>\n", Detect, ErrUnsupported, "web page"},
		{"a\x00b\n", Detect, ErrUnsupported, "not text"},
		{"PK\x03\x04", Detect, ErrUnsupported, "unpack"},
		{"\xff\xfea\x00", Detect, ErrUnsupported, "UTF-16"},
		{long + "\n", Detect, ErrFormat, long[:60] + "…"},
		{"0.0,1,2\n", Vidur, ErrFormat, "no column arrived_at"},
		{"num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio\n1,2,3,0.5\n", Detect,
			ErrFormat, "no arrivals"},
		{"arrived_at,num_prefill_tokens\n", Detect, ErrFormat, "no column num_decode_tokens"},
		{"arrived_at,num_prefill_tokens,arrived_at,num_decode_tokens\n", Detect, ErrFormat,
			"arrived_at is there twice"},
		{"arrived_at,num_prefill_tokens,num_decode_tokens,\"x\n", Detect, ErrFormat, "open quote"},
		{"[]", Detect, ErrUnsupported, "tokenizer"},
		{"{}", "splitwise", nil, "azure-2023"},
	} {
		_, _, err := text(c.text, Options{Format: c.format})
		if err == nil || c.kind != nil && !errors.Is(err, c.kind) || !strings.Contains(err.Error(),
			c.says) || !strings.HasPrefix(err.Error(), "arrivals: ") {
			t.Errorf("%.40q: %v, want %q", c.text, err, c.says)
		}
	}
	if _, err := Open(t.Context(), filepath.Join(t.TempDir(), "none"), Options{}); !errors.Is(err,
		os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := Open(t.Context(), t.TempDir(), Options{}); err == nil {
		t.Error("a folder was opened")
	}
}

// TestErrorsOfTheFileSystem keep their kind, wherever they come, and stay.
func TestErrorsOfTheFileSystem(t *testing.T) {
	broken := errors.New("cable")
	head := "arrived_at,num_prefill_tokens,num_decode_tokens\n" + strings.Repeat("1,2,3\n", 20_000)
	for _, o := range []Options{{}, {Sort: true}, {SkipBad: 1 << 30}} {
		r, err := New(io.MultiReader(strings.NewReader(head), failing{broken}), "x", o)
		if err != nil {
			t.Fatal(err)
		}
		_, err = all(r)
		var req Request
		if again := r.Next(&req); !errors.Is(err, broken) || again != err {
			t.Errorf("%v, then %v", err, again)
		}
	}
	if _, err := New(failing{broken}, "x", Options{}); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

// failing is a file that cannot be read.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// TestSort: the requests of a shuffled file in order, equal times in the order of the file, from 0.
func TestSort(t *testing.T) {
	const head = "arrived_at,num_prefill_tokens,num_decode_tokens\n"
	list, stats, err := text(head+"9,1,1\n5,2,1\n7,3,4\n5,4,1\nx,1,1\n5,0,1\n", Options{Sort: true,
		SkipBad: 1})
	want := []Request{{Prompt: 2, Output: 1}, {Prompt: 4, Output: 1}, {At: 2 * units.Second,
		Prompt: 3, Output: 4}, {At: 4 * units.Second, Prompt: 1, Output: 1}}
	if err != nil || !slices.Equal(list, want) {
		t.Errorf("%+v, %v", list, err)
	}
	if stats.Requests != 4 || stats.SingleToken != 3 || stats.Bad != 1 || stats.Lines != 6 {
		t.Errorf("%+v", stats)
	}
	if list, _, err := text(head, Options{Sort: true}); err != nil || list != nil {
		t.Errorf("no lines: %v, %v", list, err)
	}
	if _, _, err := text(head+"1,1,1\n1,1,x\n", Options{Sort: true}); !errors.Is(err, ErrFormat) {
		t.Errorf("a bad line: %v", err)
	}
}

// TestSortIsBounded: beyond the bound sorting is refused, and what to do instead is said.
func TestSortIsBounded(t *testing.T) {
	r, err := New(newRows(1001), "x", Options{Sort: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.sort(1000); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(),
		"than the 1000 requests") {
		t.Errorf("%v", err)
	}
	if r, err = New(newRows(1000), "x", Options{Sort: true}); err != nil {
		t.Fatal(err)
	}
	if s, err := r.sort(1000); err != nil || len(s.list) != 1000 {
		t.Errorf("as many as there may be: %v", err)
	}
}

// TestLongLines are bad, and the line behind one is read.
func TestLongLines(t *testing.T) {
	head := "arrived_at,num_prefill_tokens,num_decode_tokens,x\n"
	long := "1,1,1," + strings.Repeat("y", 3*MaxLine)
	list, stats, err := text(head+long+"\n2,2,2,\n"+long, Options{SkipBad: 2})
	if err != nil || len(list) != 1 || list[0].Prompt != 2 || stats.Skipped[LongLine] != 2 ||
		stats.Lines != 3 {
		t.Errorf("%+v, %+v, %v", list, stats, err)
	}
	fits := "1,1,1," + strings.Repeat("y", MaxLine-20)
	if list, _, err := text(head+fits, Options{}); err != nil || len(list) != 1 {
		t.Errorf("a line that fits: %v", err)
	}
}

// TestQuotes: a table may have quotes around any field.
func TestQuotes(t *testing.T) {
	head := "\"arrived_at\",note,\"num_prefill_tokens\",num_decode_tokens\n"
	list, _, err := text(head+"\"1.5\",\"a, \"\"b\"\"\",\"7\",8\n", Options{})
	if err != nil || len(list) != 1 || list[0].Prompt != 7 || list[0].Output != 8 {
		t.Errorf("%+v, %v", list, err)
	}
	for _, line := range []string{`1,"a,7,8`, `1,"a"b,7,8`, `"1`, `1,"a"",7,8`} {
		if _, _, err := text(head+line, Options{}); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// TestShareGPTErrors: bad JSON ends the reading, a conversation of the wrong types may be left out.
func TestShareGPTErrors(t *testing.T) {
	talk := `{"id": "a", "conversations": [{"from": "human", "value": "b"}, {"from": "gpt", "value": "c"}]}`
	o := Options{Count: words, SkipBad: 1}
	list, stats, err := text("["+talk+`, {"conversations": [{"from": 3}]}, `+talk+"]\n", o)
	if err != nil || len(list) != 2 || stats.Skipped[WrongType] != 1 || stats.Bad != 1 ||
		stats.Lines != 3 {
		t.Errorf("%+v, %+v, %v", list, stats, err)
	}
	for text1, says := range map[string]string{
		"[" + talk:               "conversation 1: the file is cut off",
		"[" + talk + `, {"id": `: "conversation 2: the file is cut off",
		"[" + talk + "] []":      "there is more",
		"[" + talk + "}":         "conversation 1: not JSON",
		"[" + talk + ", {]":      "conversation 2: not JSON",
	} {
		if _, _, err := text(text1, o); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(),
			says) {
			t.Errorf("%s: %v, want %q", text1, err, says)
		}
	}
	if _, _, err := text(`{"a": 1}`, Options{Format: ShareGPT, Count: words}); !errors.Is(err,
		ErrFormat) {
		t.Errorf("no list: %v", err)
	}
	for _, n := range []int{-1, math.MaxInt, MaxTokens} {
		o := Options{Count: func(string) int { return n }}
		if bad, ok := errors.AsType[*LineError](second(text("["+talk+"]", o))); !ok ||
			bad.Reason != TooLarge {
			t.Errorf("a tokenizer that counts %d: no error", n)
		}
	}
}

func second(_ []Request, _ Stats, err error) error { return err }

// TestLongConversation: no string, however long, fills the memory.
func TestLongConversation(t *testing.T) {
	if testing.Short() {
		t.Skip("decodes 64 MiB")
	}
	endless := io.MultiReader(strings.NewReader(`[{"id": "`), &repeat{})
	r, err := New(endless, "x", Options{Count: words})
	if err != nil {
		t.Fatal(err)
	}
	var req Request
	if err := r.Next(&req); !errors.Is(err, ErrUnsupported) {
		t.Errorf("%v", err)
	}
}

// repeat is an endless row of one letter.
type repeat struct{}

func (repeat) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'a'
	}
	return len(b), nil
}
