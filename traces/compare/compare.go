package compare

import (
	"fmt"
	"math"

	"github.com/windrow-sim/windrow/internal/clock"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

// Options of a comparison. The zero value compares all tokens with the default tolerance and
// assumes a steady device.
type Options struct {
	// SkipTokens is the number of warm-up tokens at the start of the runs. They are left out of
	// times but not of counters.
	SkipTokens int
	// Tolerance is the largest error that passes; zero means DefaultTolerance.
	Tolerance Tolerance
	// MaxDrift is the largest drift, in percent, that allows a verdict; 0 means DefaultMaxDrift.
	MaxDrift float64
	// MaxDifferences is the number of differing counters to list; 0 means DefaultMaxDifferences.
	// All are counted.
	MaxDifferences int
}

// Defaults of Options.
const (
	DefaultMaxDrift       = 10.0 // percent
	DefaultMaxDifferences = 10
)

// Tolerance is the largest absolute error, in percent of the measured value, that passes.
type Tolerance struct {
	TokensPerS float64 `json:"tokens_per_s_percent"`
	P50        float64 `json:"p50_percent"` // of the latency per token
	P99        float64 `json:"p99_percent"`
}

// DefaultTolerance is the tolerance for a simulation of the machine that was probed.
func DefaultTolerance() Tolerance { return Tolerance{TokensPerS: 5, P50: 8, P99: 15} }

// Comparison is the result of Compare. Signed errors are (simulated − measured) / measured.
type Comparison struct {
	Tokens        int `json:"tokens"`         // in both runs, warm-up included
	SkippedTokens int `json:"skipped_tokens"` // warm-up tokens, left out of all times below

	CountersEqual    bool         `json:"counters_equal"` // hits, misses, evictions and requests
	BytesEqual       bool         `json:"bytes_equal"`    // bytes requested from flash
	DifferencesTotal int          `json:"differences_total"`
	Differences      []Difference `json:"differences"` // the first ones, by token, layer, counter

	Parts       []PartError       `json:"parts"` // by traces.Part
	Total       PartError         `json:"total"` // latency per token
	Percentiles []PercentileError `json:"percentiles"`
	PearsonR    Stat              `json:"pearson_r"` // of the latencies per token

	SimulatedTokensPerS float64 `json:"simulated_tokens_per_s"`
	MeasuredTokensPerS  float64 `json:"measured_tokens_per_s"`
	ErrorPercent        float64 `json:"tokens_per_s_error_percent"`

	Tolerance Tolerance `json:"tolerance"`
	// of the measured run; undefined if not measured
	DriftPercent Stat     `json:"drift_percent"`
	MaxDrift     float64  `json:"max_drift_percent"`
	Verdict      Verdict  `json:"verdict"`
	Reasons      []string `json:"reasons"`  // reasons for a verdict other than "pass"
	Warnings     []string `json:"warnings"` // warnings that taint the numbers
}

// PartError compares the mean time per token of one part, or of the whole token.
type PartError struct {
	Part      string  `json:"part"` // a traces.Part, or "total"
	Simulated float64 `json:"simulated_ns_per_token"`
	Measured  float64 `json:"measured_ns_per_token"`
	Bias      Stat    `json:"bias_percent"` // signed error of the mean
	MAPE      Stat    `json:"mape_percent"` // mean over tokens of |simulated − measured| / measured
	// MAPETokens is the number of tokens in MAPE. A token whose part was measured as 0 ns has no
	// relative error.
	MAPETokens int `json:"mape_tokens"`
}

// PercentileError compares one percentile of the latency per token.
type PercentileError struct {
	Percentile float64 `json:"percentile"`
	Simulated  float64 `json:"simulated_ns"`
	Measured   float64 `json:"measured_ns"`
	Error      Stat    `json:"error_percent"`
}

// Compare compares a simulated run with a measured one. It does not change the runs. It returns an
// error if the runs are not of the same tokens and layers, if a run is malformed, or if no time
// passes after the skipped tokens.
func Compare(sim, measured *traces.Run, opt Options) (*Comparison, error) {
	opt, err := opt.resolve()
	if err != nil {
		return nil, err
	}
	s, err := load("simulated", sim)
	if err != nil {
		return nil, err
	}
	m, err := load("measured", measured)
	if err != nil {
		return nil, err
	}
	if err := sameTrace(sim, measured); err != nil {
		return nil, err
	}
	if err := sameTokens(s.tokens, m.tokens); err != nil {
		return nil, err
	}
	c := &Comparison{
		Tokens: len(s.tokens), SkippedTokens: opt.SkipTokens,
		Tolerance: opt.Tolerance, DriftPercent: Stat(math.NaN()), MaxDrift: opt.MaxDrift,
		Differences: []Difference{}, Reasons: []string{}, Warnings: warnings(sim, measured),
	}
	if d := measured.Meta.DriftPercent; d != nil {
		if math.IsNaN(*d) || math.IsInf(*d, 0) {
			return nil, fmt.Errorf("compare: the measured run drifted by %v %%: want a finite "+
				"number", *d)
		}
		c.DriftPercent = Stat(*d)
	}
	if err := c.counters(s.cells, m.cells, opt.MaxDifferences); err != nil {
		return nil, err
	}
	if opt.SkipTokens >= len(s.tokens) {
		return nil, fmt.Errorf("compare: %d warm-up tokens of %d: none is left; skip fewer",
			opt.SkipTokens, len(s.tokens))
	}
	if err := c.times(s.tokens[opt.SkipTokens:], m.tokens[opt.SkipTokens:]); err != nil {
		return nil, err
	}
	c.judge(requestShapes(sim, measured))
	if jump := measured.Meta.ClockJump; jump != 0 {
		c.Verdict = Noisy
		c.Reasons = append([]string{clock.Why(jump) + "; measure again"}, c.Reasons...)
	}
	return c, nil
}

// resolve fills in defaults and refuses invalid values.
func (o Options) resolve() (Options, error) {
	if o.Tolerance == (Tolerance{}) {
		o.Tolerance = DefaultTolerance()
	}
	if o.MaxDrift == 0 {
		o.MaxDrift = DefaultMaxDrift
	}
	if o.MaxDifferences == 0 {
		o.MaxDifferences = DefaultMaxDifferences
	}
	if o.SkipTokens < 0 || o.MaxDifferences < 0 {
		return o, fmt.Errorf("compare: skip %d tokens, list %d differences: a count is 0 or more",
			o.SkipTokens, o.MaxDifferences)
	}
	for _, p := range []float64{o.Tolerance.TokensPerS, o.Tolerance.P50, o.Tolerance.P99,
		o.MaxDrift} {
		if math.IsNaN(p) || math.IsInf(p, 0) || p < 0 {
			return o, fmt.Errorf("compare: limit of %v %%: want a finite number, 0 or more", p)
		}
	}
	return o, nil
}

// side is one run, by cell and by token.
type side struct {
	tokens []Token
	cells  []cell
}

func load(name string, r *traces.Run) (side, error) {
	tokens, err := Tokens(r)
	if err != nil {
		return side{}, fmt.Errorf("%s run: %w", name, err)
	}
	return side{tokens, cells(r.Rows)}, nil
}

// sameTrace refuses runs of different traces. A run without a checksum is compared by its tokens
// only.
func sameTrace(a, b *traces.Run) error {
	x, y := a.Meta.TraceSHA256, b.Meta.TraceSHA256
	if x != "" && y != "" && x != y {
		return fmt.Errorf("compare: the runs are of different traces: %s (%.12s) and %s "+
			"(%.12s); run both on one trace",
			a.Meta.Trace, x, b.Meta.Trace, y)
	}
	return nil
}

func sameTokens(s, m []Token) error {
	for i := range min(len(s), len(m)) {
		a, b := &s[i], &m[i]
		if a.Index != b.Index || a.Seq != b.Seq || a.Pos != b.Pos || a.Phase != b.Phase {
			return fmt.Errorf("compare: the runs differ at entry %d: simulated %s, measured %s; "+
				"run both on the same tokens",
				i, a.name(), b.name())
		}
	}
	switch {
	case len(s) > len(m):
		return fmt.Errorf("compare: %s is missing from the measured run, which has %d tokens of %d",
			s[len(m)].name(), len(m), len(s))
	case len(m) > len(s):
		return fmt.Errorf("compare: %s is missing from the simulated run, which has %d tokens "+
			"of %d", m[len(s)].name(), len(s), len(m))
	}
	return nil
}

// warnings returns warnings about the roles of the runs. The runs' own warnings stay with the runs.
func warnings(sim, measured *traces.Run) []string {
	w := []string{}
	if !sim.Meta.Simulated {
		w = append(w, "the run on the simulated side was measured: this compares two measurements")
	}
	if measured.Meta.Simulated {
		w = append(w, "the run on the measured side was simulated: this validates nothing")
	}
	if measured.Meta.Emulated {
		w = append(w, "the measured run used an emulated device: agreement says nothing about a "+
			"real one")
	}
	if sim.Meta.Model != measured.Meta.Model {
		w = append(w, fmt.Sprintf("the runs name different models: %q and %q", sim.Meta.Model,
			measured.Meta.Model))
	}
	return w
}

// times fills in all times and errors of times, from the tokens after the warm-up.
func (c *Comparison) times(s, m []Token) error {
	for p := range traces.Part(traces.Parts) {
		part := func(t Token) units.Nanos { return t.Parts[p] }
		c.Parts = append(c.Parts, partError(p.String(), pick(s, part), pick(m, part)))
	}
	latency := func(t Token) units.Nanos { return t.Latency }
	ls, lm := pick(s, latency), pick(m, latency)
	c.Total = partError("total", ls, lm)
	c.PearsonR = Stat(Pearson(ls, lm))
	for _, p := range []float64{50, 90, 99} {
		e := PercentileError{Percentile: p, Simulated: Percentile(ls, p), Measured: Percentile(lm,
			p)}
		e.Error = relative(e.Simulated, e.Measured)
		c.Percentiles = append(c.Percentiles, e)
	}
	for _, side := range []struct {
		name string
		mean float64
	}{{"simulated", c.Total.Simulated}, {"measured", c.Total.Measured}} {
		if side.mean <= 0 {
			return fmt.Errorf("compare: no time passes in the %s run after %d skipped tokens: "+
				"there is no rate to compare", side.name, c.SkippedTokens)
		}
	}
	c.SimulatedTokensPerS = 1e9 / c.Total.Simulated
	c.MeasuredTokensPerS = 1e9 / c.Total.Measured
	c.ErrorPercent = float64(relative(c.SimulatedTokensPerS, c.MeasuredTokensPerS))
	return nil
}

// pick returns one time of each token in nanoseconds.
func pick(ts []Token, f func(Token) units.Nanos) []float64 {
	out := make([]float64, len(ts))
	for i, t := range ts {
		out[i] = float64(f(t))
	}
	return out
}

func partError(name string, s, m []float64) PartError {
	e := PartError{Part: name, Simulated: mean(s), Measured: mean(m)}
	e.Bias = relative(e.Simulated, e.Measured)
	e.MAPE, e.MAPETokens = mape(s, m)
	return e
}
