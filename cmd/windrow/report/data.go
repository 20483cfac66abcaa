package report

import (
	"fmt"
	"slices"

	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/compare"
)

// Data is everything a report says. Everything but the title may be left out.
type Data struct {
	Name      string // of the document: "sim", "replay", "report"
	Title     string
	Generated string // when and where, as text: the clock is the caller's
	// model, device, direct or buffered, cold or warm, file system, seed
	Facts    []document.Fact
	Warnings []string
	Runs     []LabeledRun
	// Comparison is of Runs[0], its simulated side, with Runs[1], its measured side.
	Comparison *compare.Comparison
	Trace      *TraceStats
	// FlashRate is the sequential rate of the device, for the back-of-envelope line; 0 leaves the
	// line out.
	FlashRate units.Rate
	Tables    []document.Section // printed last
}

// LabeledRun is a Run with the name that tables and charts give it.
type LabeledRun struct {
	Label string
	Run   *traces.Run
}

// TraceStats is what a report shows of the trace itself.
type TraceStats struct {
	Units       int       // per layer
	ActiveShare []float64 // by layer, 0 to 1: mean share of the units that are active in a token
	// SAgg[k] is s_agg(k), the mean number of distinct units of a layer active in k consecutive
	// tokens; SAgg[0] is 0.
	SAgg []float64
}

// Delta returns Δ(k) = s_agg(k+1) − s_agg(k) by k: the units a window of k tokens loads per token
// and layer (LLM in a flash, section 3.1). It is one shorter than SAgg.
func (t *TraceStats) Delta() []float64 {
	if len(t.SAgg) < 2 {
		return nil
	}
	d := make([]float64, len(t.SAgg)-1)
	for k := range d {
		d[k] = t.SAgg[k+1] - t.SAgg[k]
	}
	return d
}

// series is a Run token by token.
type series struct {
	label  string
	kind   string
	run    *traces.Run
	tokens []compare.Token
}

// name is how a column or a chart calls the run: the kind, and the label when it says more.
func (s *series) name() string {
	if s.label == "" || s.label == s.kind {
		return s.kind
	}
	return s.label + " (" + s.kind + ")"
}

// series checks d and adds up its runs.
func (d *Data) series() ([]series, error) {
	if d.Comparison != nil && len(d.Runs) < 2 {
		return nil, fmt.Errorf("report: a comparison with %d runs: want the simulated run first "+
			"and the measured run second", len(d.Runs))
	}
	if d.Trace != nil {
		if err := d.Trace.check(); err != nil {
			return nil, err
		}
	}
	for _, s := range d.Tables {
		if err := s.Table.Check(); err != nil {
			return nil, fmt.Errorf("report: table %q: %w", s.Title, err)
		}
	}
	out := make([]series, len(d.Runs))
	for i, r := range d.Runs {
		tokens, err := compare.Tokens(r.Run)
		if err != nil {
			return nil, fmt.Errorf("report: run %q: %w", r.Label, err)
		}
		out[i] = series{r.Label, r.Run.Meta.Kind(), r.Run, tokens}
	}
	if c := d.Comparison; c != nil && (c.Tokens != len(out[0].tokens) ||
		c.Tokens != len(out[1].tokens)) {
		return nil, fmt.Errorf("report: the comparison is of %d tokens, the first two runs have "+
			"%d and %d", c.Tokens, len(out[0].tokens), len(out[1].tokens))
	}
	return out, nil
}

func (t *TraceStats) check() error {
	if t.Units <= 0 {
		return fmt.Errorf("report: trace statistics with %d units per layer", t.Units)
	}
	if len(t.SAgg) > 0 && t.SAgg[0] != 0 {
		return fmt.Errorf("report: s_agg(0) is %v: no token activates nothing, it must be 0",
			t.SAgg[0])
	}
	for k, s := range t.SAgg {
		if !(s >= 0 && s <= float64(t.Units)) {
			return fmt.Errorf("report: s_agg(%d) is %v of %d units", k, s, t.Units)
		}
	}
	for l, a := range t.ActiveShare {
		if !(a >= 0 && a <= 1) {
			return fmt.Errorf("report: layer %d has an active share of %v: want 0 to 1", l, a)
		}
	}
	return nil
}

// warnings returns every warning once: the caller's, the comparison's, the runs'.
func (d *Data) warnings(runs []series) []string {
	out := slices.Clone(d.Warnings)
	if d.Comparison != nil {
		out = append(out, d.Comparison.Warnings...)
	}
	for _, s := range runs {
		if s.run.Meta.Emulated && !s.run.Meta.Simulated {
			out = append(out, s.name()+": the reads went to an emulated device; their times are "+
				"the emulation's, not a drive's")
		}
		for _, w := range s.run.Meta.Warnings {
			out = append(out, s.name()+": "+w)
		}
	}
	seen := make(map[string]bool, len(out))
	return slices.DeleteFunc(out, func(w string) bool {
		dup := seen[w]
		seen[w] = true
		return dup
	})
}
