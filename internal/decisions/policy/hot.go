package policy

import "fmt"

// hot keeps a fixed set of hot units from their first use on, and of the others those used last
// (after PowerInfer-2's cache, which has segments for hot and for cold neurons). The hot units have
// room of their own: they neither age nor take the others'.
type hot struct {
	pinned  []uint64 // the hot units
	held    []uint64 // those of them that are in memory
	cold    []uint64 // needed and not hot, of the current token
	rest    *lru
	fromHot Decision
}

func newHot(s Spec, units int, ranked []uint32) (Policy, error) {
	if len(ranked) < s.Pinned {
		return nil, fmt.Errorf("policy: %s: %d units are ranked, fewer than are to be pinned; "+
			"give a ranking of at least that many, or pin fewer: %w",
			s, len(ranked), ErrSpec)
	}
	h := &hot{pinned: make([]uint64, words(units)), held: make([]uint64, words(units)),
		cold: make([]uint64, words(units))}
	for _, u := range ranked[:s.Pinned] {
		if int64(u) >= int64(units) || has(h.pinned, u) {
			return nil, fmt.Errorf("policy: %s: unit %d is ranked twice or beyond the %d units "+
				"of the layer: %w", s, u, units, ErrSpec)
		}
		set(h.pinned, u)
	}
	h.rest = newLRU(units, s.Capacity)
	return h, nil
}

// Reset empties the cache, the hot units too: a new sequence loads them again with their first use.
func (h *hot) Reset() {
	clear(h.held)
	h.rest.Reset()
}

// Step implements Policy.
func (h *hot) Step(need []uint64, d *Decision) {
	for i, word := range need {
		h.cold[i] = word &^ h.pinned[i]
	}
	h.rest.Step(h.cold, d)
	hits := d.Hits
	h.fromHot.reset()
	for i, word := range need {
		h.cold[i] = word & h.pinned[i]
	}
	h.fromHot.demand(h.cold, h.held)
	for i, word := range h.cold {
		h.held[i] |= word
	}
	d.Hits = hits + h.fromHot.Hits
	d.Load = merge(d.Load, h.fromHot.Load)
}
