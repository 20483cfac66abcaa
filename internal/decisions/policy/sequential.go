package policy

import "github.com/windrow-sim/windrow/internal/mask"

// sequential reads the same units for every token, whatever it needs: all but the first kept ones.
// With kept = 0 it is the papers' naive baseline (the whole model for every token), else hybrid
// (the part that does not fit). A layout joins the neighbours into one long read. It counts hits
// and loads of all units, as if the token needed them all.
//
// Whole-tensor offload keeps all or nothing of a layer: a layer is always in memory, or is read
// whole for every token (FlexGen's placement of weights; all-disk is tensors:0).
type sequential struct {
	kept, units int
	thrash      bool // the cache is too small for the layer
	started     bool
}

func newSequential(units, kept int) *sequential {
	return &sequential{kept: min(kept, units), units: units}
}

// newCyclic returns the policy of a page cache under a runtime that reads the whole layer in order
// for every token, such as llama.cpp with a mapped file and a memory limit. The cache holds so many
// units and evicts the least recently used one. It keeps all or nothing. If the layer does not fit,
// each unit leaves just before its next use, and the units left at the end of a token are of no use
// to the next. All units therefore count as loaded, evicted and overflowed, as if the cache were
// empty in between. The layers of a file share one cache. Each gets its share of a full round, so
// that this makes no difference.
//
// This is textbook LRU. Linux keeps two lists: the flash model of a mapped file
// (devicemodels/flash, pagecache.go) has its rules.
func newCyclic(units, capacity int) *sequential {
	if capacity >= units {
		return newSequential(units, units)
	}
	return &sequential{units: units, thrash: true}
}

// Reset empties the memory.
func (s *sequential) Reset() { s.started = false }

// Step implements Policy. The mask does not matter.
func (s *sequential) Step(_ mask.Mask, d *Decision) {
	d.reset()
	first := 0
	if s.started {
		d.Hits, first = s.kept, s.kept
	}
	s.started = true
	for u := first; u < s.units; u++ {
		d.Load = append(d.Load, uint32(u))
	}
	d.Evict = append(d.Evict, d.Load[s.kept-first:]...)
	if s.thrash {
		d.Overflow = len(d.Load)
	}
}
