package policy

// sequential reads the same units for every token, whatever it needs: all but the first kept ones. With kept = 0 this is the
// papers' naive baseline (the whole model for every token), else hybrid (the part that does not fit); a layout joins the
// neighbours into one long read. It therefore counts hits and loads of all units as if the token needed them all.
type sequential struct {
	kept, units int
	started     bool
}

func newSequential(units, kept int) *sequential {
	return &sequential{kept: min(kept, units), units: units}
}

// Reset empties the memory.
func (s *sequential) Reset() { s.started = false }

// Step implements Policy. What the token needs does not matter.
func (s *sequential) Step(_ []uint64, d *Decision) {
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
}
