package tokenizer

import (
	"cmp"
	"slices"
	"sort"
	"strings"
)

// prefixes finds the strings of a set that a text begins with. It is a sorted list that narrows
// with every byte of the text, so it holds only a number for each string: a trie of hostile strings
// could be many times as large.
type prefixes struct {
	texts *lexicon
	ids   []uint32   // of the strings in texts, sorted by them
	first [257]int32 // the strings that begin with byte b are first[b] to first[b+1]
}

// newPrefixes makes the set of the texts of ids, none of them empty. The first among equals counts.
// It keeps ids.
func newPrefixes(texts *lexicon, ids []uint32) *prefixes {
	p := &prefixes{texts: texts, ids: ids}
	slices.SortStableFunc(p.ids, func(a, b uint32) int {
		return cmp.Compare(texts.text(a),
			texts.text(b))
	})
	p.ids = slices.CompactFunc(p.ids, func(a, b uint32) bool {
		return texts.text(a) == texts.text(b)
	})
	for _, id := range p.ids {
		p.first[texts.text(id)[0]]++ // counted here, summed up below
	}
	sum := int32(0)
	for b, n := range p.first {
		p.first[b] = sum
		sum += n
	}
	return p
}

// empty reports whether no text can begin with a string of the set.
func (p *prefixes) empty() bool { return len(p.ids) == 0 }

// key returns the i-th string in order.
func (p *prefixes) key(i int) string { return p.texts.text(p.ids[i]) }

// walk is the search for the keys that one text begins with, the shortest first.
type walk struct {
	p      *prefixes
	text   string
	lo, hi int // the keys that agree with the first depth bytes of text
	depth  int
}

// walk begins a search; text is not empty.
func (p *prefixes) walk(text string) walk {
	b := text[0]
	return walk{p: p, text: text, lo: int(p.first[b]), hi: int(p.first[int(b)+1]), depth: 1}
}

// next returns the number of the next key.
func (w *walk) next() (key int, ok bool) {
	for w.lo < w.hi {
		if len(w.p.key(w.lo)) == w.depth {
			w.lo++
			return w.lo - 1, true
		}
		if w.depth == len(w.text) {
			break
		}
		w.narrow(w.text[w.depth])
	}
	return 0, false
}

// narrow keeps the keys with the byte b at depth. All of them are longer than depth.
func (w *walk) narrow(b byte) {
	depth := w.depth
	w.depth++
	if w.hi-w.lo == 1 { // the most frequent case by far
		key := w.p.key(w.lo)
		if rest := key[depth:]; strings.HasPrefix(w.text[depth:], rest) {
			w.depth = len(key)
			return
		}
		w.lo = w.hi
		return
	}
	n := w.hi - w.lo
	from := sort.Search(n, func(i int) bool { return w.p.key(w.lo + i)[depth] >= b })
	to := sort.Search(n, func(i int) bool { return w.p.key(w.lo + i)[depth] > b })
	w.lo, w.hi = w.lo+from, w.lo+to
}
