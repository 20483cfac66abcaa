package sim

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

const (
	// near is the largest factor between two sizes, or two depths, that count as the same.
	near = 1.1
	// beyond widens the interval of the fit for reads outside its range. The factor is a
	// convention: there are no measurements there.
	beyond = 2
	// mostBounded is the largest share of roofline times in a run that is not itself a bound.
	mostBounded = 0.02
)

// Summary is the input of Config.Predict: the totals of a run and the times that they leave out.
type Summary struct {
	Totals  traces.Totals
	Bounded units.Nanos // the part of the host's times that is a roofline bound
	// time of all tokens if the reads of each ran during its compute; 0 = not computed
	Prefetched units.Nanos

	// Of schedules with prefetches:
	Hidden units.Nanos // reads beside compute, not in Totals
	Depth  float64     // mean number of requests in flight, over all reads; 0 = that of Totals
}

// Predict says how far a run of a configuration can be trusted. The warnings name what is outside
// the range of the device model.
func (cfg *Config) Predict(host *Host, s *Summary) (*traces.Prediction, []string) {
	p, t := &traces.Prediction{Basis: traces.Measured}, &s.Totals
	var warnings []string
	if t.Requests > 0 {
		warnings = cfg.judgeReads(p, t, cmp.Or(s.Depth, t.MeanDepth))
	}
	warnings = append(warnings, cfg.judgeHost(host, p, s)...)
	interval(p, t, s.Hidden)
	if t.Requests > 0 && s.Prefetched > 0 && cfg.Device.Host.Cores > 0 && cfg.Backend == OnHost {
		rate := float64(t.Tokens) / s.Prefetched.Seconds()
		p.TokensPerSPrefetched = &rate
	}
	return p, warnings
}

// judgeReads compares the mean read of a run with the cells of the fit.
func (cfg *Config) judgeReads(p *traces.Prediction, t *traces.Totals,
	depth float64) (warnings []string) {
	fit := cfg.Device.Fit
	if fit == nil || fit.IntervalPct == nil {
		p.Basis = traces.Bound
		p.Notes = append(p.Notes, "The flash is known by published limits alone, not by a fit "+
			"of measurements: "+whyUnfitted(fit))
		return nil
	}
	chunk := t.Bytes / units.Bytes(t.Requests)
	depth = max(depth, 1)
	if chunk < fit.ChunkMin || chunk > fit.ChunkMax {
		warnings = append(warnings, fmt.Sprintf("extrapolated: requests are of %.3g KiB on "+
			"average, the device model was fitted to %v to %v", float64(chunk)/float64(units.KiB),
			fit.ChunkMin, fit.ChunkMax))
	}
	if depth > float64(fit.DepthMax)*near || depth < float64(fit.DepthMin)/near {
		warnings = append(warnings, fmt.Sprintf("extrapolated: %.3g requests in flight on "+
			"average, the device model was fitted to %d to %d", depth, fit.DepthMin, fit.DepthMax))
	}
	own := func(c devicemodels.Cell) bool { return c.Tainted == "" && c.Engine == cfg.Engine }
	if len(fit.Cells) > 0 && !slices.ContainsFunc(fit.Cells, own) {
		warnings = append(warnings, fmt.Sprintf("extrapolated: no cell of the device model was "+
			"measured with engine %s", cfg.Engine))
	}
	percent := math.Hypot(*fit.IntervalPct, fit.DriftPct)
	switch {
	case len(warnings) > 0:
		p.Basis = traces.Extrapolated
		percent *= beyond
		p.Notes = append(p.Notes, fmt.Sprintf("Outside the range of the fit the interval of the "+
			"flash is taken %d times as wide.", beyond))
	case !slices.ContainsFunc(fit.Cells, func(c devicemodels.Cell) bool {
		return own(c) && about(float64(c.Chunk), float64(chunk)) && about(float64(c.Depth), depth)
	}):
		p.Basis = traces.Interpolated
	}
	p.IOPercent = &percent
	return warnings
}

func whyUnfitted(fit *devicemodels.Fit) string {
	if fit == nil || fit.Unfitted == "" {
		return "its model holds no fit."
	}
	return fit.Unfitted
}

func about(a, b float64) bool { return a <= b*near && b <= a*near }

// judgeHost lists the terms that the times of the host rest on, and sets the basis and the
// interval.
func (cfg *Config) judgeHost(host *Host, p *traces.Prediction, s *Summary) (warnings []string) {
	fit := cfg.Device.Fit
	if cfg.Backend != OnHost {
		return cfg.judgeGPU(host, p)
	}
	if cfg.Device.Host.Cores == 0 {
		p.Basis, p.Compute = traces.Bound, []string{"none: the device is a drive alone"}
		return nil
	}
	for _, t := range host.terms() {
		p.Compute = append(p.Compute, t.String())
	}
	if host.unknown() || float64(s.Bounded) > mostBounded*float64(s.Totals.Wall) {
		p.Basis = traces.Bound
	}
	if fit != nil {
		p.HostPercent = fit.HostPct
	}
	warnings = cfg.judgePrecision(host, p)
	if p.HostPercent == nil && p.Basis != traces.Bound {
		p.Notes = append(p.Notes, "The interval leaves out the host: how well its times are "+
			"known is not stated.")
	}
	return append(warnings, host.compute.Warnings()...)
}

// judgePrecision marks a prediction whose weights have another precision than the rates of the
// host.
func (cfg *Config) judgePrecision(host *Host, p *traces.Prediction) []string {
	if p.Basis == traces.Bound || host.compute.Dense.Basis != devicemodels.Scaled &&
		host.compute.Rows.Basis != devicemodels.Scaled {
		return nil
	}
	p.Basis = traces.Extrapolated
	if p.HostPercent != nil {
		percent := *p.HostPercent * beyond
		p.HostPercent = &percent
		p.Notes = append(p.Notes, fmt.Sprintf("The interval of the host is taken %d times as "+
			"wide for weights of another precision than its rates.", beyond))
	}
	return []string{fmt.Sprintf("extrapolated: the weights are %s, the rates of the host are of %s",
		strings.ToLower(cmp.Or(host.head.DType, "f16")), cmp.Or(cfg.Device.Host.Precision, "f16"))}
}

// judgeGPU lists the terms that the times of a GPU rest on, and notes how the host drives it.
func (cfg *Config) judgeGPU(host *Host, p *traces.Prediction) []string {
	for _, t := range host.compute.Terms() {
		p.Compute = append(p.Compute, t.String())
	}
	p.HostPercent = cfg.Device.GPU.IntervalPct()
	how := "The host waits for the GPU once per token, as generate does. A replay waits after " +
		"every part; --observed simulates that."
	if cfg.Observed {
		how = "The host waits for the GPU after every part, as a replay does."
	}
	p.Notes = append(p.Notes, how)
	if cfg.Device.Host.Cores == 0 {
		p.Basis = traces.Bound
		p.Notes = append(p.Notes, "Nothing is known of the host: its decisions are charged no "+
			"time.")
	}
	return host.compute.Warnings()
}

// interval computes the ends of tokens/s from those of the times. A bound has no lower end.
func interval(p *traces.Prediction, t *traces.Totals, hidden units.Nanos) {
	switch {
	case t.Wall <= 0:
	case p.Basis == traces.Bound:
		high := t.TokensPerS
		p.TokensPerSHigh = &high
	case p.Known():
		short, long := p.Ends(t.Wall, t.PartNanos[traces.PartIO], hidden)
		low, high := float64(t.Tokens)*1e9/long, float64(t.Tokens)*1e9/short
		p.TokensPerSLow, p.TokensPerSHigh = &low, &high
	}
}
