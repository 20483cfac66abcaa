package tokenizer

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

// standardJSON is how encoding/json writes a value, which the hashes of old documents are of.
func standardJSON(t *testing.T, v any) string {
	t.Helper()
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// written returns the output of use.
func written(use func(*documentWriter)) string {
	var out bytes.Buffer
	w := documentWriter{to: &out}
	w.encoder = json.NewEncoder(&w.encoded)
	w.encoder.SetEscapeHTML(false)
	use(&w)
	w.flush()
	return out.String()
}

func FuzzQuoting(f *testing.F) {
	for r := range rune(0x180) {
		f.Add("a" + string(r) + "b")
	}
	for _, s := range append(familyTexts(f), "\u2028", "a\u2029b\u2028", strings.Repeat("é\x01",
		3*writerPiece), strings.Repeat("\u2028", writerPiece)) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			return
		}
		if got, want := written(func(w *documentWriter) { w.quoted(s) }), standardJSON(t,
			s); got != want {
			t.Errorf("%.200q, encoding/json writes %.200q", got, want)
		}
		if got, want := written(func(w *documentWriter) { w.quoted(s, " ", s) }), standardJSON(t,
			s+" "+s); got != want {
			t.Errorf("in parts: %.200q, encoding/json writes %.200q", got, want)
		}
	})
}

func TestListsAreWrittenAsTheStandardLibraryDoes(t *testing.T) {
	scores := []float64{0, -1.5, 1e21, 1e-7, -3.0000001, math.NaN(), 5}
	var want []any
	for _, s := range scores {
		if math.IsNaN(s) {
			want = append(want, nil)
		} else {
			want = append(want, s)
		}
	}
	want = append(want, nil)
	got := written(func(w *documentWriter) {
		w.open("{")
		w.scores("a", scores, len(scores)+1)
		w.numbers("b", []uint32{0, 7, math.MaxUint32})
		w.numbers("c", nil)
		w.end("}")
	})
	if want := standardJSON(t, map[string]any{"a": want, "b": []uint32{0, 7, math.MaxUint32},
		"c": []int{}}); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
