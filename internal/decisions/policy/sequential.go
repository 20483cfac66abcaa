package policy

import "github.com/windrow-sim/windrow/internal/mask"

// sequential reads the same units for every token, whatever it needs: all but the first kept ones.
// With kept = 0 this is the papers' naive baseline (the whole model for every token), else hybrid
// (the part that does not fit); a layout joins the neighbours into one long read. It therefore
// counts hits and loads of all units as if the token needed them all.
//
// Whole-tensor offload is the same with all or nothing of a layer kept: a layer is in memory for
// good, or is read whole for every token (FlexGen's placement of weights; all-disk is tensors:0).
type sequential struct {
	kept, units int
	thrash      bool // what is read finds a cache that is too small
	started     bool
}

func newSequential(units, kept int) *sequential {
	return &sequential{kept: min(kept, units), units: units}
}

// newCyclic returns what a runtime sees that goes through the whole layer in order for every token,
// over a page cache of so many units which drops the unit used longest ago: llama.cpp with a mapped
// file under a limit of memory. It is all or nothing. If the layer does not fit, each unit leaves
// just before it is wanted again, and what the cache holds when the token ends is of no use to the
// next one. All of it therefore counts as loaded, evicted and overflown, as if the cache were empty
// in between. The layers of a file take turns in one cache, but as each gets its share of a full
// round, it makes no difference.
//
// This is the strict order of the last use, the textbook's. Linux keeps two lists and spares some
// pages of a cycle: the flash model of a mapped file (devicemodels/flash, pagecache.go) has its
// rules, and sim/reproduce the closed form of random replacement.
func newCyclic(units, capacity int) *sequential {
	if capacity >= units {
		return newSequential(units, units)
	}
	return &sequential{units: units, thrash: true}
}

// Reset empties the memory.
func (s *sequential) Reset() { s.started = false }

// Step implements Policy. What the token needs does not matter.
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
