package tokenizer

import (
	"cmp"
	"slices"
	"unicode"
	"unicode/utf8"
)

// special is a token that is added or control.
type special struct {
	id    uint32
	kind  kind
	flags flags
}

// flags describe the search for a special token in a text, in the terms of the tokenizers library.
type flags uint8

const (
	lstrip     flags = 1 << iota // it swallows the white space before it
	rstrip                       // it swallows the white space after it
	singleWord                   // it counts only where no letter, number, mark or "_" touches it
	normalized                   // it is searched for in the normalized text
	uncut                        // never searched for: only the model or a template produces it
	// it is searched for in the normalized text, but is not itself normalized (SentencePiece's
	// user-defined pieces)
	frozen
	// it is not a token of the model, which would otherwise find it too
	outside
)

// has reports whether any of the flags is set.
func (f flags) has(any flags) bool { return f&any != 0 }

// with returns f with the flag, if set.
func (f flags) with(flag flags, set bool) flags {
	if set {
		return f | flag
	}
	return f &^ flag
}

// cutter finds special tokens in a text: the leftmost first, the longest among those at one place.
type cutter struct {
	patterns *prefixes
	// of the tokens that the patterns stand for; nil: the patterns are the tokens
	ids      []uint32
	specials []special // by id
}

// found is a special token in a text.
type found struct {
	id       uint32
	from, to int // the token, with the white space that it swallows
	// the search continues here: swallowed white space may be the beginning of another token
	next int
}

// find returns the next special token at or after search. The text before done is used already; the
// text between search and done is white space that the last token has swallowed.
func (c *cutter) find(text string, search, done int) (found, bool) {
	if c.patterns.empty() {
		return found{}, false
	}
	for i := search; i < len(text); {
		if b := text[i]; c.patterns.first[b] == c.patterns.first[int(b)+1] { // nearly always
			i++
			continue
		}
		sp, length := c.at(text[i:])
		if sp == nil {
			i++
			continue
		}
		end := i + length
		if sp.flags.has(singleWord) && (touchesBefore(text[:i]) || touchesAfter(text[end:])) {
			i = end
			continue
		}
		f := found{id: sp.id, from: i, to: end, next: end}
		if sp.flags.has(lstrip) {
			f.from = max(done, blankBefore(text, i, done))
		}
		if sp.flags.has(rstrip) {
			f.to = blankAfter(text, max(end, done))
		}
		return f, true
	}
	return found{}, false
}

// at returns the longest special token that text begins with, and the length of its pattern; or
// nil.
func (c *cutter) at(text string) (*special, int) {
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
		return nil, 0
	}
	id := c.patterns.ids[best]
	if c.ids != nil {
		id = c.ids[id]
	}
	return findSpecial(c.specials, id), len(c.patterns.key(best))
}

// findSpecial returns the special token of an id, or nil.
func findSpecial(list []special, id uint32) *special {
	i, ok := slices.BinarySearchFunc(list, id, func(sp special, id uint32) int {
		return cmp.Compare(sp.id, id)
	})
	if !ok {
		return nil
	}
	return &list[i]
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

// isWord is \w of Unicode's regular expressions (UTS 18, annex C): alphabetic, marks, decimal
// digits, connectors and the two joiners.
func isWord(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsMark(r) ||
		unicode.In(r, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic,
			unicode.Join_Control,
			unicode.Other_Lowercase, unicode.Other_Uppercase))
}

// overlap reports whether two special tokens that are sought in different passes can compete for
// the same characters: then the order of the passes decides. More than compared pairs of bytes are
// taken to overlap.
func (t *Tokenizer) overlap() bool {
	var length [2]int
	for _, sp := range t.specials {
		if sp.flags.has(normalized) {
			length[1] += len(t.lex.text(sp.id))
		} else {
			length[0] += len(t.lex.text(sp.id))
		}
	}
	const compared = 1 << 22 // pairs of bytes
	if length[0]*length[1] > compared {
		return true
	}
	for _, one := range t.specials {
		for _, other := range t.specials {
			if one.flags.has(normalized) || !other.flags.has(normalized) {
				continue
			}
			if a, b := t.lex.text(one.id), t.lex.text(other.id); meet(a, b) || meet(b, a) {
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
