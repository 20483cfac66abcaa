package adaptive

import (
	"fmt"
	"math"

	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/compare"
)

// Step is one token of one strategy.
type Step struct {
	Token  int         `json:"token"`
	Seq    uint32      `json:"seq"`
	Pos    uint32      `json:"pos"`
	Budget units.Bytes `json:"budget_bytes"`
	Memory units.Bytes `json:"memory_bytes"`         // the most during the token
	Chosen int         `json:"chosen_window_tokens"` // before it
	// at its end: shorter than Chosen if that did not fit
	Window       int         `json:"window_tokens"`
	Needed       int         `json:"needed_count"` // units, all layers
	Loads        int         `json:"loads_count"`
	EvictedEarly int         `json:"shed_count"` // rows evicted early because the window shrank
	Latency      units.Nanos `json:"latency_ns"`
}

// Outcome has the figures of one strategy. Speeds and latencies leave out the first Config.Skip
// tokens of every sequence. The other figures are of all tokens.
type Outcome struct {
	Name       string      `json:"strategy"`
	TokensPerS float64     `json:"tokens_per_s"`
	P50        units.Nanos `json:"p50_ns"`
	P95        units.Nanos `json:"p95_ns"`
	P99        units.Nanos `json:"p99_ns"`
	Jitter     float64     `json:"p99_over_p50"`
	// standard deviation of the latency differences between consecutive tokens
	Deviation  units.Nanos `json:"difference_sd_ns"`
	Above      int         `json:"tokens_above_budget_count"`
	Loads      int64       `json:"loads_count"`
	Misses     float64     `json:"loads_share"`       // of the units needed
	OverStatic float64     `json:"loads_over_static"` // loads over those of the strategy "static"
	Window     float64     `json:"mean_window_tokens"`
	// tokens that end with another window than their predecessor in the sequence
	Changes      int          `json:"window_changes_count"`
	EvictedEarly int64        `json:"shed_count"`
	Memory       units.Bytes  `json:"most_memory_bytes"`
	Basis        traces.Basis `json:"basis"`
	// Estimate is TokensPerS with its interval; Prediction is of all tokens.
	Estimate   document.Estimate  `json:"tokens_per_s_estimate"`
	Prediction *traces.Prediction `json:"prediction"`
	Steps      []Step             `json:"-"`
}

// outcome computes the figures of a strategy from its steps.
func (s *study) outcome(name string, steps []Step) (Outcome, error) {
	o := Outcome{Name: name, Steps: steps}
	var latency, differences []float64
	wall, needed, windows := 0.0, int64(0), 0
	var sequences traces.Sequences
	since := 0 // tokens of the sequence so far
	for i := range steps {
		t := &steps[i]
		if sequences.Begins(t.Seq) {
			since = 0
		} else if steps[i-1].Window != t.Window {
			o.Changes++
		}
		if since++; since > s.cfg.Skip {
			if since > s.cfg.Skip+1 {
				differences = append(differences, float64(t.Latency-steps[i-1].Latency))
			}
			latency = append(latency, float64(t.Latency))
			wall += t.Latency.Seconds()
		}
		if t.Memory > t.Budget {
			o.Above++
		}
		o.Loads += int64(t.Loads)
		o.EvictedEarly += int64(t.EvictedEarly)
		o.Memory = max(o.Memory, t.Memory)
		needed += int64(t.Needed)
		windows += t.Window
	}
	if len(latency) == 0 {
		return o, fmt.Errorf("adaptive: no sequence is longer than the %d tokens to leave out; "+
			"leave out fewer, or record more: %w", s.cfg.Skip, ErrConfig)
	}
	at := func(p float64) units.Nanos {
		return units.Nanos(math.Round(compare.Percentile(latency,
			p)))
	}
	o.P50, o.P95, o.P99 = at(50), at(95), at(99)
	o.Deviation = units.Nanos(math.Round(deviation(differences)))
	o.Window = float64(windows) / float64(len(steps))
	if wall > 0 {
		o.TokensPerS = float64(len(latency)) / wall
		o.Jitter = float64(o.P99) / float64(o.P50)
	}
	if needed > 0 {
		o.Misses = float64(o.Loads) / float64(needed)
	}
	return o, nil
}

// compare divides the loads of every strategy by those of the static window.
func (r *Result) compare() {
	for i := range r.Outcomes {
		if r.Outcomes[i].Name != Static || r.Outcomes[i].Loads == 0 {
			continue
		}
		for j := range r.Outcomes {
			r.Outcomes[j].OverStatic = float64(r.Outcomes[j].Loads) / float64(r.Outcomes[i].Loads)
		}
	}
}

// phases describes every budget by the tokens of a strategy that begin under it.
func (s *study) phases(steps []Step, oracle []int) []Phase {
	b := s.cfg.Budget
	list := make([]Phase, len(b.Changes))
	for p, c := range b.Changes {
		list[p] = Phase{Change: c, Oracle: oracle[p]}
	}
	now := units.Nanos(0)
	for i := range steps {
		p := &list[b.phase(i, now)]
		p.Tokens++
		p.Floor = s.floor[steps[i].Pos]
		now += steps[i].Latency
	}
	return list
}

// deviation is the standard deviation of a population; 0 for fewer than two values.
func deviation(values []float64) float64 {
	if len(values) < 2 {
		return 0
	}
	mean, sum := 0.0, 0.0
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		sum += (v - mean) * (v - mean)
	}
	return math.Sqrt(sum / float64(len(values)))
}
