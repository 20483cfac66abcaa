package policy

import (
	"fmt"
	"iter"
	"math"

	"github.com/windrow-sim/windrow/internal/mask"
)

// Options holds facts about a layer that some policies need beside their Spec.
type Options struct {
	// Layer is the index of the layer in its model, from 0, for tensors.
	Layer int
	// Hot lists units from the hottest down, each at most once, for hot: at least as many as it
	// pins.
	Hot []uint32
	// Future yields the masks of all tokens that Step will see, in that order, across sequences,
	// for belady. New reads it once.
	Future iter.Seq[mask.Mask]
}

// New returns the policy of a layer with so many units. Errors wrap ErrSpec.
func New(s Spec, units int, opt Options) (Policy, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if units <= 0 || units > math.MaxInt32/2 {
		return nil, fmt.Errorf("policy: %s: a layer of %d units; a layer has 1 to %d: %w", s, units,
			math.MaxInt32/2, ErrSpec)
	}
	switch s.Kind {
	case KindAll, KindHybrid:
		return newSequential(units, s.Capacity), nil
	case KindTensors:
		if opt.Layer < s.Layers {
			return newSequential(units, units), nil
		}
		return newSequential(units, 0), nil
	case KindCyclic:
		return newCyclic(units, s.Capacity), nil
	case KindWindow:
		if s.Capacity > 0 {
			return newBounded(units, s.Window, s.Capacity), nil
		}
		return NewWindow(units, s.Window), nil
	case KindDelta:
		return newDelta(units, s.Capacity), nil
	case KindPages:
		return newPages(units, s.Capacity, s.Ahead), nil
	case KindLRU:
		return newLRU(units, s.Capacity), nil
	case KindLFU:
		return newLFU(units, s.Capacity), nil
	case KindHot:
		return newHot(s, units, opt.Hot)
	case KindBelady:
		return newBelady(s, units, opt.Future)
	default:
		return NewWindow(units, 0), nil
	}
}
