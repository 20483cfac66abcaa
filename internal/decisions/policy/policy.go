package policy

import "github.com/windrow-sim/windrow/internal/mask"

// Decision is the decision of a Policy for one layer of one token. Load and Evict are ascending.
// The next Step into the same Decision reuses them. The zero value is ready for use.
type Decision struct {
	Hits int // needed units that are in memory
	// units to read before the layer computes: needed and not in memory, or read with a needed unit
	Load  []uint32
	Ahead int      // units of Load that are not needed
	Evict []uint32 // units that leave memory after the layer has computed
	// units of Load that have no room to stay: read for this token only, so they are in Evict too
	Overflow int
}

// Policy is one layer's residency policy. It is not safe for concurrent use.
type Policy interface {
	// Step advances by one token that needs the units of a mask of the layer, and fills d. It
	// neither keeps nor changes the mask.
	Step(need mask.Mask, d *Decision)
	// Reset empties memory, for a new sequence.
	Reset()
}

func (d *Decision) reset() {
	d.Hits, d.Overflow, d.Ahead, d.Load, d.Evict = 0, 0, 0, d.Load[:0], d.Evict[:0]
}

// demand divides the needed units into hits and loads.
func (d *Decision) demand(need, resident mask.Mask) {
	d.reset()
	d.Hits = need.CountAnd(resident)
	d.Load = need.AppendAndNot(d.Load, resident)
}

// merge inserts the ascending units of b into the ascending a. It starts at the back, so that no
// unit is copied twice.
func merge(a, b []uint32) []uint32 {
	i, j := len(a)-1, len(b)-1
	a = append(a, b...)
	for at := len(a) - 1; j >= 0; at-- {
		if i >= 0 && a[i] > b[j] {
			a[at] = a[i]
			i--
		} else {
			a[at] = b[j]
			j--
		}
	}
	return a
}
