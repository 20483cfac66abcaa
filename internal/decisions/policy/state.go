package policy

import (
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
)

// StateBytes is the memory of the policy of one layer, once it has seen some tokens: its masks,
// ages and lists, without the rows themselves. Of belady it leaves out the future.
func (s Spec) StateBytes(layerUnits int) units.Bytes {
	const age, links, slice = 4, 8, 24 // per unit; per unit; a mask in a list
	n := units.Bytes(layerUnits)
	set := units.Bytes(mask.Words(layerUnits)) * 8
	switch s.Kind {
	case KindAll, KindHybrid, KindTensors, KindCyclic:
		return 0
	case KindDelta: // what is resident, what stays of the loads, what is in memory during a step
		return 3 * set
	case KindWindow:
		return set + age*n + units.Bytes(s.Window)*(set+slice)
	case KindPages: // and the list of neighbours, at most all units
		return 4*set + (links+4)*n
	case KindLRU:
		return 2*set + links*n
	case KindHot:
		return 5*set + links*n
	case KindLFU, KindBelady: // the lists grow, by a quarter each time
		return 3*set + (links+links/4+age)*n
	}
	return set + age*n // none: a window of no tokens
}
