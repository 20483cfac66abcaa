package tokenizer

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"strings"
	"unsafe"
)

// texts is a list of strings in one piece of memory, with four more bytes for each.
type texts struct {
	joined string
	ends   []uint32
}

func (t *texts) len() int { return len(t.ends) }

// at returns the i-th string.
func (t *texts) at(i int) string {
	from := uint32(0)
	if i > 0 {
		from = t.ends[i-1]
	}
	return t.joined[from:t.ends[i]]
}

// textsBuilder makes texts, without waste when their number and length are known.
type textsBuilder struct {
	joined strings.Builder
	ends   []uint32
}

func newTextsBuilder(count, length int) *textsBuilder {
	b := &textsBuilder{ends: make([]uint32, 0, count)}
	b.joined.Grow(length)
	return b
}

func (b *textsBuilder) add(text []byte) {
	b.joined.Write(text)
	b.ends = append(b.ends, uint32(b.joined.Len()))
}

func (b *textsBuilder) addString(text string) {
	b.joined.WriteString(text)
	b.ends = append(b.ends, uint32(b.joined.Len()))
}

// texts returns what has been added so far.
func (b *textsBuilder) texts() texts { return texts{b.joined.String(), b.ends} }

// index is a hash table of numbers from 0: open addressing, two thirds full. Their keys are stored
// elsewhere.
type index struct {
	slots []uint32 // the number plus one; 0: free
}

// newIndex makes an index with room for n numbers.
func newIndex(n int) index { return index{make([]uint32, n+n/2+1)} }

// first returns the slot to start a search for a hash, and next the slot after one: a search ends
// at a free slot.
func (x *index) first(hash uint64) int {
	slot, _ := bits.Mul64(hash, uint64(len(x.slots)))
	return int(slot)
}

func (x *index) next(slot int) int {
	if slot++; slot < len(x.slots) {
		return slot
	}
	return 0
}

// put sets a free slot.
func (x *index) put(slot, n int) { x.slots[slot] = uint32(n) + 1 }

// vocabulary is the list of tokens of a file, in its order.
type vocabulary struct {
	texts
	ids []uint32           // nil: the position is the id
	pos func(int) position // of a token, for errors
}

// extendIdentity appends the i-th of n numbers. The list stays nil as long as every number equals
// its place.
func extendIdentity(list []uint32, i, n int, number uint32) []uint32 {
	if list == nil {
		if number == uint32(i) {
			return nil
		}
		list = make([]uint32, i, n)
		for j := range list {
			list[j] = uint32(j)
		}
	}
	return append(list, number)
}

// lexicon is the set of all tokens with their ids, 0 to size()-1.
type lexicon struct {
	main  texts    // the list of the vocabulary's file, in its order
	more  texts    // tokens that only other files name
	ids   []uint32 // by place, in main and then in more; nil: the place is the id
	order []uint32 // places by id; nil: as ids
	seed  maphash.Seed
	index index // of places
}

// newLexicon checks that the tokens differ and that their ids are 0 to n-1: they are the rows of
// the embedding.
func newLexicon(v vocabulary, extra []entry) (*lexicon, error) {
	l := &lexicon{main: v.texts, ids: v.ids, seed: maphash.MakeSeed(), index: newIndex(v.len() +
		len(extra))}
	for i := range v.len() {
		text := v.at(i)
		if text == "" {
			return nil, v.pos(i).malformed("token %d is the empty text", l.id(i))
		}
		slot, other, twice := l.search(text)
		if twice {
			return nil, v.pos(i).malformed("%q occurs twice, with the ids %d and %d", text,
				l.id(other), l.id(i))
		}
		l.index.put(slot, i)
	}
	if err := l.extend(extra); err != nil {
		return nil, err
	}
	return l, l.sort(v, extra)
}

// extend adds the tokens that are not in main.
func (l *lexicon) extend(extra []entry) error {
	count, length := 0, 0
	for i := range extra {
		if _, known := l.place(extra[i].text); !known {
			count++
			length += len(extra[i].text)
		}
	}
	more := newTextsBuilder(count, length)
	if l.ids != nil {
		l.ids = slices.Grow(l.ids, count)
	}
	for i := range extra {
		e := &extra[i]
		slot, p, known := l.search(e.text)
		switch {
		case e.text == "":
			return e.pos.malformed("token %d is the empty text", e.id)
		case len(e.text) > maxPiece:
			return e.pos.unsupported("special token %.40q… of %d bytes; supported: up to %d",
				e.text, len(e.text), maxPiece)
		case known && l.id(p) != e.id:
			return e.pos.malformed("special token %q has the ids %d and %d", e.text, l.id(p), e.id)
		case known:
			continue
		}
		l.ids = extendIdentity(l.ids, l.size(), l.main.len()+count, e.id)
		l.index.put(slot, l.size())
		more.addString(e.text)
		l.more = more.texts()
	}
	return nil
}

// sort lists the places by id.
func (l *lexicon) sort(v vocabulary, extra []entry) error {
	if l.ids == nil {
		return nil
	}
	l.order = make([]uint32, l.size())
	for i := range l.order {
		l.order[i] = noToken
	}
	for p, id := range l.ids {
		text := l.at(p)
		if int64(id) >= int64(l.size()) {
			return l.pos(p, v, extra).malformed("token %q has the id %d, but there are %d "+
				"tokens: ids must be 0 to %d, without holes", text, id, l.size(), l.size()-1)
		}
		if other := l.order[id]; other != noToken {
			return l.pos(p, v, extra).malformed("tokens %q and %q have one id, %d",
				l.at(int(other)), text, id)
		}
		l.order[id] = uint32(p)
	}
	return nil
}

// pos returns the position in its file of the token at a place.
func (l *lexicon) pos(place int, v vocabulary, extra []entry) position {
	for i := range extra {
		if p, ok := l.place(extra[i].text); place >= l.main.len() && ok && p == place {
			return extra[i].pos
		}
	}
	return v.pos(place)
}

func (l *lexicon) size() int { return l.main.len() + l.more.len() }

// at returns the text at a place.
func (l *lexicon) at(place int) string {
	if place < l.main.len() {
		return l.main.at(place)
	}
	return l.more.at(place - l.main.len())
}

// id returns the id of the token at a place.
func (l *lexicon) id(place int) uint32 {
	if l.ids == nil {
		return uint32(place)
	}
	return l.ids[place]
}

// text returns the token of an id, which must be below size().
func (l *lexicon) text(id uint32) string { return l.at(l.placeOf(id)) }

// placeOf returns the place of an id.
func (l *lexicon) placeOf(id uint32) int {
	if l.order == nil {
		return int(id)
	}
	return int(l.order[id])
}

// outside reports whether a token is named only by files other than that of the vocabulary.
func (l *lexicon) outside(id uint32) bool { return l.placeOf(id) >= l.main.len() }

// search returns the place of a token, or the free slot for it.
func (l *lexicon) search(text string) (slot, place int, ok bool) {
	for slot = l.index.first(maphash.String(l.seed, text)); ; slot = l.index.next(slot) {
		n := l.index.slots[slot]
		if n == 0 {
			return slot, 0, false
		}
		if l.at(int(n-1)) == text {
			return slot, int(n - 1), true
		}
	}
}

// place returns where a token is.
func (l *lexicon) place(text string) (int, bool) {
	_, place, ok := l.search(text)
	return place, ok
}

// find returns the id of a token.
func (l *lexicon) find(text string) (uint32, bool) {
	p, ok := l.place(text)
	if !ok {
		return noToken, false
	}
	return l.id(p), true
}

// findBytes is find for a text that is no string yet.
func (l *lexicon) findBytes(text []byte) (uint32, bool) {
	return l.find(unsafe.String(unsafe.SliceData(text), len(text))) // find does not keep the string
}
