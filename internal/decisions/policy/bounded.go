package policy

import "github.com/windrow-sim/windrow/internal/mask"

// bounded is a Window of K > 0 tokens in a row cache of fixed size, as LLM in a flash preallocates
// it (Req_i, section 3.3). A unit leaves only by age: if it was not active in t−K+1…t. Then the
// loaded units stay in ascending order while there is room; the others overflow. A window within
// its capacity decides like a Window.
type bounded struct {
	Window
	capacity int
	size     int
}

func newBounded(units, k, capacity int) *bounded {
	return &bounded{Window: *NewWindow(units, k), capacity: capacity}
}

// Reset empties the window.
func (b *bounded) Reset() {
	b.Window.Reset()
	b.size = 0
}

// Step implements Policy.
func (b *bounded) Step(need mask.Mask, d *Decision) {
	d.demand(need, b.resident)
	for u := range need.Each {
		b.lastActive[u] = b.now
	}
	for u := range b.leaving(need).Each {
		if b.lastActive[u] == b.now-int32(b.k) && b.resident.Has(u) {
			d.Evict = append(d.Evict, u)
			b.resident.Clear(u)
		}
	}
	copy(b.ring[int(b.now)%b.k], need)
	b.now++

	b.size -= len(d.Evict)
	stay := min(len(d.Load), b.capacity-b.size)
	b.resident.SetList(d.Load[:stay])
	b.size += stay
	d.Overflow = len(d.Load) - stay
	d.Evict = merge(d.Evict, d.Load[stay:])
}
