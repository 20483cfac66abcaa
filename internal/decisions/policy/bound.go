package policy

import (
	"math/bits"

	"github.com/windrow-sim/windrow/internal/mask"
)

// Bound counts the fewest loads of any policy that keeps so many units between tokens: Belady's
// loads, without saying which units stay. It needs neither the future nor lists of units, and is
// several times faster.
//
// The stay of a unit from one use to the next is an interval, and saves a load. Intervals are seen
// when they end, in that order. Taking the one that ends first is never wrong. It gets the slot
// that has been empty for the shortest time before the interval begins; slots that have been empty
// for longer are left for intervals that began earlier. Slots that became empty at the same token
// are alike, so that counts by token suffice.
type Bound struct {
	capacity int
	loads    int64
	last     []int32  // by unit: the token that used it last, or -1
	begun    []int32  // by token: intervals that began then and end now; clear between steps
	begins   []uint64 // the tokens in begun, bit t%64 of word t/64
	free     []int32  // by token: slots that are empty since then
	empty    []uint64 // the tokens in free, alike
}

// NewBound returns the bound of a layer with so many units, for a policy that keeps capacity ≥ 0
// units between tokens.
func NewBound(units, capacity int) *Bound {
	b := &Bound{capacity: capacity, last: make([]int32, units)}
	b.Reset()
	return b
}

// Reset empties the memory, for a new sequence. The count continues.
func (b *Bound) Reset() {
	for u := range b.last {
		b.last[u] = -1
	}
	b.begun, b.begins, b.free, b.empty = b.begun[:0], b.begins[:0], b.free[:0], b.empty[:0]
}

// Loads returns the fewest loads for the tokens so far.
func (b *Bound) Loads() int64 { return b.loads }

// Step advances by one token that needs the units of a mask. Each token since the last Reset costs
// 8 bytes.
func (b *Bound) Step(need mask.Mask) {
	now := len(b.free)
	b.begun, b.free = append(b.begun, 0), append(b.free, 0)
	if now%64 == 0 {
		b.begins, b.empty = append(b.begins, 0), append(b.empty, 0)
	}
	b.loads += int64(need.Count())
	for u := range need.Each {
		if from := b.last[u]; from >= 0 {
			b.begun[from]++
			b.begins[from/64] |= 1 << (from % 64)
		}
		b.last[u] = int32(now)
	}
	kept := b.stays()
	if now == 0 {
		kept = b.capacity // all slots are empty
	} else {
		b.loads -= int64(kept)
	}
	if kept > 0 {
		b.free[now] = int32(kept)
		b.empty[now/64] |= 1 << (now % 64)
	}
}

// stays finds slots for the intervals that end now, the latest first, and returns the number of
// intervals with a slot.
func (b *Bound) stays() (kept int) {
	for w := len(b.begins) - 1; w >= 0; w-- {
		for b.begins[w] != 0 {
			bit := 63 - bits.LeadingZeros64(b.begins[w])
			b.begins[w] &^= 1 << bit
			from := w*64 + bit
			kept += b.take(from, int(b.begun[from]))
			b.begun[from] = 0
		}
	}
	return kept
}

// take fills up to n slots that have been empty since the token or longer, the latest first, and
// returns their number.
func (b *Bound) take(token, n int) (taken int) {
	keep := uint64(2)<<(token%64) - 1
	for w := token / 64; w >= 0 && taken < n; w-- {
		for word := b.empty[w] & keep; word != 0 && taken < n; {
			bit := 63 - bits.LeadingZeros64(word)
			word &^= 1 << bit
			at := &b.free[w*64+bit]
			got := min(n-taken, int(*at))
			taken += got
			if *at -= int32(got); *at == 0 {
				b.empty[w] &^= 1 << bit
			}
		}
		keep = ^uint64(0)
	}
	return taken
}
