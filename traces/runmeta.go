package traces

import (
	"fmt"

	"github.com/windrow-sim/windrow/internal/bounds"
)

// The ranges of numbers in the description of a Run that its rows do not say again.
var (
	percentRange = bounds.Range[float64]{Least: 0, Most: 1e9, Why: "a share beyond is no error"}
	rateRange    = bounds.Range[float64]{Least: 0, Most: 1e12, Why: "no machine makes more tokens"}
	ratioRange   = bounds.Range[float64]{Least: 0, Most: 1e18, Why: "no trace has more loads"}
	countRange   = bounds.Range[int64]{Least: 0, Most: 1 << 62, Why: "no run has more"}
	jumpRange    = bounds.Range[int64]{Least: -1 << 61, Most: 1 << 61, Why: "no clock goes further"}
)

// check refuses numbers that no Run has. Phases and Totals are compared with the rows.
func (m *RunMeta) check() error {
	var first error
	number := func(path string, v *float64, r bounds.Range[float64]) {
		if v != nil && !r.Has(*v) && first == nil {
			first = fmt.Errorf("%s: %g %s", path, *v, r.Refuse(*v))
		}
	}
	count := func(path string, v int64, r bounds.Range[int64]) {
		if !r.Has(v) && first == nil {
			first = fmt.Errorf("%s: %d %s", path, v, r.Refuse(v))
		}
	}
	number("drift_percent", m.DriftPercent, percentRange)
	count("clock_jump_ns", int64(m.ClockJump), jumpRange)
	if p := m.Prediction; p != nil {
		number("prediction.io_interval_percent", p.IOPercent, percentRange)
		number("prediction.host_interval_percent", p.HostPercent, percentRange)
		number("prediction.tokens_per_s_low", p.TokensPerSLow, rateRange)
		number("prediction.tokens_per_s_high", p.TokensPerSHigh, rateRange)
		number("prediction.tokens_per_s_prefetched", p.TokensPerSPrefetched, rateRange)
	}
	if p := m.Prefetches; p != nil {
		count("ahead.hidden_io_ns", int64(p.Hidden), countRange)
		count("ahead.slowed_ns", int64(p.Slowed), countRange)
		count("ahead.ahead_bytes", int64(p.Bytes), countRange)
		count("ahead.wasted_bytes", int64(p.Wasted), countRange)
		count("ahead.named_units", p.Named, countRange)
		count("ahead.missed_units", p.Missed, countRange)
		count("ahead.chunks", p.Submissions, countRange)
	}
	if h := m.Headroom; h != nil {
		count("headroom.kept_units", int64(h.Kept), countRange)
		count("headroom.needed_units", h.Needed, countRange)
		count("headroom.loads", h.Loads, countRange)
		count("headroom.bytes", int64(h.Bytes), countRange)
		count("headroom.least_loads", h.Least, countRange)
		count("headroom.least_bytes", int64(h.LeastBytes), countRange)
		number("headroom.ratio", &h.Ratio, ratioRange)
	}
	return first
}
