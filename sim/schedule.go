package sim

import (
	"fmt"
	"math"

	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

// Schedule says when the reads of a token are submitted. It moves reads in time and adds those that
// a prediction names in vain; what is needed, kept and evicted stays the policy's decision on the
// needed masks. The zero value reads on demand.
type Schedule struct {
	Kind ScheduleKind `json:"kind"`
	// Recall is the share, by number, of the needed units that a prediction names, and
	// FalsePositives that of the units that are not needed; 1 and 0 are an oracle. Which units they
	// are is drawn from the seed, so that a larger share names the same units and more.
	Recall         float64 `json:"recall"`
	FalsePositives float64 `json:"false_positives"`
	// Traced takes the trace's predicted masks as what is named, in place of the two shares.
	Traced bool `json:"traced,omitempty"`
	// Dense is the number of layers at the start whose units are all in memory for good: they read
	// nothing and multiply with everything.
	Dense int `json:"dense"`
	// Staging is the size of the buffer that reads ahead land in. They go in batches of half of it:
	// while the rows of one are moved to their places the next is read (layout.Planner.Batches,
	// layout.Staging). A size without room for one record is refused. 0 stands for a buffer that
	// holds the largest layer's reads so far and never parts a layer, as the engine's without a
	// limit. Unlimited submits everything when it is known, however much is under way.
	Staging units.Bytes `json:"staging,omitempty"`
	Wait    Wait        `json:"wait,omitempty"`
}

// Unlimited is a staging buffer without end.
const Unlimited units.Bytes = math.MaxInt64

// ScheduleKind names a schedule.
type ScheduleKind string

// The schedules.
const (
	// OnDemand reads what a layer lacks when its attention is done, and waits for it.
	OnDemand ScheduleKind = ""
	// LookAhead reads, while a layer computes, what a prediction names for the next. After the next
	// layer's attention its true need is known, and what is missing is read on demand. Nothing is
	// known of a token before the token before it is complete, so that layer 0 reads on demand.
	LookAhead ScheduleKind = "lookahead"
	// WholeToken predicts all layers once layer 0 has computed, and reads what they lack in one
	// submission, in the background (NeuroPrefetcher).
	WholeToken ScheduleKind = "token"
)

// ParseSchedule returns the kind with a name; "demand" and "" are OnDemand.
func ParseSchedule(name string) (ScheduleKind, error) {
	switch kind := ScheduleKind(name); kind {
	case "demand":
		return OnDemand, nil
	case OnDemand, LookAhead, WholeToken:
		return kind, nil
	}
	return "", fmt.Errorf("sim: no schedule is called %q; known are demand, %s and %s", name,
		LookAhead, WholeToken)
}

// Wait says what a layer waits for under WholeToken.
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
	switch s.Kind {
	case OnDemand:
		if *s != (Schedule{}) {
			return fmt.Errorf("sim: reading on demand has no recall, dense prefix, staging or "+
				"wait; choose the schedule %s or %s", LookAhead, WholeToken)
		}
		return nil
	case LookAhead, WholeToken:
	default:
		return fmt.Errorf("sim: schedule %q; known are %s, %s and the empty one, on demand", s.Kind,
			LookAhead, WholeToken)
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
	case s.Wait != WaitToken && s.Kind != WholeToken:
		return fmt.Errorf("sim: with the schedule %s every layer waits for its own reads; leave "+
			"out the wait, or choose %s", s.Kind, WholeToken)
	case s.Dense < 0 || s.Dense > head.Layers:
		return fmt.Errorf("sim: a dense prefix of %d layers; the model has %d", s.Dense,
			head.Layers)
	case s.Dense == 0 && s.Kind == WholeToken:
		return fmt.Errorf("sim: the schedule %s predicts from layer 0, which reads nothing "+
			"itself; give a dense prefix of 1 layer or more", WholeToken)
	case s.Staging < 0:
		return fmt.Errorf("sim: a staging buffer of %d bytes: it must not be negative; 0 stands "+
			"for the largest layer's reads", s.Staging)
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
	traced           []uint64
}

// guess returns the draws of a layer; traced is its predicted mask, nil unless the trace's
// predictions are used.
func (s *Schedule) guess(seed uint64, seq, pos uint32, layer int, traced []uint64) guess {
	key := mix(mix(mix(seed)^uint64(seq)<<32^uint64(pos)) ^ uint64(layer))
	return guess{key: key, recall: threshold(s.Recall), mistaken: threshold(s.FalsePositives),
		traced: traced}
}

// names reports whether a unit is named.
func (g *guess) names(unit uint32, needed bool) bool {
	switch {
	case g.traced != nil:
		return g.traced[unit/64]>>(unit%64)&1 != 0
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
func (s *speculation) split(g *guess, need, resident []uint64, load []uint32, units int) {
	s.named, s.missed, s.wasted = s.named[:0], s.missed[:0], 0
	guesses := g.traced != nil || g.mistaken > 0
	for unit, next := uint32(0), 0; unit < uint32(units); unit++ {
		needed := need[unit/64]>>(unit%64)&1 != 0
		loaded := next < len(load) && load[next] == unit
		if loaded {
			next++
		}
		switch {
		case loaded && (!needed || g.names(unit, true)):
			s.named = append(s.named, unit)
		case loaded:
			s.missed = append(s.missed, unit)
		case guesses && !needed && resident[unit/64]>>(unit%64)&1 == 0 && g.names(unit, false):
			s.named = append(s.named, unit)
			s.wasted++
		}
	}
}
