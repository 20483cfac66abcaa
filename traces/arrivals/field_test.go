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
		_, _, err = text(file+c.bad+"\n", Options{SkipBad: 1})
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
