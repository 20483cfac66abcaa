package traces

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
)

// Part is a part of a token's time in a Run.
type Part uint8

// The parts of a token, in the order in which they happen. The latency of a token is I/O + memory
// management + compute, minus overlaps (LLM in a flash, section 3).
const (
	PartAttention Part = iota // norms, projections, attention over the KV cache
	PartPredict               // reading or computing the mask, policy and layout decisions
	PartIO                    // flash reads, from the first submission to the last completion
	PartMemory                // row-cache copies: insert, delete by swap
	PartFFN                   // mat-vecs on the rows in the cache
	PartOther                 // final norm and output head
	Parts         = 6
)

// String returns the lower-case name used in files and reports.
func (p Part) String() string {
	names := [...]string{"attention", "predict", "io", "memory", "ffn", "other"}
	if int(p) >= len(names) {
		return fmt.Sprintf("part %d", uint8(p))
	}
	return names[p]
}

// NoLayer marks the rows of a Run that belong to a token and to no single layer.
const NoLayer = 0xFFFF

// MostRows bounds the rows of a Run, which are in memory while it is made, and when it is read.
const MostRows = 1 << 26

// NewRows returns room for the rows of a Run of some tokens. Rows beyond MostRows are a refusal of
// MaxTokens, of kind refusal.ErrConfig, before memory is taken.
func NewRows(tokens, layers int) ([]RunRow, error) {
	perToken := layers*(Parts-1) + 1
	if tokens > MostRows/perToken {
		return nil, refusal.Config("{MaxTokens}: a Run of %d tokens of %d layers has more than %d "+
			"rows, which take %v of memory; take %d tokens at most", tokens, layers, MostRows,
			MostRows*units.Bytes(unsafe.Sizeof(RunRow{})), MostRows/perToken)
	}
	return make([]RunRow, 0, tokens*perToken), nil
}

// RunRow is one part of one layer of one token.
type RunRow struct {
	Token     uint32 // index in the trace
	Seq       uint32
	Pos       uint32
	Phase     Phase
	Layer     uint16 // NoLayer for PartOther
	Part      Part
	Start     units.Nanos // since the start of the run
	Dur       units.Nanos
	Bytes     units.Bytes // PartIO: bytes requested from flash; PartMemory: bytes copied; else 0
	Requests  uint32      // PartIO
	Hits      uint32      // PartIO
	Misses    uint32      // PartIO
	Evictions uint32      // PartMemory
	// Depth is the mean number of requests in flight during a PartIO row; 0 elsewhere.
	Depth float32
	// Device is the time that a GPU worked on the part, by the GPU's clock. Wait is the time that
	// the host waited for it. Dur and Start are by the host's clock. Device and Wait are valid only
	// if RunMeta.Phases is set.
	Device, Wait units.Nanos
}

// RunMeta holds all of a Run but its rows. It is the `*.run.json` and the metadata of
// `*.run.arrow`.
type RunMeta struct {
	SchemaVersion string `json:"schema_version"`
	Tool          string `json:"tool"`
	Simulated     bool   `json:"simulated"`
	Emulated      bool   `json:"emulated"` // measured against an emulated device
	Trace         string `json:"trace"`
	TraceSHA256   string `json:"trace_sha256"`
	Device        string `json:"device"`
	Model         string `json:"model"`
	Seed          uint64 `json:"seed"`
	// drift of the device's speed during a measured run; nil = not measured
	DriftPercent *float64 `json:"drift_percent"`
	// ClockJump is how far the wall clock moved against the monotonic one while a run was measured
	// (package internal/clock): the machine slept or its clock was set, and the run fits no device
	// model. 0 = it did not.
	ClockJump units.Nanos `json:"clock_jump_ns,omitempty"`
	// of a simulated run: its basis and interval; nil = not stated
	Prediction *Prediction `json:"prediction,omitempty"`
	// of a run under a schedule that prefetches; nil = on demand
	Prefetches *Prefetches `json:"ahead,omitempty"`
	// of a simulated run; nil = not computed
	Headroom *Headroom `json:"headroom,omitempty"`
	// of a run on a GPU with a clock; nil = no such GPU
	Phases   *Phases         `json:"phases,omitempty"`
	Warnings []string        `json:"warnings"`
	Config   json.RawMessage `json:"config"` // the whole resolved configuration
	Totals   Totals          `json:"totals"`
}

// Kind says in words what a Run is: "simulated", "measured" or "measured, emulated device".
func (m *RunMeta) Kind() string {
	switch {
	case m.Simulated:
		return "simulated"
	case m.Emulated:
		return "measured, emulated device"
	}
	return "measured"
}

// Basis says how the device model knows the configuration of a prediction.
type Basis string

// The bases, from the best to the worst.
const (
	// the fit has a cell with reads of this size, depth and engine
	Measured     Basis = "measured"
	Interpolated Basis = "interpolated" // the configuration lies between cells of the fit
	Extrapolated Basis = "extrapolated" // the configuration lies outside the range of the fit
	// only the limits of some part of the device are known: the rate is an upper bound
	Bound Basis = "bound"
)

// Weaker returns the basis of a result that depends on both.
func (b Basis) Weaker(other Basis) Basis {
	list := []Basis{Measured, Interpolated, Extrapolated, Bound}
	return list[max(slices.Index(list, b), slices.Index(list, other), 0)]
}

// Prediction holds the basis and the intervals of a simulated Run. An interval holds nine of ten
// results.
type Prediction struct {
	Basis Basis `json:"basis"`
	// IOPercent and HostPercent are the half-widths of the intervals of the flash's and the host's
	// times; nil = not known.
	IOPercent   *float64 `json:"io_interval_percent"`
	HostPercent *float64 `json:"host_interval_percent"`
	// TokensPerSLow and TokensPerSHigh are the ends of the rate's interval, with both times off in
	// the same direction; nil = not known.
	TokensPerSLow  *float64 `json:"tokens_per_s_low"`
	TokensPerSHigh *float64 `json:"tokens_per_s_high"`
	// TokensPerSPrefetched is the rate if all reads of a token ran during its compute, which takes
	// memory. It bounds the rate of every prefetching schedule from above; nil = not known.
	TokensPerSPrefetched *float64 `json:"tokens_per_s_prefetched"`
	Compute              []string `json:"compute"` // by part, the source of the host's times
	Notes                []string `json:"notes,omitempty"`
}

// Estimate is a rate of the run in tokens/s as it is printed: with its interval, or as a bound. The
// interval is that of the whole run's rate; for a rate over some of the tokens it is scaled in
// proportion.
func (p *Prediction) Estimate(rate, whole float64) document.Estimate {
	e := document.Estimate{Value: whole, Low: p.TokensPerSLow, High: p.TokensPerSHigh,
		Basis: string(p.Basis), Bound: p.Basis == Bound, AtMost: p.Basis == Bound}
	if whole > 0 {
		e = e.Times(rate / whole)
	}
	e.Value = rate
	return e
}

// Time is a time of the run in milliseconds as it is printed. io is the part of wall that waits for
// reads. If the rate is an upper bound, the time is a lower bound.
func (p *Prediction) Time(wall, io units.Nanos) document.Estimate {
	e := document.Estimate{Value: float64(wall) / 1e6, Basis: string(p.Basis),
		Bound: p.Basis == Bound}
	if !e.Bound && p.Known() {
		low, high := p.Ends(wall, io, 0)
		low, high = low/1e6, high/1e6
		e.Low, e.High = &low, &high
	}
	return e
}

// Millis is Time without its interval, as a cell of a table whose column states the unit.
func (p *Prediction) Millis(t units.Nanos) string { return p.Time(t, 0).Cell() }

// Within prints the half-width of an interval in percent: p.IOPercent of the flash or p.HostPercent
// of the host.
func (p *Prediction) Within(percent *float64) string {
	switch {
	case p.Basis == Bound:
		return "bound"
	case percent == nil:
		return "not known"
	}
	return document.Sig3(*percent)
}

// Known reports whether the prediction has an interval: of the flash, of the host, or of both.
func (p *Prediction) Known() bool { return p.IOPercent != nil || p.HostPercent != nil }

// Ends returns the ends of the interval of a time, in nanoseconds. io is the part of wall that
// waits for reads; hidden is the time of further reads during compute. Both ends assume that flash
// and host are off in the same direction, the worst case. Reads stay hidden as long as the compute
// beside them takes.
func (p *Prediction) Ends(wall, io, hidden units.Nanos) (low, high float64) {
	end := func(sign float64) float64 {
		host := widened(p.HostPercent, sign)
		exposed := float64(float64(io+hidden)*widened(p.IOPercent, sign)) -
			float64(float64(hidden)*host)
		return max(exposed, 0) + float64(float64(wall-io)*host)
	}
	return end(-1), end(1)
}

// widened returns the factor of a time at an end of its interval. Intervals are of logarithms, so
// that no time becomes negative.
func widened(percent *float64, sign float64) float64 {
	if percent == nil {
		return 1
	}
	return math.Pow(1+*percent/100, sign)
}

// Prefetches are the prefetches of a Run. Its I/O rows then hold only the time that compute waited.
type Prefetches struct {
	Schedule string      `json:"schedule"`     // "lookahead" or "token"
	Hidden   units.Nanos `json:"hidden_io_ns"` // time of reads during compute
	// time by which prefetches and the scatter of their rows slowed compute; part of the rows
	Slowed units.Nanos `json:"slowed_ns"`
	Bytes  units.Bytes `json:"ahead_bytes"`  // prefetched; part of the rows
	Wasted units.Bytes `json:"wasted_bytes"` // prefetched records that were not needed
	Named  int64       `json:"named_units"`  // predicted loads
	Missed int64       `json:"missed_units"` // loads that a prediction missed: read on demand
	// submissions, of one prefetch batch or more
	Submissions int64 `json:"chunks"`
}

// Phases are the times of a run on a GPU, summed over its rows. ComputePhases makes them. If the
// host waits for every part, they and the time of decisions on the host add up to the wall time. If
// it does not, parts overlap and add up to more.
type Phases struct {
	Clock PhaseClock  `json:"clock"`
	Read  units.Nanos `json:"read_ns"` // flash reads into pinned memory, on the host's clock
	// the host's work between reads and rows on the device: lists and launches
	Stage units.Nanos `json:"stage_ns"`
	// copies of rows from pinned memory to their slots, on the device's clock
	Scatter units.Nanos `json:"scatter_ns"`
	// attention, feed-forward blocks and the output head, on the device's clock
	Compute units.Nanos `json:"compute_ns"`
	// time of the host beyond the device's time for these and for the scatter: launches and waits
	Sync units.Nanos `json:"sync_ns"`
}

// PhaseClock is the source of the device's times.
type PhaseClock string

// The sources.
const (
	ClockEvents PhaseClock = "events" // of the device itself
	ClockModel  PhaseClock = "model"  // simulated
)

// PhaseNames lists the phases in order. All lists their times.
func PhaseNames() []string { return []string{"read", "stage", "scatter", "compute", "sync"} }

// All returns the times in the order of PhaseNames.
func (p *Phases) All() [5]units.Nanos {
	return [...]units.Nanos{p.Read, p.Stage, p.Scatter, p.Compute, p.Sync}
}

// ComputePhases sums the rows of a run whose Device and Wait are known.
func ComputePhases(rows []RunRow, clock PhaseClock) *Phases {
	p := &Phases{Clock: clock}
	for i := range rows {
		switch r := &rows[i]; r.Part {
		case PartPredict:
		case PartIO:
			p.Read += r.Dur
		case PartMemory:
			p.Stage += max(r.Dur-r.Wait, 0)
			p.Scatter += r.Device
			p.Sync += max(r.Wait-r.Device, 0)
		default:
			p.Compute += r.Device
			p.Sync += max(r.Dur-r.Device, 0)
		}
	}
	return p
}

// Headroom compares a policy's loads with Belady's bound at the same capacity (package policy,
// Bound). It counts all loaded units, including those that a policy reads without need: the bound
// is on reads, not on waits.
type Headroom struct {
	Policy string `json:"policy"`
	// capacity of both: the most units that the policy keeps between two tokens, summed over layers
	Kept   int   `json:"kept_units"`
	Needed int64 `json:"needed_units"` // by the masks, of all tokens and layers

	Loads int64 `json:"loads"`
	// bytes of Loads: whole units, without the gaps that a layout reads between them
	Bytes      units.Bytes `json:"bytes"`
	Least      int64       `json:"least_loads"`
	LeastBytes units.Bytes `json:"least_bytes"`
	// Ratio is Loads / Least. 1 = no policy loads less; 0 = no unit is needed.
	Ratio float64 `json:"ratio"`
}

// Totals are sums over the rows of a Run, made by ComputeTotals. ReadRun refuses a file whose
// totals differ from its rows.
type Totals struct {
	Tokens       int                `json:"tokens"`
	Wall         units.Nanos        `json:"wall_ns"`
	TokensPerS   float64            `json:"tokens_per_s"`
	PartNanos    [Parts]units.Nanos `json:"part_ns"` // by Part
	Bytes        units.Bytes        `json:"flash_bytes_read"`
	Requests     int64              `json:"requests"`
	Hits         int64              `json:"hits"`
	Misses       int64              `json:"misses"`
	Evictions    int64              `json:"evictions"`
	MeanDepth    float64            `json:"mean_depth"` // time-weighted over PartIO
	HitRatio     float64            `json:"hit_ratio"`
	BytesWritten units.Bytes        `json:"flash_bytes_written"` // always 0: invariant 9
}

// Run is the result of a simulated or a measured execution.
type Run struct {
	Meta RunMeta
	Rows []RunRow // ordered by (token, layer, part); token-level rows last
}
