package policy

import "github.com/windrow-sim/windrow/internal/mask"

// Decision is what a Policy decides for one layer of one token. Load and Evict are ascending and
// are reused by the next Step into the same Decision. The zero value is ready for use.
type Decision struct {
	Hits int // units that were needed and in memory
	// not in memory and needed, or brought with a needed one: read before the layer computes
	Load  []uint32
	Ahead int      // units of Load that are not needed
	Evict []uint32 // leave memory after the layer has computed
	// units of Load that would have been kept had there been room: read for this token only, so
	// they are in Evict too
	Overflow int
}

// Policy is one layer's residency policy. It is not safe for concurrent use.
type Policy interface {
	// Step advances by one token that needs the units of a mask of the layer, and fills d. It
	// neither keeps nor changes the mask.
	Step(need mask.Mask, d *Decision)
	// Reset forgets everything: the next token finds nothing in memory. A new sequence starts so.
	Reset()
}

func (d *Decision) reset() {
	d.Hits, d.Overflow, d.Ahead, d.Load, d.Evict = 0, 0, 0, d.Load[:0], d.Evict[:0]
}

// demand splits the needed units into hits and loads.
func (d *Decision) demand(need, resident mask.Mask) {
	d.reset()
	d.Hits = need.CountAnd(resident)
	d.Load = need.AppendAndNot(d.Load, resident)
}

// merge inserts the ascending units of b into the ascending a, from the back so that nothing is
// copied twice.
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
