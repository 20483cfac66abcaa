package tokenizer

import (
	"cmp"
	"slices"
	"strings"
)

// prefixes finds which strings of a set a text begins with. It is a sorted list that narrows with every byte of the
// text, so it holds no more than the strings themselves: a trie of hostile strings could be many times as large.
type prefixes struct {
	keys  []string
	ids   []uint32   // of keys
	first [257]int32 // the keys that begin with byte b are first[b] to first[b+1]
}

// prefixKey is one string of the set.
type prefixKey struct {
	text string
	id   uint32
}

// newPrefixes sorts keys, none of them empty. Of equal ones the first counts.
func newPrefixes(keys []prefixKey) *prefixes {
	sorted := slices.Clone(keys)
	slices.SortStableFunc(sorted, func(a, b prefixKey) int { return cmp.Compare(a.text, b.text) })
	p := &prefixes{}
	for _, k := range sorted {
		if n := len(p.keys); n > 0 && p.keys[n-1] == k.text {
			continue
		}
		p.keys, p.ids = append(p.keys, k.text), append(p.ids, k.id)
		p.first[k.text[0]]++ // counted here, summed up below
	}
	sum := int32(0)
	for b, n := range p.first {
		p.first[b] = sum
		sum += n
	}
	return p
}

// empty reports whether no text can begin with a key.
func (p *prefixes) empty() bool { return len(p.keys) == 0 }

// find returns the id of a key.
func (p *prefixes) find(key string) (uint32, bool) {
	i, ok := slices.BinarySearch(p.keys, key)
	if !ok {
		return 0, false
	}
	return p.ids[i], true
}

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
		if len(w.p.keys[w.lo]) == w.depth {
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

// narrow leaves the keys whose byte at depth is b. All of them are longer than depth.
func (w *walk) narrow(b byte) {
	keys, depth := w.p.keys, w.depth
	w.depth++
	if w.hi-w.lo == 1 { // the most frequent case by far
		key := keys[w.lo]
		if rest := key[depth:]; strings.HasPrefix(w.text[depth:], rest) {
			w.depth = len(key)
			return
		}
		w.lo = w.hi
		return
	}
	lo, hi := w.lo, w.hi
	for lo < hi {
		if mid := int(uint(lo+hi) / 2); keys[mid][depth] < b {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	w.lo, hi = lo, w.hi
	for lo < hi {
		if mid := int(uint(lo+hi) / 2); keys[mid][depth] <= b {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	w.hi = lo
}
