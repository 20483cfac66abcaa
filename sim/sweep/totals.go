package sweep

import (
	"maps"
	"math/bits"
	"slices"

	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
)

// Timing says how the reads of a configuration were timed.
type Timing string

// The timings.
const (
	ByTable  Timing = "table"
	ByEvents Timing = "events"
)

// Result is one configuration with its figures. Times are of the whole trace unless stated
// otherwise.
type Result struct {
	Index int `json:"configuration"` // in the whole sweep, from 0
	// sequences per step; 0 = the trace as it is, token by token
	Batch int `json:"batch"`
	// of a what-if variant of the trace; nil = the trace's own
	Share *float64 `json:"active_share"`
	// FalseNegatives and FalsePositives are of a what-if predictor; nil = the trace's own predicted
	// masks.
	FalseNegatives *float64    `json:"false_negatives"`
	FalsePositives *float64    `json:"false_positives"`
	Device         string      `json:"device"`
	Backend        sim.Backend `json:"backend,omitempty"` // empty = the host computes
	Predicted      bool        `json:"predicted"`
	PredictorRank  int         `json:"predictor_rank"`
	Policy         string      `json:"policy"` // in the text form of internal/decisions/policy
	Gap            int         `json:"gap_records"`
	Coalesce       bool        `json:"coalesce"`
	Align          units.Bytes `json:"align_bytes"`
	Chunk          units.Bytes `json:"chunk_bytes"` // 0 = no limit
	Engine         string      `json:"engine"`
	Parallel       int         `json:"parallel"`

	Timing Timing `json:"timing"`
	// AuditPercent is the error of the table on the audited batches; nil if there is no table.
	AuditPercent *float64 `json:"audit_percent"`

	Tokens     int     `json:"tokens"` // of all sequences of a batch
	TokensPerS float64 `json:"tokens_per_s"`
	// ends of the interval that holds nine of ten results; nil = not known
	Low  *float64 `json:"tokens_per_s_low"`
	High *float64 `json:"tokens_per_s_high"`
	// a bound, see traces.Prediction
	Prefetched *float64     `json:"tokens_per_s_prefetched"`
	Basis      traces.Basis `json:"basis"`
	// quantiles of the latency of a token or step, within 0.4 %
	TokenP50  units.Nanos        `json:"token_p50_ns"`
	TokenP99  units.Nanos        `json:"token_p99_ns"`
	Wall      units.Nanos        `json:"wall_ns"`
	Parts     [traces.Parts]Part `json:"parts"`
	Bytes     units.Bytes        `json:"flash_bytes_read"`
	Requests  int64              `json:"requests"`
	MeanDepth float64            `json:"mean_depth"`
	Hits      int64              `json:"hits"`
	Misses    int64              `json:"misses"`
	// Belady's bound at the same capacity, see sim.Config.Headroom; nil = not computed
	Least     *int64  `json:"least_misses"`
	Evictions int64   `json:"evictions"`
	HitRatio  float64 `json:"hit_ratio"`
	// largest row cache during a token, over all layers
	CachedBytes units.Bytes `json:"cached_bytes_max"`
	Warnings    []string    `json:"warnings,omitempty"`
}

// Part is the time of one part of all tokens.
type Part struct {
	Name  string      `json:"part"`
	Nanos units.Nanos `json:"ns"`
}

// totals adds up one configuration, token by token.
type totals struct {
	tokens  int // or steps
	sojourn units.Nanos
	summary sim.Summary
	latency latencies
}

func (t *totals) add(h *hostTimes, token int, io, sojourn units.Nanos, moved units.Bytes) {
	host, last := &h.sums[token], &h.last[token]
	parts := &t.summary.Totals.PartNanos
	parts[traces.PartAttention] += host.Attention
	parts[traces.PartPredict] += host.Predict
	parts[traces.PartIO] += io
	parts[traces.PartMemory] += host.Memory
	parts[traces.PartFFN] += host.FFN
	parts[traces.PartOther] += last.Other
	t.summary.Bounded += host.Bounded + last.Bounded
	rest := host.Sum() + last.Other
	t.summary.Prefetched += h.host.Overlap(io, moved, rest, host.Traffic+last.Traffic)
	t.whole(io+rest, sojourn)
}

// whole adds the time of a token.
func (t *totals) whole(took, sojourn units.Nanos) {
	t.sojourn += sojourn
	t.summary.Totals.Wall += took
	t.latency.add(took)
	t.tokens++
}

// result returns the figures of a finished configuration.
func (r *simulation) result(index int, trace *Trace) Result {
	d, s, t := r.decisions, &r.total.summary, &r.total.summary.Totals
	t.Tokens, t.Bytes, t.Requests = r.total.tokens*trace.perToken(), r.requests.sum, r.chunk.sum
	t.Hits, t.Misses, t.Evictions = d.hits, d.misses, d.evictions
	if t.Wall > 0 {
		t.TokensPerS = float64(t.Tokens) / t.Wall.Seconds()
	}
	if io := t.PartNanos[traces.PartIO]; io > 0 {
		t.MeanDepth = float64(r.total.sojourn) / float64(io)
	}
	if n := t.Hits + t.Misses; n > 0 {
		t.HitRatio = float64(t.Hits) / float64(n)
	}
	p, warnings := r.cfg.Predict(r.host.host, s)
	out := Result{
		Index: index, Device: r.cfg.Device.Name, Backend: r.cfg.Backend, Predicted: r.cfg.Predicted,
		PredictorRank: r.cfg.PredictorRank, Policy: r.cfg.Policy.String(),
		Gap: r.cfg.Layout.Gap, Coalesce: r.cfg.Layout.Coalesce, Align: r.cfg.Layout.Align,
		Chunk:  r.cfg.Layout.MaxRequest,
		Engine: r.cfg.Engine, Parallel: r.cfg.Parallel, Timing: ByEvents,
		Tokens: t.Tokens, TokensPerS: t.TokensPerS, Low: p.TokensPerSLow, High: p.TokensPerSHigh,
		Prefetched: p.TokensPerSPrefetched, Basis: p.Basis,
		TokenP50: r.total.latency.quantile(0.5), TokenP99: r.total.latency.quantile(0.99),
		Wall:  t.Wall,
		Bytes: t.Bytes, Requests: t.Requests, MeanDepth: t.MeanDepth, Hits: t.Hits,
		Misses: t.Misses, Evictions: t.Evictions, HitRatio: t.HitRatio,
		CachedBytes: units.Bytes(d.mostResident) * trace.Header().UnitBytes, Warnings: warnings,
	}
	for i := range out.Parts {
		out.Parts[i] = Part{traces.Part(i).String(), t.PartNanos[i]}
	}
	if r.table != nil {
		off := r.off()
		out.Timing, out.AuditPercent = ByTable, &off
	}
	return out
}

// latencies counts times in log-linear bins, at most 1/128 of a time wide. Its memory does not grow
// with the trace.
type latencies struct {
	bins  map[int]int
	total int
}

const latencySteps = 7 // bits

func (l *latencies) add(t units.Nanos) {
	if l.bins == nil {
		l.bins = map[int]int{}
	}
	bin := int(t)
	if octave := bits.Len64(uint64(t)) - 1 - latencySteps; octave > 0 {
		bin = (octave << latencySteps) + int(t>>octave)
	}
	l.bins[bin]++
	l.total++
}

// quantile is the middle of the first bin with a share q of the times in it or below.
func (l *latencies) quantile(q float64) units.Nanos {
	left := q * float64(l.total)
	for _, bin := range slices.Sorted(maps.Keys(l.bins)) {
		if left -= float64(l.bins[bin]); left > 0 {
			continue
		}
		octave := bin>>latencySteps - 1
		if octave <= 0 {
			return units.Nanos(bin)
		}
		return units.Nanos(bin-octave<<latencySteps)<<octave + 1<<octave>>1
	}
	return 0
}
