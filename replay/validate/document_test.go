package validate

import (
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/compare"
)

// outcomeOf is a configuration with a verdict and an interval of 2 to 4 tokens/s.
func outcomeOf(v compare.Verdict, counters bool) *Outcome {
	low, high := 2.0, 4.0
	run := &traces.Run{}
	run.Meta.Totals.TokensPerS = 3
	run.Meta.Prediction = &traces.Prediction{Basis: "interpolated", TokensPerSLow: &low,
		TokensPerSHigh: &high}
	return &Outcome{Case: Case{Parallel: 4, Chunk: 8192, Policy: policy.SlidingWindow(2)},
		Simulated: run, Comparison: &compare.Comparison{Verdict: v, CountersEqual: counters,
			BytesEqual: true, SimulatedTokensPerS: 3, MeasuredTokensPerS: 2.5, ErrorPercent: 20}}
}

// A suite's document has the interval of every prediction, and the worst verdict is that of all.
func TestSuitesDocument(t *testing.T) {
	pass := &SuiteResult{Name: "first", What: "a device", Kind: "emulated", Complete: true,
		Outcomes: []*Outcome{outcomeOf(compare.Pass, true)}}
	d := SuitesDocument([]*SuiteResult{pass})
	row := strings.Join(d.Sections[0].Table.Rows[0], "|")
	if !strings.HasPrefix(row, "2|4|8.00|2.50|3.00|2.00 to 4.00|interpolated|+20.0|n/a|n/a|") ||
		!strings.HasSuffix(row, "|equal|pass") || d.Check() != nil {
		t.Errorf("%s, %v", row, d.Check())
	}
	if d.Verdict.Class != "pass" || len(d.Warnings) != 0 {
		t.Errorf("%+v, %q", d.Verdict, d.Warnings)
	}
	cut := &SuiteResult{Name: "second", Kind: "measured", Outcomes: []*Outcome{
		outcomeOf(compare.Noisy, true), outcomeOf(compare.Outside, false)}}
	d = SuitesDocument([]*SuiteResult{pass, cut})
	if d.Verdict.Class != "outside" || d.Verdict.Text != "1 of 3 configurations are outside "+
		"tolerance" || len(d.Warnings) != 1 || !strings.Contains(d.Warnings[0], "not whole") {
		t.Errorf("%+v, %q", d.Verdict, d.Warnings)
	}
	if row := d.Sections[1].Table.Rows[1]; row[11] != "DIFFER" {
		t.Errorf("%q", row)
	}
}

// A configuration that only the model from fio misses is outside too.
func TestFittedDocument(t *testing.T) {
	o := outcomeOf(compare.Pass, true)
	r := &FittedResult{Name: "fitted", Kind: "measured", Complete: true, Failed: 1, Covered: 1,
		Outcomes:  []FittedOutcome{{Outcome: o, Fio: &compare.Comparison{ErrorPercent: -30}}},
		FioErrors: &Errors{MeanTokensPerS: 30}}
	d := r.Document()
	if d.Verdict.Class != "outside" || d.Sections[0].Table.Rows[0][10] != "-30.0" ||
		d.Check() != nil {
		t.Errorf("%+v, %q, %v", d.Verdict, d.Sections[0].Table.Rows, d.Check())
	}
	r.FioErrors, r.FioWhyNot, r.Failed = nil, "no fio here", 0
	if d := r.Document(); d.Verdict.Class != "pass" || !strings.Contains(d.Facts[len(d.Facts)-1].
		Value, "no fio here") {
		t.Errorf("%+v, %+v", d.Verdict, d.Facts)
	}
}
