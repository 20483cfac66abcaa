package sweep

import (
	"fmt"

	"github.com/windrow-sim/windrow/internal/bounds"
	"github.com/windrow-sim/windrow/traces"
)

// The ranges of numbers in a file of results.
var (
	configurationRange = bounds.Range[int]{Least: 0, Most: mostConfigurations,
		Why: "no sweep has more"}
	settingRange = bounds.Range[int64]{Least: 0, Most: 1 << 59, Why: "no configuration has more"}
	amountRange  = bounds.Range[int64]{Least: 0, Most: 1 << 61, Why: "no simulation has more"}
	figureRange  = bounds.Range[float64]{Least: 0, Most: 1e18, Why: "no simulation has more"}
	errorRange   = bounds.Range[float64]{Least: -1e9, Most: 1e9, Why: "no table is further off"}
	partRange    = bounds.Range[float64]{Least: 0, Most: 1, Why: "it is a share"}
)

// named is a number with its path.
type named[T any] struct {
	path string
	v    T
}

// check finds numbers that no sweep has. The scenario is not read again.
func (h *Header) check() (f bounds.First) {
	bounds.Want(&f, "tokens", int64(h.Tokens), amountRange)
	bounds.Want(&f, "configurations", h.Configurations, configurationRange)
	bounds.Want(&f, "shard.index", h.Shard.Index, configurationRange)
	bounds.Want(&f, "shard.count", h.Shard.Count, configurationRange)
	return f
}

// check finds numbers that no configuration and no simulation has.
func (r *Result) check() (f bounds.First) {
	bounds.Want(&f, "configuration", r.Index, configurationRange)
	for _, n := range []named[int64]{{"batch", int64(r.Batch)},
		{"predictor_rank", int64(r.PredictorRank)}, {"gap_records", int64(r.Gap)},
		{"align_bytes", int64(r.Align)}, {"chunk_bytes", int64(r.Chunk)},
		{"parallel", int64(r.Parallel)},
	} {
		bounds.Want(&f, n.path, n.v, settingRange)
	}
	for _, n := range []named[*float64]{{"active_share", r.Share},
		{"false_negatives", r.FalseNegatives}, {"false_positives", r.FalsePositives},
		{"hit_ratio", &r.HitRatio}} {
		bounds.WantIf(&f, n.path, n.v, partRange)
	}
	bounds.WantIf(&f, "audit_percent", r.AuditPercent, errorRange)
	for _, n := range []named[*float64]{{"tokens_per_s", &r.TokensPerS},
		{"tokens_per_s_low", r.Low}, {"tokens_per_s_high", r.High},
		{"tokens_per_s_prefetched", r.Prefetched}, {"mean_depth", &r.MeanDepth}} {
		bounds.WantIf(&f, n.path, n.v, figureRange)
	}
	for _, n := range []named[int64]{{"tokens", int64(r.Tokens)},
		{"token_p50_ns", int64(r.TokenP50)}, {"token_p99_ns", int64(r.TokenP99)},
		{"wall_ns", int64(r.Wall)}, {"flash_bytes_read", int64(r.Bytes)}, {"requests", r.Requests},
		{"hits", r.Hits}, {"misses", r.Misses}, {"evictions", r.Evictions},
		{"cached_bytes_max", int64(r.CachedBytes)}} {
		bounds.Want(&f, n.path, n.v, amountRange)
	}
	bounds.WantIf(&f, "least_misses", r.Least, amountRange)
	for p := range traces.Parts {
		bounds.Want(&f, fmt.Sprintf("parts[%d].ns", p), int64(r.Parts[p].Nanos), amountRange)
	}
	return f
}
