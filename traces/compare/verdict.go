package compare

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/windrow-sim/windrow/traces"
)

// Verdict is the outcome of a comparison.
type Verdict string

// The verdicts.
const (
	Pass    Verdict = "pass"
	Outside Verdict = "outside tolerance"
	// the drift exceeds the limit: the model neither passes nor fails
	Noisy Verdict = "device too noisy"
)

// judge fills in Verdict and Reasons from the other fields.
func (c *Comparison) judge(shapes string) {
	if !c.CountersEqual || !c.BytesEqual {
		c.Reasons = append(c.Reasons, c.differenceReason(shapes))
	}
	c.limit("tokens/s", Stat(c.ErrorPercent), c.Tolerance.TokensPerS)
	for _, p := range c.Percentiles {
		switch p.Percentile {
		case 50:
			c.limit("P50 latency per token", p.Error, c.Tolerance.P50)
		case 99:
			c.limit("P99 latency per token", p.Error, c.Tolerance.P99)
		}
	}
	c.Verdict = Pass
	if len(c.Reasons) > 0 {
		c.Verdict = Outside
	}
	if drift := math.Abs(float64(c.DriftPercent)); drift > c.MaxDrift {
		c.Verdict = Noisy
		noise := fmt.Sprintf("the device drifted by %s %% during the measurement (limit %s %%); "+
			"measure again on an idle machine", Stat(drift), Stat(c.MaxDrift))
		c.Reasons = append([]string{noise}, c.Reasons...)
	}
}

// differenceReason names the first difference. resolve sets MaxDifferences to at least 1, so that
// one is listed.
func (c *Comparison) differenceReason(shapes string) string {
	d := c.Differences[0]
	where := fmt.Sprintf("token %d layer %d", d.Token, d.Layer)
	if d.Layer == TokenLevel {
		where = fmt.Sprintf("token %d", d.Token)
	}
	why := "decisions must be equal"
	if shapes != "" {
		why = shapes
	}
	return fmt.Sprintf("%d counters differ, first %s of %s: simulated %d, measured %d; %s",
		c.DifferencesTotal, d.Counter, where, d.Simulated, d.Measured, why)
}

// requestShapes compares the layout options that both runs record. Other alignments or chunks make
// other requests of the same decisions.
func requestShapes(sim, measured *traces.Run) string {
	var a, b struct {
		Layout map[string]any `json:"layout"`
	}
	if json.Unmarshal(sim.Meta.Config, &a) != nil || json.Unmarshal(measured.Meta.Config,
		&b) != nil || a.Layout == nil || b.Layout == nil {
		return ""
	}
	for _, key := range slices.Sorted(maps.Keys(a.Layout)) {
		if x, y := a.Layout[key], b.Layout[key]; x != y {
			return fmt.Sprintf("the runs shape requests differently: %s is %v in the simulated "+
				"and %v in the measured one; simulate with the measured one's", key, x, y)
		}
	}
	return ""
}

func (c *Comparison) limit(what string, err Stat, limit float64) {
	if !err.Defined() {
		c.Reasons = append(c.Reasons,
			fmt.Sprintf("the error of %s is undefined: it was measured as 0", what))
		return
	}
	if math.Abs(float64(err)) > limit {
		c.Reasons = append(c.Reasons, fmt.Sprintf("%s is off by %s %% (limit %s %%)", what, err,
			Stat(limit)))
	}
}
