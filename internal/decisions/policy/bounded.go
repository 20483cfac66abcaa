package policy

import "math/bits"

// bounded is a Window of K > 0 tokens in a row cache of fixed size, as LLM in a flash preallocates
// it (Req_i, section 3.3). Only age makes a unit leave: those in memory that were not active in
// t−K+1…t. Then the loaded units stay in ascending order as long as there is room; the others
// overflow. A window that never holds more than its capacity decides as a Window does.
type bounded struct {
	Window
	capacity int
	held     int
}

func newBounded(units, k, capacity int) *bounded {
	return &bounded{Window: *NewWindow(units, k), capacity: capacity}
}

// Reset empties the window.
func (b *bounded) Reset() {
	b.Window.Reset()
	b.held = 0
}

// Step implements Policy.
func (b *bounded) Step(need []uint64, d *Decision) {
	d.demand(need, b.resident)
	for i, word := range need {
		for ; word != 0; word &= word - 1 {
			b.lastActive[i*64+bits.TrailingZeros64(word)] = b.now
		}
	}
	for i, word := range b.leaving(need) {
		for rest := word & b.resident[i]; rest != 0; rest &= rest - 1 {
			u := uint32(i*64 + bits.TrailingZeros64(rest))
			if b.lastActive[u] == b.now-int32(b.k) {
				d.Evict = append(d.Evict, u)
				unset(b.resident, u)
			}
		}
	}
	copy(b.ring[int(b.now)%b.k], need)
	b.now++

	b.held -= len(d.Evict)
	stay := min(len(d.Load), b.capacity-b.held)
	for _, u := range d.Load[:stay] {
		set(b.resident, u)
	}
	b.held += stay
	d.Overflow = len(d.Load) - stay
	d.Evict = merge(d.Evict, d.Load[stay:])
}
