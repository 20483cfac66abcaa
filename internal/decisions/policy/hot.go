package policy

import (
	"fmt"

	"github.com/windrow-sim/windrow/internal/mask"
)

// hot keeps a fixed set of hot units from their first use on, and of the others the most recently
// used ones (after PowerInfer-2's cache, which has segments for hot and for cold neurons). The hot
// units have slots of their own: they do not age and take no slots of the others.
type hot struct {
	pinned  mask.Mask // the hot units
	cached  mask.Mask // the hot units in memory
	part    mask.Mask // the cold, then the hot units that the current token needs
	rest    *lru
	fromHot Decision
}

func newHot(s Spec, units int, ranked []uint32) (Policy, error) {
	if len(ranked) < s.Pinned {
		return nil, fmt.Errorf("policy: %s: %d units are ranked, fewer than are to be pinned; "+
			"give a ranking of at least that many, or pin fewer: %w",
			s, len(ranked), ErrSpec)
	}
	h := &hot{pinned: mask.New(units), cached: mask.New(units), part: mask.New(units)}
	for _, u := range ranked[:s.Pinned] {
		if int64(u) >= int64(units) || h.pinned.Has(u) {
			return nil, fmt.Errorf("policy: %s: unit %d is ranked twice or beyond the %d units "+
				"of the layer: %w", s, u, units, ErrSpec)
		}
		h.pinned.Set(u)
	}
	h.rest = newLRU(units, s.Capacity)
	return h, nil
}

// Reset empties the cache, hot units included. A new sequence loads them again at their first use.
func (h *hot) Reset() {
	clear(h.cached)
	h.rest.Reset()
}

// Step implements Policy.
func (h *hot) Step(need mask.Mask, d *Decision) {
	copy(h.part, need)
	h.part.AndNot(h.pinned)
	h.rest.Step(h.part, d)
	copy(h.part, need)
	h.part.And(h.pinned)
	h.fromHot.demand(h.part, h.cached)
	h.cached.Or(h.part)
	d.Hits += h.fromHot.Hits
	d.Load = merge(d.Load, h.fromHot.Load)
}
