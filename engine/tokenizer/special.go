package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// special is a token that is added or control.
type special struct {
	id    uint32
	text  string
	kind  kind
	flags flags
}

// flags say how a special token is found in a text, in the words of the tokenizers library.
type flags struct {
	lstrip     bool // it swallows the white space before it
	rstrip     bool // it swallows the white space after it
	singleWord bool // it counts only where no letter, number, mark or "_" touches it
	normalized bool // it is sought in the normalized text
	uncut      bool // it is never sought: only the model or a template puts it there
	frozen     bool // it is sought in the normalized text, but is not itself normalized (SentencePiece's user-defined pieces)
	outside    bool // it is not a token of the model, which would otherwise know it too
}

// cutter finds special tokens in a text: the leftmost first and of those the longest.
type cutter struct {
	patterns *prefixes
	specials []special // by the ids of patterns, which are positions in this list
}

// newCutter makes a cutter; pattern says what to look for.
func newCutter(list []special, pattern func(special) string) *cutter {
	keys := make([]prefixKey, 0, len(list))
	for i, sp := range list {
		if text := pattern(sp); text != "" {
			keys = append(keys, prefixKey{text, uint32(i)})
		}
	}
	return &cutter{newPrefixes(keys), list}
}

// found is a special token in a text.
type found struct {
	id       uint32
	from, to int // what it takes, with the white space that it swallows
	next     int // where the search goes on: white space that was swallowed may be the beginning of another
}

// find returns the next special token at or after search. Everything before done is taken already, and what is between
// search and done is white space that the last token has swallowed.
func (c *cutter) find(text string, search, done int) (found, bool) {
	if c.patterns.empty() {
		return found{}, false
	}
	for i := search; i < len(text); {
		if b := text[i]; c.patterns.first[b] == c.patterns.first[int(b)+1] { // nearly always
			i++
			continue
		}
		sp, length, ok := c.at(text[i:])
		if !ok {
			i++
			continue
		}
		end := i + length
		if sp.flags.singleWord && (touchesBefore(text[:i]) || touchesAfter(text[end:])) {
			i = end
			continue
		}
		f := found{id: sp.id, from: i, to: end, next: end}
		if sp.flags.lstrip {
			f.from = max(done, blankBefore(text, i, done))
		}
		if sp.flags.rstrip {
			f.to = blankAfter(text, max(end, done))
		}
		return f, true
	}
	return found{}, false
}

// at returns the longest special token that text begins with, and the length of its pattern.
func (c *cutter) at(text string) (special, int, bool) {
	best := -1
	w := c.patterns.walk(text)
	for {
		key, ok := w.next()
		if !ok {
			break
		}
		best = key
	}
	if best < 0 {
		return special{}, 0, false
	}
	return c.specials[c.patterns.ids[best]], len(c.patterns.keys[best]), true
}

// blankBefore returns where the white space that ends at end begins, not before from.
func blankBefore(text string, end, from int) int {
	for end > from {
		r, width := utf8.DecodeLastRuneInString(text[from:end])
		if !unicode.IsSpace(r) {
			break
		}
		end -= width
	}
	return end
}

// blankAfter returns where the white space that begins at from ends.
func blankAfter(text string, from int) int {
	for from < len(text) {
		r, width := utf8.DecodeRuneInString(text[from:])
		if !unicode.IsSpace(r) {
			break
		}
		from += width
	}
	return from
}

func touchesBefore(text string) bool {
	r, width := utf8.DecodeLastRuneInString(text)
	return width > 0 && isWord(r)
}

func touchesAfter(text string) bool {
	r, width := utf8.DecodeRuneInString(text)
	return width > 0 && isWord(r)
}

// isWord is \w of Unicode's regular expressions (UTS 18, annex C): alphabetic, marks, decimal digits, connectors and the
// two joiners.
func isWord(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsMark(r) ||
		unicode.In(r, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic, unicode.Join_Control,
			unicode.Other_Lowercase, unicode.Other_Uppercase))
}

// overlap reports whether two special tokens that are sought in different passes can compete for the same characters:
// then the order of the passes decides. More than compared pairs of bytes are taken to overlap.
func overlap(list []special) bool {
	var byPass [2][]string
	var length [2]int
	for _, sp := range list {
		pass := 0
		if sp.flags.normalized {
			pass = 1
		}
		byPass[pass] = append(byPass[pass], sp.text)
		length[pass] += len(sp.text)
	}
	const compared = 1 << 22 // pairs of bytes
	if length[0]*length[1] > compared {
		return true
	}
	for _, a := range byPass[0] {
		for _, b := range byPass[1] {
			if meet(a, b) || meet(b, a) {
				return true
			}
		}
	}
	return false
}

// meet reports whether b begins inside a and agrees with it as far as both go.
func meet(a, b string) bool {
	for i := range len(a) {
		n := min(len(a)-i, len(b))
		if a[i:i+n] == b[:n] {
			return true
		}
	}
	return false
}
