package tokenizer

import (
	"math/bits"
	"math/rand/v2"
)

// pair is two neighbouring tokens.
type pair struct{ left, right uint32 }

// product is the result of a pair, and its rank: the lowest rank merges first.
type product struct{ rank, id uint32 }

// noRank is the rank of a pair that does not merge.
const noRank = ^uint32(0)

// merges is the table of the pairs that merge.
type merges struct {
	pairs []pair   // by place: in the order of rank
	ids   []uint32 // the result of each pair
	ranks []uint32 // by place; nil: the place, nothing is tied
	seed  [2]uint64
	index index // of places
}

// newMerges makes a table with room for n pairs.
func newMerges(n int) *merges {
	return &merges{pairs: make([]pair, 0, n), ids: make([]uint32, 0, n), index: newIndex(n),
		seed: [2]uint64{rand.Uint64(), rand.Uint64()}}
}

// add appends a pair and returns false, or its present place and true. A tied one has the rank of
// the previous one.
func (m *merges) add(p pair, id uint32, tied bool) (place int, twice bool) {
	slot, place, twice := m.search(p.left, p.right)
	if twice {
		return place, true
	}
	place = len(m.pairs)
	rank := uint32(place)
	if tied {
		rank = m.rank(place - 1)
	}
	m.ranks = extendIdentity(m.ranks, place, cap(m.pairs), rank)
	m.pairs, m.ids = append(m.pairs, p), append(m.ids, id)
	m.index.put(slot, place)
	return place, false
}

// hash mixes two ids with random numbers that no file can know, so that no file can make all pairs
// collide.
func (m *merges) hash(left, right uint32) uint64 {
	hi, lo := bits.Mul64(uint64(left)^m.seed[0], uint64(right)^m.seed[1])
	return hi ^ lo
}

// search returns the place of a pair, or the free slot for it.
func (m *merges) search(left, right uint32) (slot, place int, ok bool) {
	for slot = m.index.first(m.hash(left, right)); ; slot = m.index.next(slot) {
		n := m.index.slots[slot]
		if n == 0 {
			return slot, 0, false
		}
		if m.pairs[n-1] == (pair{left, right}) {
			return slot, int(n - 1), true
		}
	}
}

// find returns the product of two tokens.
func (m *merges) find(left, right uint32) (product, bool) {
	_, place, ok := m.search(left, right)
	if !ok {
		return product{noRank, noToken}, false
	}
	return product{m.rank(place), m.ids[place]}, true
}

// rank returns the rank of the pair at a place.
func (m *merges) rank(place int) uint32 {
	if m.ranks == nil {
		return uint32(place)
	}
	return m.ranks[place]
}

// tied reports whether the pair at a place has the rank of the previous one.
func (m *merges) tied(place int) bool { return m.rank(place) != uint32(place) }
