package tokenizer

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// TestUnicodeForms compares the normal forms with the library's, for every character below
// U+30000, beyond which nothing is composed, and for mixtures with fewer marks in a row than it
// cuts.
func TestUnicodeForms(t *testing.T) {
	pool := []rune("aqeoiAU1 \u0301\u0323\u0308\u0328\u0345\u0300\u093C\u0F71\u0F72\u1100\u1161" +
		"\u11A8\uAC00\u09C7\u09BE\u1E9B\uFB01\u212B\u00C5\u0958\u2126\uFDFA\u3099\u304B\U0001D15E" +
		"水가각\u05D0\u05B7\u0CC6\u0CD5\u0CC2")
	rng := rand.New(rand.NewPCG(1, 2))
	for kind, f := range unicodeForms {
		check := func(text string) {
			t.Helper()
			got, want := string(appendUnicode(nil, []byte(text), kind)), f.form.String(text)
			if got != want {
				t.Fatalf("%s of %+q is %+q, want %+q", kind, text, got, want)
			}
			if len(got) > f.growth*len(text) {
				t.Fatalf("%s makes %d bytes of %d", kind, len(got), len(text))
			}
		}
		for r := rune(0); r < 0x30000; r++ {
			if utf8.ValidRune(r) {
				check(string(r))
			}
		}
		for range 5000 {
			var text strings.Builder
			for range 1 + rng.IntN(12) {
				text.WriteRune(pool[rng.IntN(len(pool))])
			}
			check(text.String())
		}
	}
}

// TestManyMarks: the library would put a joiner into long runs of marks.
func TestManyMarks(t *testing.T) {
	marks := strings.Repeat("\u0301\u0323", 40)
	sorted := strings.Repeat("\u0323", 40) + strings.Repeat("\u0301", 40)
	for kind, want := range map[string]string{
		normalNFD: "a" + sorted, normalNFC: "\u1EA1" + sorted[len("\u0323"):],
	} {
		got := string(appendUnicode(nil, []byte("xa"+marks+"y\xff\u0301"), kind))
		if want := "x" + want + "y\xff\u0301"; got != want {
			t.Errorf("%s: %+q, want %+q", kind, got, want)
		}
	}
	if norm.NFC.String("a"+marks) == string(appendUnicode(nil, []byte("a"+marks), normalNFC)) {
		t.Error("the library no longer cuts long runs: appendUnicode can be replaced by it")
	}
}
