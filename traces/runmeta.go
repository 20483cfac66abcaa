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
	countRange   = bounds.Range[int64]{Least: 0, Most: 1 << 61, Why: "no run has more"}
	jumpRange    = bounds.Range[int64]{Least: -1 << 61, Most: 1 << 61, Why: "no clock goes further"}
)

// check refuses numbers that no Run has. Phases and Totals are compared with the rows.
func (m *RunMeta) check() error {
	var f bounds.First
	count := func(path string, v int64) { bounds.Want(&f, path, v, countRange) }
	bounds.WantIf(&f, "drift_percent", m.DriftPercent, percentRange)
	bounds.Want(&f, "clock_jump_ns", int64(m.ClockJump), jumpRange)
	if p := m.Prediction; p != nil {
		bounds.WantIf(&f, "prediction.io_interval_percent", p.IOPercent, percentRange)
		bounds.WantIf(&f, "prediction.host_interval_percent", p.HostPercent, percentRange)
		bounds.WantIf(&f, "prediction.tokens_per_s_low", p.TokensPerSLow, rateRange)
		bounds.WantIf(&f, "prediction.tokens_per_s_high", p.TokensPerSHigh, rateRange)
		bounds.WantIf(&f, "prediction.tokens_per_s_prefetched", p.TokensPerSPrefetched, rateRange)
	}
	if p := m.Prefetches; p != nil {
		count("ahead.hidden_io_ns", int64(p.Hidden))
		count("ahead.slowed_ns", int64(p.Slowed))
		count("ahead.ahead_bytes", int64(p.Bytes))
		count("ahead.wasted_bytes", int64(p.Wasted))
		count("ahead.named_units", p.Named)
		count("ahead.missed_units", p.Missed)
		count("ahead.chunks", p.Submissions)
	}
	if h := m.Headroom; h != nil {
		count("headroom.kept_units", int64(h.Kept))
		count("headroom.needed_units", h.Needed)
		count("headroom.loads", h.Loads)
		count("headroom.bytes", int64(h.Bytes))
		count("headroom.least_loads", h.Least)
		count("headroom.least_bytes", int64(h.LeastBytes))
		bounds.Want(&f, "headroom.ratio", h.Ratio, ratioRange)
	}
	if f.Path != "" {
		return fmt.Errorf("%s: %v %s", f.Path, f.Value, f.Why)
	}
	return nil
}
