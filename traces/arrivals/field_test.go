package arrivals

import (
	"bytes"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
)

// Field case W1: Windows line ends, no newline at the end, fractions of seven digits; the same
// arrivals as vidur writes them.
func TestField_W1_Azure2023(t *testing.T) {
	data, err := os.ReadFile("testdata/azure-2023.csv")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Count(data, []byte("\r\n")) != 3 || bytes.HasSuffix(data, []byte("\n")) {
		t.Fatal("the fixture has lost its line ends")
	}
	list, stats := fixture(t, "azure-2023.csv", Options{})
	if stats.Format != Azure2023 || !slices.Equal(at(list), []float64{0, 0.052, 0.098189}) {
		t.Errorf("%s at %v", stats.Format, at(list))
	}
	if vidur, _ := fixture(t, "vidur.csv", Options{}); !reflect.DeepEqual(list, vidur) {
		t.Errorf("%+v\nand of vidur %+v", list, vidur)
	}
	// The mark that Excel puts first changes nothing, and neither do plain line ends and one at the
	// end.
	plain := "\xef\xbb\xbf" + strings.ReplaceAll(string(data), "\r\n", "\n") + "\n"
	if again, _, err := text(plain, Options{}); err != nil || !reflect.DeepEqual(list, again) {
		t.Errorf("%+v, %v", again, err)
	}
}

// Field case W2: a zone, whole seconds without a fraction between others, and outputs of one token.
func TestField_W2_Azure2024(t *testing.T) {
	list, stats := fixture(t, "azure-2024.csv", Options{})
	want := []float64{0, 0.499999, 0.5, 0.5, 86400.5} // across the leap day
	if stats.Format != Azure2024 || !slices.Equal(at(list), want) {
		t.Errorf("%s at %v, want %v", stats.Format, at(list), want)
	}
	if stats.SingleToken != 2 || stats.Skipped[NoOutput] != 1 || stats.Lines != 6 ||
		stats.Requests != 5 {
		t.Errorf("%+v", stats)
	}
	// The column that the multimodal trace of 2025 adds is named, not dropped in silence.
	list, stats, err := text("TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n"+
		"2025-01-01 00:00:00+00:00,3,10,2\n", Options{})
	if err != nil || len(list) != 1 || !slices.Equal(stats.Ignored, []string{"NumImages"}) {
		t.Errorf("%+v, %+v, %v", list, stats, err)
	}
	// One trace in the layout of the other is refused, whoever says so.
	for _, c := range []struct {
		file   string
		format Format
	}{{"azure-2024.csv", Azure2023}, {"azure-2023.csv", Azure2024}} {
		r, err := Open(t.Context(), "testdata/"+c.file, Options{Format: c.format})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		_, err = all(r)
		if bad, ok := errors.AsType[*LineError](err); !ok || bad.Line != 2 ||
			bad.Reason != BadTime {
			t.Errorf("%s as %s: %v", c.file, c.format, err)
		}
	}
}

// Field case W5: conversations that are none are left out and counted; those of several turns stay
// whole.
func TestField_W5_ShareGPT(t *testing.T) {
	list, stats := fixture(t, "sharegpt.json", Options{Count: words, Sort: true})
	want := []Request{
		{Prompt: 5, Output: 7, Session: "two", Turn: 1},
		{Prompt: 5 + 7 + 3, Output: 2, History: 5 + 7, Session: "two", Turn: 2},
		{Prompt: 2 + 3, Output: 1, Session: "77", Turn: 1},
	}
	if !slices.Equal(list, want) {
		t.Errorf("got %+v\nwant %+v", list, want)
	}
	skipped := map[Reason]int64{Empty: 2, OneTurn: 1, GPTFirst: 1, NullValue: 1, EmptyMessage: 1,
		UnknownRole: 1, Unanswered: 1}
	if !reflect.DeepEqual(stats.Skipped, skipped) || stats.Lines != 9 || stats.Bad != 0 ||
		stats.SingleToken != 1 {
		t.Errorf("%+v", stats)
	}
}

// Field case W7: lines that a lenient reader would take for something else. Each is refused with
// its number and why, each can be left out and is counted then, and no number is ever changed to
// fit.
func TestField_W7_BadLines(t *testing.T) {
	const vidur = "arrived_at,num_prefill_tokens,num_decode_tokens\n"
	const azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
	for _, c := range []struct {
		head, good, bad string
		want            Reason
		field           string
	}{
		{vidur, "2,10,3", "1.5,10,3", Unsorted, ""},
		{vidur, "2,10,3", "2,-10,3", Negative, "num_prefill_tokens"},
		{vidur, "2,10,3", "-1,10,3", Negative, "arrived_at"},
		// what clipping the sum of both to a maximum gives
		{vidur, "2,10,3", "2,10,-7", Negative, "num_decode_tokens"},
		{vidur, "2,10,3", "2,NaN,3", NotANumber, "num_prefill_tokens"},
		{vidur, "2,10,3", "nan,10,3", NotANumber, "arrived_at"},
		{vidur, "2,10,3", "inf,10,3", NotANumber, "arrived_at"},
		{vidur, "2,10,3", "2,10,+3", NotANumber, "num_decode_tokens"},
		{vidur, "2,10,3", "2,,3", Blank, "num_prefill_tokens"},
		{vidur, "2,10,3", ",10,3", Blank, "arrived_at"},
		{vidur, "2,10,3", "2, ,3", Blank, "num_prefill_tokens"},
		{vidur, "2,10,3", "", Blank, ""},
		{vidur, "2,10,3", "2,1e3,3", Exponent, "num_prefill_tokens"},
		{vidur, "2,10,3", "2e0,10,3", Exponent, "arrived_at"},
		{vidur, "2,10,3", "2,1.5E+3,3", Exponent, "num_prefill_tokens"},
		{vidur, "2,10,3", `2,"1,000",3`, Separator, "num_prefill_tokens"},
		{vidur, "2,10,3", `"1,234.5",10,3`, Separator, "arrived_at"},
		{vidur, "2,10,3", "2,1 000,3", Separator, "num_prefill_tokens"},
		{vidur, "2,10,3", "2,1\u00a0000,3", Separator, "num_prefill_tokens"},
		{vidur, "2,10,3", "2,12'345'678,3", Separator, "num_prefill_tokens"},
		{vidur, "2,10,3", "2,1_000,3", Separator, "num_prefill_tokens"},
		{vidur, "2,10,3", "2,1,000,3", Fields, ""},
		{vidur, "2,10,3", "2,10", Fields, ""},
		{vidur, "2,10,3", "2,10.0,3", Fraction, "num_prefill_tokens"},
		{vidur, "2,10,3", "2,2147483648,3", TooLarge, "num_prefill_tokens"},
		{vidur, "2,10,3", "2,99999999999999999999,3", TooLarge, "num_prefill_tokens"},
		{vidur, "2,10,3", "9223372037,10,3", TooLarge, "arrived_at"},
		{azure, "2023-11-16 18:17:03.9799600,10,3", "2023-11-16 18:17:03.9799599,10,3", Unsorted,
			""},
		{azure, "2023-11-16 18:17:03.9799600,10,3", "2023-11-31 18:17:03.9799600,10,3", BadTime,
			"TIMESTAMP"},
		{azure, "2023-11-16 18:17:03.9799600,10,3", "2023-11-16T18:17:04Z,10,3", BadTime,
			"TIMESTAMP"},
		{azure, "2023-11-16 18:17:03.9799600,10,3", "1700158624,10,3", BadTime, "TIMESTAMP"},
		{azure, "2023-11-16 18:17:03.9799600,10,3", ",10,3", Blank, "TIMESTAMP"},
		{azure, "2024-05-10 00:00:00+00:00,10,3", "2024-05-10 02:00:00+02:00,10,3", BadTime,
			"TIMESTAMP"},
	} {
		file := c.head + c.good + "\n" + c.bad + "\n" + c.good + "\n"
		_, _, err := text(file, Options{})
		bad, ok := errors.AsType[*LineError](err)
		if !ok || !errors.Is(err, ErrFormat) || bad.Line != 3 || bad.Reason != c.want ||
			bad.Field != c.field || !strings.Contains(err.Error(), "x: line 3: ") {
			t.Errorf("%q: %v, want line 3: %s %q", c.bad, err, c.field, c.want)
			continue
		}
		list, stats, err := text(file, Options{SkipBad: 1})
		if err != nil || len(list) != 2 || list[0].Prompt != 10 || list[1] != list[0] {
			t.Errorf("%q left out: %+v, %v", c.bad, list, err)
		}
		if stats.Bad != 1 || stats.Skipped[c.want] != 1 || stats.Lines != 3 || stats.Requests != 2 {
			t.Errorf("%q left out: %+v", c.bad, stats)
		}
		_, _, err = text(file+c.bad+"\n"+c.good+"\n", Options{SkipBad: 1})
		if bad, ok := errors.AsType[*LineError](err); !ok || bad.Line != 5 || bad.Before != 1 {
			t.Errorf("%q twice: %v", c.bad, err)
		}
		if c.want == Unsorted {
			list, stats, err := text(file, Options{Sort: true})
			if err != nil || len(list) != 3 || list[1].At == 0 || list[1].At > units.Second ||
				stats.Bad != 0 {
				t.Errorf("%q sorted: %+v, %v", c.bad, list, err)
			}
		}
	}
}

// Field cases A7 and N38: compressed files and tables of other forms are named, with the command.
func TestField_A7_N38_Packed(t *testing.T) {
	for head, says := range map[string]string{
		"\x28\xb5\x2f\xfd \x73": "zstd -dc x > unpacked-x", "\x1f\x8b\x08": "gzip -dc",
		"\xfd7zXZ\x00\x00\x04": "xz -dc", "BZh91AY&SY\x1a": "bzip2 -dc",
		"\x04\x22\x4d\x18": "lz4 -dc", "PAR1\x15\x04": "duckdb -c", "ARROW1\x00\x00": "Arrow file",
	} {
		for _, f := range append(Formats(), Detect) {
			_, _, err := text(head, Options{Format: f, Count: words})
			if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), says) {
				t.Errorf("%q as %q: %v, want %q", head, f, err, says)
			}
		}
	}
}

// Field case N30: the same keys for times in seconds and in milliseconds. The other keys say which,
// and where they do not, the file is refused.
func TestField_N30_SecondsWithMooncakesKeys(t *testing.T) {
	list, stats := fixture(t, "bailian.jsonl", Options{})
	if want := []float64{0, 1.098, 61}; !slices.Equal(at(list), want) ||
		stats.Format != Bailian || list[2].Prompt != 900 || list[2].Output != 132 ||
		!slices.Equal(stats.Ignored, []string{"chat_id", "parent_chat_id", "type", "turn",
			"hash_ids"}) {
		t.Errorf("%v, %+v, %+v", at(list), list, stats)
	}
	if list, stats := fixture(t, "mooncake.jsonl", Options{}); stats.Format != Mooncake ||
		!slices.Equal(at(list), []float64{0, 0, 3.001}) {
		t.Errorf("%v, %+v", at(list), stats)
	}
	for _, c := range []struct{ text, says string }{
		// Someone dropped the keys that tell.
		{`{"timestamp": 0, "input_length": 2, "output_length": 3}` + "\n" +
			`{"timestamp": 1.5, "input_length": 2, "output_length": 3}`, "line 2: timestamp 1.5"},
		{`{"timestamp": 1.25, "input_length": 2, "output_length": 3, "hash_ids": []}`,
			"milliseconds"},
		{`{"session_id": "a", "timestamp": 1, "input_length": 2, "output_length": 3}`,
			`the keys "session_id", "timestamp"`},
		{`{"arrival": 1, "input_length": 2, "output_length": 3}`, `"arrival"`},
		{`{"timestamp": 1, "model": "a", "input_length": 2, "output_length": 3, "turn": 1}`,
			`"model"`},
	} {
		_, _, err := text(c.text, Options{})
		if !errors.Is(err, ErrUnknown) || !errors.Is(err, ErrFormat) ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.text, err, c.says)
		}
	}
	// Whoever says what it is, is believed.
	for f, want := range map[Format]units.Nanos{Mooncake: 1500 * units.Microsecond,
		Bailian: 1500 * units.Millisecond} {
		list, _, err := text(`{"timestamp": 0, "who": 1, "input_length": 2, "output_length": 3}`+
			"\n"+`{"timestamp": 1.5, "input_length": 2, "output_length": 3}`, Options{Format: f})
		if err != nil || len(list) != 2 || list[1].At != want {
			t.Errorf("%s: %+v, %v", f, list, err)
		}
	}
	// Whole milliseconds that a program wrote as decimals are whole.
	if list, _, err := text(`{"timestamp": 27.0, "input_length": 2, "output_length": 3}`,
		Options{}); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}

// Field case N37: blank lines at the end are no data, whatever they are made of. Others are bad.
func TestField_N37_BlankEnd(t *testing.T) {
	const csv = "Timestamp,Model,Request tokens,Response tokens\n"
	for head, line := range map[string]string{csv: "5,x,472,18\n",
		"": `{"timestamp": 0, "input_length": 10, "output_length": 5}` + "\n"} {
		want, stats, err := text(head+line, Options{})
		if err != nil || len(want) != 1 {
			t.Fatalf("%+v, %v", want, err)
		}
		for _, end := range []string{"\n", "\n\n\n", "\r\n\r\n", "  \n", "\t", " ",
			strings.Repeat("\n", 1000)} {
			got, again, err := text(head+line+end, Options{})
			if err != nil || !slices.Equal(got, want) || !reflect.DeepEqual(stats, again) {
				t.Errorf("%q: %+v, %+v, %v", end, got, again, err)
			}
		}
		first := int64(strings.Count(head+line, "\n")) + 1
		for _, blanks := range []int{1, 3} {
			between := head + line + strings.Repeat("\n", blanks) + line + "\n"
			_, _, err := text(between, Options{SkipBad: blanks - 1})
			bad, ok := errors.AsType[*LineError](err)
			if !ok || bad.Reason != Blank || bad.Line != first+int64(blanks)-1 {
				t.Errorf("%d between: %v", blanks, err)
			}
			got, stats, err := text(between, Options{SkipBad: blanks})
			if err != nil || len(got) != 2 || stats.Skipped[Blank] != int64(blanks) ||
				stats.Lines != int64(2+blanks) {
				t.Errorf("%d left out: %+v, %+v, %v", blanks, got, stats, err)
			}
		}
		// What is behind them counts its lines from the top of the file.
		_, _, err = text(head+line+"\n\n"+strings.Repeat("x", MaxLine+1)+"\n"+line,
			Options{SkipBad: 2})
		if bad, ok := errors.AsType[*LineError](err); !ok || bad.Reason != LongLine ||
			bad.Line != first+2 {
			t.Errorf("a long line behind blank ones: %v", err)
		}
	}
	for _, file := range []string{"\n", " \n\n", csv + "\n\n"} {
		if list, _, err := text(file, Options{Format: BurstGPT}); len(list) != 0 ||
			file[0] != 'T' && !strings.Contains(err.Error(), "empty") {
			t.Errorf("%q: %+v, %v", file, list, err)
		}
	}
}

// Field case W3: failed requests are left out, or kept on demand, and counted either way. What
// asks nothing is never kept.
func TestField_W3_KeepFailed(t *testing.T) {
	list, stats := fixture(t, "burstgpt.csv", Options{})
	kept, with := fixture(t, "burstgpt.csv", Options{KeepFailed: true})
	if len(kept) != len(list)+1 || kept[1].Prompt != 1501 || kept[1].Output != 0 ||
		kept[1].At != 12*units.Second {
		t.Errorf("%+v", kept)
	}
	if stats.Skipped[NoOutput] != 1 || stats.Failed != 0 || with.Skipped[NoOutput] != 0 ||
		with.Failed != 1 || with.Skipped[NoPrompt] != 1 || with.Requests != stats.Requests+1 {
		t.Errorf("%+v\n%+v", stats, with)
	}
}

// Field case W6: whoever misses a column is told which there are.
func TestField_W6_ColumnsFound(t *testing.T) {
	for _, c := range []struct {
		text   string
		format Format
		says   []string
	}{
		{"TIMESTAMP,ContextTokens\n2023-11-16 18:17:03.9799600,4808\n", Detect,
			[]string{"no column GeneratedTokens", `"TIMESTAMP", "ContextTokens"`}},
		{"time,prompt,\"output, all\"\n1,2,3\n", Detect,
			[]string{`"time", "prompt", "output, all"`, "burstgpt has Timestamp", "vidur has"}},
		{"num_prefill_tokens,num_decode_tokens\n1,2\n", Detect,
			[]string{"arrived_at", `"num_prefill_tokens", "num_decode_tokens"`}},
		{"arrived_at,a\x1b[31m\n1,2\n", Vidur, []string{`a\x1b[31m`}},
		{strings.Repeat("a,", 100) + "a\n", Detect, []string{"and 81 more"}},
	} {
		_, _, err := text(c.text, Options{Format: c.format})
		if !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		for _, says := range c.says {
			if !strings.Contains(err.Error(), says) {
				t.Errorf("%q: %v, want %q", c.text, err, says)
			}
		}
	}
}
