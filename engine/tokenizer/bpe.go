package tokenizer

import (
	"strings"
	"unicode/utf8"
)

const (
	shortWord   = 24      // bytes up to which the quadratic loop beats the heap (BenchmarkMerge)
	cachedBytes = 64      // longest word that the cache keeps
	cachedWords = 1 << 14 // words in the cache, which is emptied when full: about 2 MB
)

// encoder is the working memory of appendWord.
type encoder struct {
	symbols []uint32
	ranks   []uint32
	list    linked
	words   map[string]span // cache: word → its ids in arena
	arena   []uint32
}

// span is a part of the arena.
type span struct{ from, to int32 }

// appendWord appends the ids of one word. The result depends on the word alone, so it is cached.
func (t *Tokenizer) appendWord(dst []uint32, word string) []uint32 {
	if t.model.bytes && len(word) == 1 && t.base[word[0]] != noToken {
		return append(dst, t.base[word[0]])
	}
	e := &t.bpe
	if at, ok := e.words[word]; ok {
		return append(dst, e.arena[at.from:at.to]...)
	}
	from := len(dst)
	dst = t.appendNewWord(dst, word)
	if len(word) <= cachedBytes {
		e.keep(word, dst[from:])
	}
	return dst
}

// appendNewWord is appendWord without the cache.
func (t *Tokenizer) appendNewWord(dst []uint32, word string) []uint32 {
	if t.uni != nil {
		return t.appendUnigram(dst, word)
	}
	if t.spec.Model.IgnoreMerges {
		if id, ok := t.wordToken(word); ok {
			return append(dst, id)
		}
	}
	e := &t.bpe
	e.symbols = t.appendSymbols(e.symbols[:0], word)
	if len(e.symbols) <= shortWord {
		return append(dst, t.mergeShort(e.symbols)...)
	}
	return append(dst, t.mergeLong(e.symbols)...)
}

// wordToken returns the token of a whole word, if the model has it.
func (t *Tokenizer) wordToken(word string) (uint32, bool) {
	var short [128]byte
	spelling := short[:0]
	if t.model.bytes {
		for i := range len(word) {
			spelling = utf8.AppendRune(spelling, byteRune(word[i]))
		}
	} else {
		spelling = append(spelling, word...)
	}
	id, ok := t.lex.findBytes(spelling)
	if !ok || t.kinds[id] != merged && t.special(id).flags.has(outside) {
		return noToken, false
	}
	return id, true
}

// appendSymbols appends the symbols to merge: the tokens of a word's bytes or, for a model over
// characters, of its characters.
func (t *Tokenizer) appendSymbols(dst []uint32, word string) []uint32 {
	if t.model.bytes {
		for i := range len(word) {
			if id := t.base[word[i]]; id != noToken {
				dst = append(dst, id)
			}
		}
		return dst
	}
	unknown := false
	for i := 0; i < len(word); {
		r, width := utf8.DecodeRuneInString(word[i:])
		id, ok := t.wordToken(word[i : i+width])
		ok = ok && (r != utf8.RuneError || width > 1)
		switch {
		case ok:
			dst = append(dst, id)
		case t.model.fallback:
			for j := range width {
				dst = append(dst, t.base[word[i+j]])
			}
		case !unknown || !t.spec.Model.FuseUnknown:
			dst = append(dst, t.model.unk)
		}
		unknown = !ok
		i += width
	}
	return dst
}

// keep puts a word into the cache.
func (e *encoder) keep(word string, ids []uint32) {
	if len(e.words) >= cachedWords || e.words == nil {
		e.words = make(map[string]span)
		e.arena = e.arena[:0]
	}
	from := len(e.arena)
	e.arena = append(e.arena, ids...)
	// a clone, so that the cache does not keep the whole text alive
	e.words[strings.Clone(word)] = span{int32(from), int32(len(e.arena))}
}

// rank returns the rank of a pair, or noRank.
func (t *Tokenizer) rank(left, right uint32) uint32 {
	p, _ := t.merges.find(left, right)
	return p.rank
}

// mergeShort merges in place: find the pair of lowest rank, the leftmost among equals; merge it;
// again. It keeps the ranks of all neighbours, so a merge looks up two pairs. O(n²) for n bytes,
// without memory of its own.
func (t *Tokenizer) mergeShort(s []uint32) []uint32 {
	ranks := t.bpe.ranks[:0]
	for i := 1; i < len(s); i++ {
		ranks = append(ranks, t.rank(s[i-1], s[i]))
	}
	t.bpe.ranks = ranks
	for {
		at, best := -1, noRank
		for i, r := range ranks {
			if r < best {
				at, best = i, r
			}
		}
		if at < 0 {
			return s
		}
		p, _ := t.merges.find(s[at], s[at+1])
		s[at] = p.id
		s = append(s[:at+1], s[at+2:]...)
		ranks = append(ranks[:at], ranks[at+1:]...)
		if at > 0 {
			ranks[at-1] = t.rank(s[at-1], s[at])
		}
		if at < len(ranks) {
			ranks[at] = t.rank(s[at], s[at+1])
		}
	}
}

// mergeLong computes the result of mergeShort in O(n log n): the symbols are a linked list, the
// pairs a heap by (rank, position). A pair on the heap may be stale because its symbols have
// changed since. This is found when it is popped: its product is then another one, because the text
// of a pair only grows.
func (t *Tokenizer) mergeLong(s []uint32) []uint32 {
	l := &t.bpe.list
	l.reset(len(s))
	for i := 1; i < len(s); i++ {
		t.push(l, s, int32(i-1), int32(i))
	}
	for len(l.heap) > 0 {
		top := l.pop()
		right := l.next[top.at]
		if right == gone || right == int32(len(s)) {
			continue
		}
		if p, ok := t.merges.find(s[top.at], s[right]); !ok || p.id != top.id {
			continue
		}
		s[top.at] = top.id
		l.remove(right)
		if left := l.prev[top.at]; left >= 0 {
			t.push(l, s, left, top.at)
		}
		if right := l.next[top.at]; right < int32(len(s)) {
			t.push(l, s, top.at, right)
		}
	}
	out := s[:0]
	for i := int32(0); i < int32(len(l.next)); i = l.next[i] {
		out = append(out, s[i]) // never beyond i: out is a prefix of what has been read
	}
	return out
}

// push puts the pair at two positions on the heap, if it merges.
func (t *Tokenizer) push(l *linked, s []uint32, left, right int32) {
	if p, ok := t.merges.find(s[left], s[right]); ok {
		l.push(candidate{p.rank, left, p.id})
	}
}
