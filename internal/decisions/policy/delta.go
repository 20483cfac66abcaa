package policy

import "math/bits"

// delta is NeuroPrefetcher's runtime: memory holds the active set of the last token in K_max slots
// per layer. A token with the active set A_t loads D_in = A_t \ A_{t−1}; the rows of D_out =
// A_{t−1} \ A_t release their slots.
//
// The paper gives every active set the size K_max and does not say how the intersection of two
// masks of centroids gets it. Here a larger set loses nothing: the hits stay, then the loaded units
// in ascending order as long as there are slots, and the others overflow, which means they are read
// again by the next token that needs them. A smaller set leaves slots empty. While no token needs
// more than K_max units, delta decides as a Window of one token does.
type delta struct {
	slots    int // K_max
	resident []uint64
}

func newDelta(units, slots int) *delta {
	return &delta{slots: slots, resident: make([]uint64, words(units))}
}

// Reset releases all slots.
func (p *delta) Reset() { clear(p.resident) }

// Step implements Policy.
func (p *delta) Step(need []uint64, d *Decision) {
	d.demand(need, p.resident)
	room := min(p.slots-d.Hits, len(d.Load))
	d.Overflow = len(d.Load) - room
	for i, word := range need {
		old := p.resident[i]
		in := lowest(word&^old, room)
		room -= bits.OnesCount64(in)
		p.resident[i] = old&word | in
		d.Evict = appendBits(d.Evict, i, (old|word)&^p.resident[i])
	}
}

// lowest returns the n lowest of the bits that are set in word, or all of them.
func lowest(word uint64, n int) uint64 {
	if n >= bits.OnesCount64(word) {
		return word
	}
	rest := word
	for ; n > 0; n-- {
		rest &= rest - 1
	}
	return word &^ rest
}
