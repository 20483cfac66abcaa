package policy

import (
	"fmt"
	"iter"

	"github.com/windrow-sim/windrow/internal/mask"
)

// Belady keeps the units with the nearest next use (Belady, 1966, MIN). Loaded units count too. If
// there are too many, the unit with the farthest next use leaves; among equals the least recently
// used one, among units of the same token the lower one. No policy that keeps as many units between
// tokens loads less. The stay of a unit from one use to the next is an interval. Dropping the
// interval that ends last whenever too many overlap keeps the most intervals.
//
// It needs the future: it is a bound and not a policy to run.
type Belady struct {
	cache
	now   int
	first []int     // by unit: its uses are use[first[u]:first[u+1]]
	use   []int32   // tokens that need the unit, ascending
	at    []int     // by unit: the index in use of its next use
	key   []int32   // by unit in memory: its next use, or the value of never
	never int       // one past the last token
	byUse buckets   // units in memory, by next use
	fresh mask.Mask // loaded by the current token

	unforeseen int
}

func newBelady(s Spec, units int, future iter.Seq[mask.Mask]) (Policy, error) {
	if future == nil {
		return nil, fmt.Errorf("policy: %s: needs the masks of all tokens to come, which only a "+
			"trace has; simulate a trace, or use another policy: %w", s, ErrSpec)
	}
	b := &Belady{cache: newCache(units, s.Capacity), first: make([]int, units+1), at: make([]int,
		units), key: make([]int32, units), fresh: mask.New(units)}
	var needed []uint32 // of all tokens, one after the other
	var ends []int      // by token: its end in needed
	for m := range future {
		if !m.Fits(units) {
			return nil, fmt.Errorf("policy: %s: token %d of the future has a mask that is not "+
				"one of %d units: %w", s, len(ends), units, ErrSpec)
		}
		needed = m.AppendUnits(needed)
		ends = append(ends, len(needed))
	}
	b.index(needed, ends)
	b.never = len(ends)
	b.byUse = newBuckets(units, b.never+1)
	return b, nil
}

// index sorts the uses by unit, then token.
func (b *Belady) index(needed []uint32, ends []int) {
	for _, u := range needed {
		b.first[u+1]++
	}
	for u := range b.at {
		b.first[u+1] += b.first[u]
	}
	copy(b.at, b.first)
	b.use = make([]int32, len(needed))
	start := 0
	for token, end := range ends {
		for _, u := range needed[start:end] {
			b.use[b.at[u]] = int32(token)
			b.at[u]++
		}
		start = end
	}
	copy(b.at, b.first)
}

// Reset empties the cache. Time continues: the next Step is the next token of the future, of a new
// sequence.
func (b *Belady) Reset() {
	b.clear()
	b.byUse.clear()
}

// Unforeseen is the number of needed units so far that were not in the future's mask of that token.
// The loads are a bound only if it is 0.
func (b *Belady) Unforeseen() int { return b.unforeseen }

// Step implements Policy.
func (b *Belady) Step(need mask.Mask, d *Decision) {
	d.demand(need, b.resident)
	copy(b.fresh, need)
	b.fresh.AndNot(b.resident)
	b.resident.Or(need)
	for u := range need.Each {
		if !b.fresh.Has(u) {
			b.byUse.remove(int(b.key[u]), u)
		}
		b.key[u] = int32(b.next(u))
		b.byUse.add(int(b.key[u]), u)
	}
	b.size += len(d.Load)
	for ; b.size > b.capacity; b.size-- {
		key := b.byUse.highestKey()
		u := b.byUse.front(key)
		b.byUse.remove(key, u)
		b.evict(u)
		if b.fresh.Has(u) {
			d.Overflow++
		}
	}
	b.finish(need, d)
	b.now++
}

// next returns the first use of a unit after the current token, which uses it.
func (b *Belady) next(u uint32) int {
	at, end := b.at[u], b.first[u+1]
	for at < end && int(b.use[at]) < b.now {
		at++
	}
	if at < end && int(b.use[at]) == b.now {
		at++
	} else {
		b.unforeseen++
	}
	b.at[u] = at
	if at == end {
		return b.never
	}
	return int(b.use[at])
}
