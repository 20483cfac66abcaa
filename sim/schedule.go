package sim

import (
	"fmt"
	"math"

	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/traces"
)

// Schedule says when the reads of a token are submitted, and what is predicted. It moves reads in
// time, and adds reads of units that are predicted but not needed. What is needed, kept and evicted
// stays the policy's decision on the needed masks. The zero value reads on demand.
//
// A Staging of 0 stands for the engine's buffer without a limit: it grows to the largest layer's
// reads so far, and no layer is cut. With schedule.Unlimited every prefetch is submitted when it is
// known, however many are in flight.
type Schedule struct {
	schedule.Spec
	// Recall is the share of the needed units that are predicted, and FalsePositives the share of
	// the other units that are predicted too, both by number; 1 and 0 are an oracle. The seed draws
	// which units these are. A larger share predicts the same units and more.
	Recall         float64 `json:"recall"`
	FalsePositives float64 `json:"false_positives"`
	// Traced takes the trace's predicted masks as the prediction, in place of the two shares.
	Traced bool `json:"traced,omitempty"`
	Wait   Wait `json:"wait,omitempty"`
}

// Replayed returns the schedule that a replay of a trace runs: the trace predicts exactly what is
// needed, and every layer waits for its own reads.
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
	WaitToken Wait = ""      // the first sparse layer waits for the prefetches of all layers
	WaitLayer Wait = "layer" // every layer waits for its own prefetches
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

// check refuses a schedule that cannot be simulated; predicted is Config.Predicted.
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
		return fmt.Errorf("sim: the trace of %s holds no predicted masks to prefetch by; give "+
			"a recall", head.Model)
	case s.Traced && predicted:
		return fmt.Errorf("sim: the predicted masks are taken as what is needed, so they predict " +
			"all of it; prefetch with a recall of 1, or simulate the true masks")
	case s.Wait != WaitToken && s.Kind != schedule.Token:
		return fmt.Errorf("sim: with the schedule %s every layer waits for its own reads; leave "+
			"out the wait, or choose %s", s.Kind, schedule.Token)
	}
	return nil
}

// readSplit is the reads of one layer of one token: prefetches and demand reads.
type readSplit struct {
	prefetched []uint32 // ascending
	missed     []uint32 // read on demand, ascending: needed, not resident and not predicted
	wasted     int      // of prefetched: not needed
}

// guess draws the predicted units of one layer of one token.
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

// predicts reports whether a unit is predicted.
func (g *guess) predicts(unit uint32, needed bool) bool {
	switch {
	case g.traced != nil:
		return g.traced.Has(unit)
	case needed:
		return mix(g.key^uint64(unit))>>11 < g.recall
	}
	return mix(g.key^uint64(unit))>>11 < g.mistaken
}

// threshold is how many of the 2⁵³ values of a draw belong to a share.
func threshold(share float64) uint64 { return uint64(math.Round(share * (1 << 53))) }

// mix is the finaliser of splitmix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
// Generators", 2014).
func mix(v uint64) uint64 {
	v += 0x9e3779b97f4a7c15
	v = (v ^ v>>30) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>27) * 0x94d049bb133111eb
	return v ^ v>>31
}

// split splits the reads of a layer. load is what the policy loads for the needed mask, resident
// what is in memory before. Units that a policy loads without need (a whole layer, a page) are
// prefetched without a prediction.
func (s *readSplit) split(g *guess, need, resident mask.Mask, load []uint32, units int) {
	s.prefetched, s.missed, s.wasted = s.prefetched[:0], s.missed[:0], 0
	guesses := g.traced != nil || g.mistaken > 0
	for unit, next := uint32(0), 0; unit < uint32(units); unit++ {
		needed := need.Has(unit)
		loaded := next < len(load) && load[next] == unit
		if loaded {
			next++
		}
		switch {
		case loaded && (!needed || g.predicts(unit, true)):
			s.prefetched = append(s.prefetched, unit)
		case loaded:
			s.missed = append(s.missed, unit)
		case guesses && !needed && !resident.Has(unit) && g.predicts(unit, false):
			s.prefetched = append(s.prefetched, unit)
			s.wasted++
		}
	}
}
