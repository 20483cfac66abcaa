package serving

import (
	"fmt"

	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
)

// Stop is the reason why a run ended before all its requests were served.
type Stop string

// The reasons. GivenUp is for FindRate alone.
const (
	Deadline    Stop = "deadline"
	Interrupted Stop = "interrupted"
	GivenUp     Stop = "given up"
)

// Result has the measures of a load. JSON keys are those of vLLM's benchmark where it has one.
type Result struct {
	Arrived    int64      `json:"arrived"` // before the deadline, if there is one
	Completed  int64      `json:"completed"`
	Failed     int64      `json:"failed"` // whose prompts were computed, and no output
	Unfinished Unfinished `json:"unfinished"`
	Stopped    Stop       `json:"stopped,omitempty"`

	Duration units.Nanos `json:"duration_ns"` // from the first arrival to the end of the last step
	Busy     units.Nanos `json:"busy_ns"`     // in steps
	Steps    int64       `json:"steps"`

	Input int64 `json:"total_input"` // prompt tokens computed
	// output tokens that were computed, each for the next one
	Decode int64 `json:"total_decode"`
	Output int64 `json:"total_output"` // output tokens delivered
	// finished requests of one output token; they are not in TPOT
	Single int64 `json:"single_token"`
	Good   int64 `json:"good_requests"` // that meet the objectives

	// per second of Duration, as are the next three
	RequestThroughput float64 `json:"request_throughput"`
	RequestGoodput    float64 `json:"request_goodput"`
	OutputThroughput  float64 `json:"output_throughput"`
	TokenThroughput   float64 `json:"total_token_throughput"` // prompt and output
	// Attainment is the share of the admissible requests that met the objectives. Admissible are
	// those that arrived, were not refused and did not fail.
	Attainment  float64 `json:"slo_attainment"`
	Utilisation float64 `json:"utilisation"` // Busy/Duration
	PeakBatch   int     `json:"peak_batch"`
	MeanBatch   float64 `json:"mean_batch"` // sequences per step
	// mean number of waiting requests, of those that were admitted (Little's law)
	MeanWaiting float64 `json:"mean_waiting"`

	PeakKV         units.Bytes `json:"peak_kv_bytes"` // keys and values in use after a step
	Bytes          units.Bytes `json:"flash_bytes_read"`
	PeakResident   units.Bytes `json:"peak_held_bytes"`              // rows in memory during a step
	ResidentShare  float64     `json:"held_share"`                   // of all units, on average
	BytesPerToken  float64     `json:"flash_bytes_per_token"`        // computed, prompt or not
	BytesPerOutput float64     `json:"flash_bytes_per_output_token"` // delivered
	NeededShare    float64     `json:"needed_share"`                 // of all units, by a step
	HitRatio       float64     `json:"hit_ratio"`
	Parts          Parts       `json:"parts"`

	TTFT     Latency `json:"ttft"`
	TPOT     Latency `json:"tpot"`
	ITL      Latency `json:"itl"`
	E2E      Latency `json:"e2el"`
	Queueing Latency `json:"queueing"`

	Compute   Compute      `json:"compute"`
	Reads     string       `json:"reads"` // "events", or "table" of the event model
	Basis     traces.Basis `json:"basis"`
	Side      Side         `json:"bound"`               // on which side the bound lies, if Basis is one
	IOPercent *float64     `json:"io_interval_percent"` // of the flash's times; nil = not known
	// the terms of the host's times and their sources
	HostParts []string `json:"host"`
	Notes     []string `json:"notes"`
	Warnings  []string `json:"warnings"`
}

// Side says on which side of a bound the real server lies.
type Side string

// The sides.
const (
	NoSide  Side = "none"    // the times are estimates
	Fastest Side = "fastest" // no real server is faster
	Slowest Side = "slowest" // no real server is slower
	Mixed   Side = "mixed"   // parts of the times are bounds of both sides
)

// Unfinished counts the unfinished requests by reason.
type Unfinished struct {
	Running  int64 `json:"running"`   // when the simulation stopped
	Waiting  int64 `json:"waiting"`   // when the simulation stopped
	TooLong  int64 `json:"too_long"`  // for the model's context: refused
	TooLarge int64 `json:"too_large"` // for the memory of keys and values: refused
}

// Total is their sum.
func (u *Unfinished) Total() int64 { return u.Running + u.Waiting + u.TooLong + u.TooLarge }

// Parts is the time of the steps by part.
type Parts struct {
	Attention units.Nanos `json:"attention_ns"`
	Decide    units.Nanos `json:"decide_ns"`
	IO        units.Nanos `json:"io_ns"`
	Memory    units.Nanos `json:"memory_ns"`
	FFN       units.Nanos `json:"ffn_ns"`
	Other     units.Nanos `json:"other_ns"`
}

// Latency describes durations. Percentiles are nearest ranks within 0.1 %. All are 0 if Count is 0.
type Latency struct {
	Count int64       `json:"count"`
	Mean  units.Nanos `json:"mean_ns"`
	P50   units.Nanos `json:"p50_ns"`
	P90   units.Nanos `json:"p90_ns"`
	P95   units.Nanos `json:"p95_ns"`
	P99   units.Nanos `json:"p99_ns"`
	Max   units.Nanos `json:"max_ns"`
}

func (h *histogram) latency() Latency {
	l := Latency{Count: h.count, P50: h.percentile(50), P90: h.percentile(90),
		P95: h.percentile(95), P99: h.percentile(99), Max: h.max}
	if h.count > 0 {
		l.Mean = units.Nanos(h.sum/float64(h.count) + 0.5)
	}
	return l
}

// sums add up a run.
type sums struct {
	sim.Tally
	arrived, finished, failed, tooLong, tooLarge, queued int64
	good, singleToken                                    int64
	promptTokens, decodeTokens, outputTokens             int64
	steps, batches                                       int64 // sequences over all steps
	peakBatch                                            int
	peakKV                                               units.Bytes
	resident                                             int64 // rows, over all steps
	peakResident                                         int
	busy                                                 units.Nanos
	longestPrompt                                        int
	ttft, tpot, itl, e2e, queueing                       histogram
	stopped                                              Stop
}

// add counts a step.
func (s *sums) add(sequences int, took units.Nanos) {
	s.steps++
	s.batches += int64(sequences)
	s.busy += took
}

// per is a/b, or 0 if b is 0.
func per(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func (r *run) result() *Result {
	s := &r.sum
	t := &Result{
		Arrived: s.arrived, Completed: s.finished, Failed: s.failed, Stopped: s.stopped,
		Duration: r.now,
		Busy:     s.busy, Steps: s.steps,
		Unfinished: Unfinished{Running: int64(len(r.running)), Waiting: s.queued,
			TooLong: s.tooLong, TooLarge: s.tooLarge},
		Input: s.promptTokens, Decode: s.decodeTokens, Output: s.outputTokens,
		Single: s.singleToken, Good: s.good,
		PeakBatch: s.peakBatch, PeakKV: s.peakKV, Bytes: s.Bytes, Compute: r.cfg.Compute,
		Reads: "events",
		TTFT:  s.ttft.latency(), TPOT: s.tpot.latency(), ITL: s.itl.latency(), E2E: s.e2e.latency(),
		Queueing: s.queueing.latency(),
		Parts: Parts{s.Parts[traces.PartAttention], s.Parts[traces.PartPredict],
			s.Parts[traces.PartIO], s.Parts[traces.PartMemory], s.Parts[traces.PartFFN],
			s.Parts[traces.PartOther]},
	}
	switch {
	case r.waiting && r.next.At > r.now:
		t.Arrived-- // read, but not arrived yet
	case r.waiting:
		t.Unfinished.Waiting++
	}
	if r.table != nil {
		t.Reads = "table"
	}
	seconds := t.Duration.Seconds()
	t.RequestThroughput, t.RequestGoodput = per(float64(t.Completed), seconds), per(float64(t.Good),
		seconds)
	t.OutputThroughput, t.TokenThroughput = per(float64(t.Output), seconds),
		per(float64(t.Input+t.Output), seconds)
	t.Attainment = per(float64(t.Good),
		float64(t.Arrived-t.Failed-t.Unfinished.TooLong-t.Unfinished.TooLarge))
	t.Utilisation = per(float64(t.Busy), float64(t.Duration))
	t.MeanBatch, t.MeanWaiting = per(float64(s.batches), float64(s.steps)), per(s.queueing.sum,
		float64(t.Duration))
	t.BytesPerToken, t.BytesPerOutput = per(float64(t.Bytes), float64(t.Input+t.Decode)),
		per(float64(t.Bytes), float64(t.Output))
	needed, all := float64(s.Hits+s.Loads), float64(s.steps)*float64(r.head.Layers)*float64(
		r.head.Units)
	t.NeededShare, t.ResidentShare = per(needed, all), per(float64(s.resident), all)
	t.PeakResident = units.Bytes(s.peakResident) * r.head.UnitBytes
	t.HitRatio = per(float64(s.Hits), needed)
	r.judge(t)
	return t
}

// judge says how far the times can be trusted, with sim.Config.Predict.
func (r *run) judge(t *Result) {
	p, warnings := r.cfg.Sim.Predict(r.machine.Host(), r.sum.Summary(int(t.Input+t.Decode)))
	several := t.Input+t.Decode > t.Steps && r.cfg.Sim.Device.Host.Cores > 0
	t.Basis, t.IOPercent, t.HostParts = p.Basis, p.IOPercent, p.Compute
	t.Side = side(p.Basis, several, r.cfg.Compute)
	t.Notes = append([]string{}, p.Notes...)
	t.Warnings = append(append([]string{}, r.warnings...), warnings...)
	if several {
		t.Notes = append(t.Notes, fmt.Sprintf("Compute of several tokens is a bound (%s): %s.",
			r.cfg.Compute, r.cfg.Compute.meaning()))
		t.Basis = traces.Bound
	}
	if r.sum.longestPrompt > r.prompt.tokens() {
		t.Warnings = append(t.Warnings, fmt.Sprintf("prompts of up to %d tokens repeat the "+
			"trace's %d rows for prompts", r.sum.longestPrompt, r.prompt.tokens()))
	}
}

// meaning describes the bound.
func (c Compute) meaning() string {
	switch c {
	case Peak:
		return "the device's peak of arithmetic is the limit, and real programs are slower"
	case Once:
		return "weights pass once per step and arithmetic is free, so that real times are longer"
	}
	return "every token is computed alone, so that a program which shares weights between " +
		"tokens is faster"
}
