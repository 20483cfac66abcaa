package policy

import "github.com/windrow-sim/windrow/internal/mask"

// delta is NeuroPrefetcher's runtime. Memory holds the active set of the last token in K_max slots
// per layer. A token with the active set A_t loads D_in = A_t \ A_{t−1}. The rows of D_out =
// A_{t−1} \ A_t free their slots.
//
// In the paper every active set has the size K_max; it does not say how the intersection of two
// masks of centroids gets that size. Here a larger set loses nothing. The hits stay, then the
// loaded units in ascending order while there are slots. The others overflow: the next token that
// needs them reads them again. A smaller set leaves slots empty. While no token needs more than
// K_max units, delta decides like a Window of one token.
type delta struct {
	slots    int // K_max
	resident mask.Mask
	stays    mask.Mask // loaded units that get a slot, of the current token
	touched  mask.Mask // units in memory while the current token computes
}

func newDelta(units, slots int) *delta {
	return &delta{slots: slots, resident: mask.New(units), stays: mask.New(units),
		touched: mask.New(units)}
}

// Reset frees all slots.
func (p *delta) Reset() { clear(p.resident) }

// Step implements Policy.
func (p *delta) Step(need mask.Mask, d *Decision) {
	d.demand(need, p.resident)
	room := min(p.slots-d.Hits, len(d.Load))
	d.Overflow = len(d.Load) - room
	copy(p.stays, need)
	p.stays.AndNot(p.resident)
	p.stays.KeepLowest(room)
	copy(p.touched, need)
	p.touched.Or(p.resident)
	p.resident.And(need)
	p.resident.Or(p.stays)
	d.Evict = p.touched.AppendAndNot(d.Evict, p.resident)
}
