package tokenizer

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// words splits a text with the scanner.
func words(text string) []string {
	var out []string
	for text != "" {
		n := wordLen(text)
		out = append(out, text[:n])
		text = text[n:]
	}
	return out
}

// plainWords is the split pattern as one can read it: Go's regexp for all alternatives but the one
// that looks ahead.
func plainWords(text string) []string {
	const s = `\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}`
	words := regexp.MustCompile(`^(?:'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^` + s +
		`\p{L}\p{N}]+)`)
	white := regexp.MustCompile(`^[` + s + `]+`)
	var out []string
	for text != "" {
		m := words.FindString(text)
		if m == "" {
			m = white.FindString(text)
			if _, last := utf8.DecodeLastRuneInString(m); len(m) < len(text) && last < len(m) {
				m = m[:len(m)-last] // \s+(?!\S)
			}
		}
		out = append(out, m)
		text = text[len(m):]
	}
	return out
}

func TestField_T1_WhiteSpaceBeforeAWord(t *testing.T) {
	for text, want := range map[string]string{
		"a  b":               "a| | b",
		"a   b":              "a|  | b",
		"\n\n x":             "\n\n| x",
		"a\t\tb":             "a|\t|\t|b",
		"\u3000\u3000x":      "\u3000|\u3000|x",
		" \u3000x":           " |\u3000|x",
		"x  ":                "x|  ",
		"x \n":               "x| \n",
		" ":                  " ",
		"he'll DON'T 's 'sx": "he|'ll| DON|'|T| '|s| '|sx",
		"'s'S":               "'s|'|S",
		"12 345a":            "12| 345|a",
		"!'s":                "!'|s",
		"e\u0301":            "e|\u0301",
		"\xff\xfe a":         "\xff\xfe| a",
	} {
		if got := strings.Join(words(text), "|"); got != want {
			t.Errorf("%q is cut into %q, want %q", text, got, want)
		}
	}
}

func FuzzScan(f *testing.F) {
	for _, v := range readVectors(f).Opt {
		f.Add(v.Text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			text = strings.ToValidUTF8(text, "\uFFFD")
		}
		if got, want := words(text), plainWords(text); !slices.Equal(got, want) {
			t.Errorf("%q is cut into %q, the pattern cuts it into %q", text, got, want)
		}
	})
}
