package sim

import (
	"fmt"
	"math"

	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/traces"
)

// Schedule says when the reads of a token are submitted, and by what prediction. It moves reads in
// time and adds those that a prediction names in vain; what is needed, kept and evicted stays the
// policy's decision on the needed masks. The zero value reads on demand.
//
// A Staging of 0 stands for a buffer that holds the largest layer's reads so far and never parts a
// layer, as the engine's without a limit. With schedule.Unlimited everything is submitted when it
// is known, however much is under way.
type Schedule struct {
	schedule.Spec
	// Recall is the share, by number, of the needed units that a prediction names, and
	// FalsePositives that of the units that are not needed; 1 and 0 are an oracle. Which units they
	// are is drawn from the seed, so that a larger share names the same units and more.
	Recall         float64 `json:"recall"`
	FalsePositives float64 `json:"false_positives"`
	// Traced takes the trace's predicted masks as what is named, in place of the two shares.
	Traced bool `json:"traced,omitempty"`
	Wait   Wait `json:"wait,omitempty"`
}

// Replayed is the schedule that a replay of a trace runs: the trace names all that is needed and
// nothing else, and every layer waits for its own reads.
func Replayed(spec schedule.Spec) Schedule {
	s := Schedule{Spec: spec}
	if s.Kind != schedule.Demand {
		s.Recall = 1
	}
	if s.Kind == schedule.Token {
		s.Wait = WaitLayer
	}
	return s
}

// Wait says what a layer waits for under schedule.Token.
type Wait string

// The kinds of waiting.
const (
	WaitToken Wait = ""      // the first layer that reads waits for the reads of all
	WaitLayer Wait = "layer" // every layer for its own
)

// ParseWait returns the kind of waiting with a name; "token" and "" are WaitToken.
func ParseWait(name string) (Wait, error) {
	switch name {
	case "", "token":
		return WaitToken, nil
	case string(WaitLayer):
		return WaitLayer, nil
	}
	return "", fmt.Errorf("sim: layers cannot wait for %q; known are token and %s", name, WaitLayer)
}

// check refuses what cannot be scheduled; predicted is Config.Predicted.
func (s *Schedule) check(head *traces.Header, predicted bool) error {
	if err := s.Spec.Check(head.Layers); err != nil {
		return err
	}
	if s.Kind == schedule.Demand {
		if *s != (Schedule{}) {
			return fmt.Errorf("sim: reading on demand has no recall and no wait; choose the "+
				"schedule %s or %s", schedule.LookAhead, schedule.Token)
		}
		return nil
	}
	if s.Wait != WaitToken && s.Wait != WaitLayer {
		return fmt.Errorf("sim: layers wait for %q; known are %s and the empty one, the whole "+
			"token", s.Wait, WaitLayer)
	}
	for _, share := range []struct {
		name  string
		value float64
	}{{"recall", s.Recall}, {"share of false positives", s.FalsePositives}} {
		if !(share.value >= 0 && share.value <= 1) {
			return fmt.Errorf("sim: a %s of %g: it is a share, from 0 to 1", share.name,
				share.value)
		}
	}
	switch {
	case s.Traced && (s.Recall != 0 || s.FalsePositives != 0):
		return fmt.Errorf("sim: a recall and the trace's own predictions; give one of them")
	case s.Traced && !head.HasPredicted:
		return fmt.Errorf("sim: the trace of %s holds no predicted masks to read ahead by; give "+
			"a recall", head.Model)
	case s.Traced && predicted:
		return fmt.Errorf("sim: the predicted masks are what is needed, so that they name all " +
			"of it; read ahead with a recall of 1, or simulate the true masks")
	case s.Wait != WaitToken && s.Kind != schedule.Token:
		return fmt.Errorf("sim: with the schedule %s every layer waits for its own reads; leave "+
			"out the wait, or choose %s", s.Kind, schedule.Token)
	}
	return nil
}

// speculation is what is read of one layer of one token, and when.
type speculation struct {
	named  []uint32 // ahead, ascending
	missed []uint32 // on demand, ascending: needed, not in memory and not named
	wasted int      // of named: not needed
}

// guess draws the names of the prediction for one layer of one token.
type guess struct {
	key              uint64
	recall, mistaken uint64 // thresholds of draws
	traced           mask.Mask
}

// guess returns the draws of a layer; traced is its predicted mask, nil unless the trace's
// predictions are used.
func (s *Schedule) guess(seed uint64, seq, pos uint32, layer int, traced mask.Mask) guess {
	key := mix(mix(mix(seed)^uint64(seq)<<32^uint64(pos)) ^ uint64(layer))
	return guess{key: key, recall: threshold(s.Recall), mistaken: threshold(s.FalsePositives),
		traced: traced}
}

// names reports whether a unit is named.
func (g *guess) names(unit uint32, needed bool) bool {
	switch {
	case g.traced != nil:
		return g.traced.Has(unit)
	case needed:
		return mix(g.key^uint64(unit))>>11 < g.recall
	}
	return mix(g.key^uint64(unit))>>11 < g.mistaken
}

// threshold is the number of the 2⁵³ draws that fall into a share.
func threshold(share float64) uint64 { return uint64(math.Round(share * (1 << 53))) }

// mix is the finaliser of splitmix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
// Generators", 2014).
func mix(v uint64) uint64 {
	v += 0x9e3779b97f4a7c15
	v = (v ^ v>>30) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>27) * 0x94d049bb133111eb
	return v ^ v>>31
}

// split shares out the reads of a layer: load is what the policy reads for the needed mask,
// resident what is in memory before. What a policy brings whatever a token needs is known without a
// prediction.
func (s *speculation) split(g *guess, need, resident mask.Mask, load []uint32, units int) {
	s.named, s.missed, s.wasted = s.named[:0], s.missed[:0], 0
	guesses := g.traced != nil || g.mistaken > 0
	for unit, next := uint32(0), 0; unit < uint32(units); unit++ {
		needed := need.Has(unit)
		loaded := next < len(load) && load[next] == unit
		if loaded {
			next++
		}
		switch {
		case loaded && (!needed || g.names(unit, true)):
			s.named = append(s.named, unit)
		case loaded:
			s.missed = append(s.missed, unit)
		case guesses && !needed && !resident.Has(unit) && g.names(unit, false):
			s.named = append(s.named, unit)
			s.wasted++
		}
	}
}
