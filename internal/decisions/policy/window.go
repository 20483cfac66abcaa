package policy

import "github.com/windrow-sim/windrow/internal/mask"

// Window keeps the units active in the last K tokens (LLM in a flash, section 3.1). Before token t
// memory holds the units active in tokens t−K…t−1. Token t loads its other units; then the units
// not active in t−K+1…t leave. K = 0 keeps no unit from one token to the next.
//
// lastActive is the paper's last_k_active. Eviction looks only at the units that were active K
// tokens ago, so a step costs O(active), not O(units).
type Window struct {
	k          int
	now        int32
	resident   mask.Mask
	lastActive []int32
	// masks of the last K tokens, by token index mod K; it grows with the first K tokens
	ring []mask.Mask
}

// NewWindow returns a Window of k ≥ 0 tokens over the given number of units.
func NewWindow(units, k int) *Window {
	w := &Window{k: k}
	w.resident = mask.New(units)
	w.lastActive = make([]int32, units)
	w.Reset()
	return w
}

// Reset empties the window.
func (w *Window) Reset() {
	w.now = 0
	clear(w.resident)
	for i := range w.lastActive {
		w.lastActive[i] = -1
	}
	w.ring = w.ring[:0]
}

// Step implements Policy.
func (w *Window) Step(need mask.Mask, d *Decision) {
	d.demand(need, w.resident)
	w.resident.Or(need)
	for u := range need.Each {
		w.lastActive[u] = w.now
	}
	for u := range w.leaving(need).Each {
		if w.lastActive[u] == w.now-int32(w.k) {
			d.Evict = append(d.Evict, u)
			w.resident.Clear(u)
		}
	}
	if w.k > 0 {
		copy(w.ring[int(w.now)%w.k], need)
	}
	w.now++
}

// leaving returns the mask of token now−K, whose units may leave: the oldest of the ring, which the
// current mask will replace. During the first K tokens it returns nil and adds an entry to the
// ring.
func (w *Window) leaving(need mask.Mask) mask.Mask {
	switch {
	case w.k == 0:
		return need
	case int(w.now) >= w.k:
		return w.ring[int(w.now)%w.k]
	case len(w.ring) < cap(w.ring): // an entry of an earlier sequence
		w.ring = w.ring[:len(w.ring)+1]
	default:
		w.ring = append(w.ring, nil)
	}
	if last := &w.ring[len(w.ring)-1]; *last == nil {
		*last = make(mask.Mask, len(w.resident))
	}
	return nil
}
