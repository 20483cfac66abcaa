package tokenizer

import (
	"slices"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The four normal forms of Unicode, as kinds of normalStep.
const (
	normalNFC  = "nfc"
	normalNFD  = "nfd"
	normalNFKC = "nfkc"
	normalNFKD = "nfkd"
)

// unicodeForms are the normal forms by kind. growth is the greatest factor by which a form makes a
// text longer (Unicode Standard Annex 15, section "Maximum expansion").
var unicodeForms = map[string]struct {
	form     norm.Form
	growth   int
	composes bool
}{
	normalNFC: {norm.NFC, 3, true}, normalNFD: {norm.NFD, 3, false},
	normalNFKC: {norm.NFKC, 11, true}, normalNFKD: {norm.NFKD, 11, false},
}

// appendUnicode appends text in a normal form. The library alone would not do: it inserts a
// combining grapheme joiner into runs of more than 30 marks (the Stream-Safe Text Format), which no
// tokenizer does. It is used for what is in normal form already, which is nearly everything, and
// for the tables. Bytes that are no UTF-8 stay.
func appendUnicode(dst, text []byte, kind string) []byte {
	f := unicodeForms[kind]
	var run []rune
	for len(text) > 0 {
		done := f.form.QuickSpan(text)
		// a boundary that is none: the library ends a run of marks
		for done > 0 && done < len(text) && !f.form.Properties(text[done:]).BoundaryBefore() {
			_, width := utf8.DecodeLastRune(text[:done])
			done -= width
		}
		dst = append(dst, text[:done]...)
		if text = text[done:]; len(text) == 0 {
			break
		}
		n := 0
		for n < len(text) && (n == 0 || !f.form.Properties(text[n:]).BoundaryBefore()) {
			r, width := utf8.DecodeRune(text[n:])
			if r == utf8.RuneError && width == 1 {
				break
			}
			run = appendDecomposed(run, text[n:n+width], f.form)
			n += width
		}
		sortMarks(run)
		if f.composes {
			run = composeRun(run)
		}
		for _, r := range run {
			dst = utf8.AppendRune(dst, r)
		}
		run = run[:0]
		if n == 0 { // no UTF-8
			dst, n = append(dst, text[0]), 1
		}
		text = text[n:]
	}
	return dst
}

// The syllables of Hangul are composed of their letters by arithmetic (The Unicode Standard 15.0,
// section 3.12).
const (
	hangulL, hangulLs = 0x1100, 19 // the first leading letter, and how many there are
	hangulV, hangulVs = 0x1161, 21
	hangulT, hangulTs = 0x11A7, 28 // counted from no trailing letter at all
	hangulS           = 0xAC00
)

// appendDecomposed appends the decomposition of one character.
func appendDecomposed(dst []rune, char []byte, form norm.Form) []rune {
	r, _ := utf8.DecodeRune(char)
	if s := r - hangulS; s >= 0 && s < hangulLs*hangulVs*hangulTs {
		dst = append(dst, hangulL+s/(hangulVs*hangulTs), hangulV+s%(hangulVs*hangulTs)/hangulTs)
		if t := s % hangulTs; t > 0 {
			dst = append(dst, hangulT+t)
		}
		return dst
	}
	parts := form.Properties(char).Decomposition()
	if parts == nil {
		return append(dst, r)
	}
	return append(dst, []rune(string(parts))...)
}

// combining returns the canonical combining class; 0 for a character that marks do not cross.
func combining(r rune) uint8 {
	if r < 0x300 { // nearly always
		return 0
	}
	return norm.NFC.PropertiesString(string(r)).CCC()
}

// sortMarks puts each run of marks into canonical order.
func sortMarks(run []rune) {
	for i := 0; i < len(run); i++ {
		from := i
		for i < len(run) && combining(run[i]) != 0 {
			i++
		}
		if i-from > 1 {
			slices.SortStableFunc(run[from:i], func(a, b rune) int {
				return int(combining(a)) - int(combining(b))
			})
		}
	}
}

// composeRun joins the characters of a run that are in canonical order, in place.
func composeRun(run []rune) []rune {
	out, starter, last := run[:0], -1, uint8(0)
	for _, r := range run {
		class := combining(r)
		// a mark of the same or a higher class in between blocks
		if starter >= 0 && (starter == len(out)-1 || last < class) {
			if both, ok := compose(out[starter], r); ok {
				out[starter] = both
				continue
			}
		}
		if class == 0 {
			starter = len(out)
		}
		last = class
		out = append(out, r)
	}
	return out
}

// compose returns the character that two make, if there is one.
func compose(a, b rune) (rune, bool) {
	l, v, t := a-hangulL, b-hangulV, b-hangulT
	switch s := a - hangulS; {
	case l >= 0 && l < hangulLs && v >= 0 && v < hangulVs:
		return hangulS + (l*hangulVs+v)*hangulTs, true
	case s >= 0 && s < hangulLs*hangulVs*hangulTs && s%hangulTs == 0 && t > 0 && t < hangulTs:
		return a + t, true
	}
	var pair, joined [2 * utf8.UTFMax]byte
	both := norm.NFC.Append(joined[:0], utf8.AppendRune(utf8.AppendRune(pair[:0], a), b)...)
	r, width := utf8.DecodeRune(both)
	return r, width == len(both)
}
