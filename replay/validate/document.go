package validate

import (
	"fmt"
	"math"
	"slices"

	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/traces/compare"
)

// SuitesDocument describes suites: the verdict of all, then one table each.
func SuitesDocument(suites []*SuiteResult) *document.Document {
	d := &document.Document{Name: "validate-suites", Title: "windrow validate", Result: suites}
	var counted tally
	for i, s := range suites {
		note := fmt.Sprintf("%s. Mean |error| %s %%, worst %s %%, rank order %s, tolerance %s %%.",
			s.What, document.Sig3(s.MeanAbs), document.Sig3(s.WorstAbs), s.Rank,
			document.Sig3(s.Tolerance))
		if !s.Complete {
			d.Warn(notWhole(s.Name, len(s.Outcomes)))
		}
		for _, o := range s.Outcomes {
			counted.add(o.Comparison)
		}
		d.Add(s.Name, note, *s.table())
		if i > 0 {
			d.Headline += "; "
		}
		d.Headline += fmt.Sprintf("%s: mean |error| %s %%, worst %s %% of tokens/s over %d "+
			"configurations", s.Name, document.Sig3(s.MeanAbs), document.Sig3(s.WorstAbs),
			len(s.Outcomes))
	}
	d.Verdict = counted.verdict()
	return d
}

// notWhole warns of a suite that was ended.
func notWhole(name string, n int) string {
	return fmt.Sprintf("%s: not whole: the suite was ended after %d configurations", name, n)
}

// tally counts verdicts.
type tally struct{ all, outside, noisy int }

func (t *tally) add(c *compare.Comparison) {
	t.all++
	switch c.Verdict {
	case compare.Outside:
		t.outside++
	case compare.Noisy:
		t.noisy++
	}
}

// verdict sums up: one configuration outside the tolerance makes the suite so.
func (t *tally) verdict() *document.Verdict {
	switch {
	case t.outside > 0:
		return &document.Verdict{Class: "outside", Text: fmt.Sprintf("%d of %d configurations "+
			"are outside tolerance", t.outside, t.all)}
	case t.noisy > 0:
		return &document.Verdict{Class: "noisy", Text: fmt.Sprintf("%d of %d configurations "+
			"have no verdict: the device drifted while they were measured", t.noisy, t.all)}
	}
	return &document.Verdict{Class: "pass", Text: fmt.Sprintf("all %d configurations are within "+
		"tolerance", t.all)}
}

// simulatedRate is the predicted rate of a configuration.
func (o *Outcome) simulatedRate() document.Estimate {
	rate := o.Comparison.SimulatedTokensPerS
	if o.Simulated == nil || o.Simulated.Meta.Prediction == nil {
		return document.Estimate{Value: rate, Basis: "calibrated"}
	}
	return o.Simulated.Meta.Prediction.Estimate(rate, o.Simulated.Meta.Totals.TokensPerS)
}

// counters says whether both sides counted the same reads.
func counters(c *compare.Comparison) string {
	if c.CountersEqual && c.BytesEqual {
		return "equal"
	}
	return "DIFFER"
}

// table has one row for each configuration.
func (s *SuiteResult) table() *document.Table {
	number := document.Number
	t := document.NewTable(number("window", ""), number("threads", ""), number("chunk", "KiB"))
	prefetches := slices.ContainsFunc(s.Outcomes, func(o *Outcome) bool {
		return o.Case.Schedule.Kind != schedule.Demand
	})
	if prefetches {
		t = document.NewTable(document.Text("configuration"))
	}
	t.Columns = append(t.Columns, number(s.Kind, "tokens/s"), number("simulated", "tokens/s"),
		document.IntervalColumn, document.BasisColumn, number("error", "%"),
		number("P50 error", "%"), number("P99 error", "%"), number("drift", "%"),
		document.Text("counters"), document.Text("verdict"))
	for _, o := range s.Outcomes {
		c := o.Comparison
		cells := []string{document.Count(o.Case.Policy.Window), document.Count(o.Case.Parallel),
			kib(&o.Case)}
		if prefetches {
			cells = []string{o.Case.String()}
		}
		cells = append(append(cells, document.Sig3(c.MeasuredTokensPerS)),
			o.simulatedRate().Cells()...)
		t.Add(append(cells, document.Signed(c.ErrorPercent), percentileError(c, 50),
			percentileError(c, 99), stat(c.DriftPercent), counters(c), string(c.Verdict))...)
	}
	return t
}

// kib is the chunk of a configuration in KiB.
func kib(c *Case) string { return document.Sig3(float64(c.Chunk) / 1024) }

func stat(s compare.Stat) string { return document.Sig3(float64(s)) }

// percentileError is the error of a percentile of the latency, in percent.
func percentileError(c *compare.Comparison, percentile float64) string {
	for i := range c.Percentiles {
		if p := &c.Percentiles[i]; p.Percentile == percentile {
			if math.IsNaN(float64(p.Error)) {
				break
			}
			return document.Signed(float64(p.Error))
		}
	}
	return "n/a"
}

// Document describes a fitted suite: how far the two models are off, then every configuration.
func (r *FittedResult) Document() *document.Document {
	n := len(r.Outcomes)
	d := &document.Document{Name: "validate-fitted", Title: "windrow validate", Result: r,
		Headline: fmt.Sprintf("%s: mean |error| %s %%, worst %s %% of tokens/s over %d "+
			"configurations; %d inside the stated interval", r.Name,
			document.Sig3(r.Probe.MeanTokensPerS), document.Sig3(r.Probe.WorstTokensPerS), n,
			r.Covered)}
	if !r.Complete {
		d.Warn(notWhole(r.Name, n))
	}
	var counted tally
	for i := range r.Outcomes {
		counted.add(r.Outcomes[i].Comparison)
	}
	// The model from fio may be off where that from the probe is not.
	counted.outside = r.Failed - counted.noisy
	d.Verdict = counted.verdict()
	d.Fact("suite", "%s", r.What)
	d.Fact("model from the probe", "mean |error| %s %%, worst %s %% (limit %s %%), worst P99 "+
		"%s %% (limit %s %%)", document.Sig3(r.Probe.MeanTokensPerS),
		document.Sig3(r.Probe.WorstTokensPerS), document.Sig3(r.Tolerance.TokensPerS),
		document.Sig3(r.Probe.WorstP99), document.Sig3(r.Tolerance.P99))
	if f := r.FioErrors; f != nil {
		d.Fact("model from fio", "mean |error| %s %%, worst %s %% (limit %s %%)",
			document.Sig3(f.MeanTokensPerS), document.Sig3(f.WorstTokensPerS),
			document.Sig3(r.FioTolerance))
	} else {
		d.Fact("no model from fio", "%s", r.FioWhyNot)
	}
	d.Add("Configurations", "", *r.table())
	return d
}

// table has one row for each configuration.
func (r *FittedResult) table() *document.Table {
	number := document.Number
	t := document.NewTable(document.Text("engine"), number("window", ""), number("depth", ""),
		number("chunk", "KiB"), number(r.Kind, "tokens/s"), number("predicted", "tokens/s"),
		document.IntervalColumn, document.BasisColumn, number("error", "%"),
		number("P99 error", "%"), number("from fio", "%"), number("drift", "%"),
		document.Text("counters"), document.Text("verdict"))
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		c, fromFio := o.Comparison, "n/a"
		if o.Fio != nil {
			fromFio = document.Signed(o.Fio.ErrorPercent)
		}
		cells := append([]string{o.Case.Engine, document.Count(o.Case.Policy.Window),
			document.Count(o.Case.Parallel), kib(&o.Case),
			document.Sig3(c.MeasuredTokensPerS)}, o.simulatedRate().Cells()...)
		t.Add(append(cells, document.Signed(c.ErrorPercent), percentileError(c, 99), fromFio,
			stat(c.DriftPercent), counters(c), string(c.Verdict))...)
	}
	return t
}
