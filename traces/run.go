package traces

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/units"
)

// Part names what a stretch of time of a Run was spent on.
type Part uint8

// The parts of a token, in the order in which they happen. Latency per token = I/O + memory
// management + compute, minus what is overlapped (LLM in a flash, section 3).
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

// NoLayer marks rows of a Run that belong to a token, not to one layer.
const NoLayer = 0xFFFF

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
	// Device is how long a GPU worked on the part, by its own clock, and Wait how long the host
	// waited for it; Dur and Start are the host's. Both are kept and mean something only where
	// RunMeta.Phases is there.
	Device, Wait units.Nanos
}

// RunMeta is everything about a Run that is not a row; it is the `*.run.json` and the metadata of
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
	// by how much the device changed its speed during a measured run; nil = not measured
	DriftPercent *float64 `json:"drift_percent"`
	// of a simulated run: how far it can be trusted; nil = not stated
	Prediction *Prediction `json:"prediction,omitempty"`
	// of a run under a schedule that prefetches; nil = on demand
	Prefetches *Prefetches `json:"ahead,omitempty"`
	// of a simulated run; nil = not computed
	Headroom *Headroom `json:"headroom,omitempty"`
	// of a run on a GPU that has a clock; nil = there was none
	Phases   *Phases         `json:"phases,omitempty"`
	Warnings []string        `json:"warnings"`
	Config   json.RawMessage `json:"config"` // the whole resolved configuration
	Totals   Totals          `json:"totals"`
}

// Basis says what the device model behind a prediction knows of the configuration.
type Basis string

// The bases, from the best to the worst.
const (
	// reads of this size, at this depth, by this engine are a cell of the fit
	Measured     Basis = "measured"
	Interpolated Basis = "interpolated" // they lie between cells of the fit
	Extrapolated Basis = "extrapolated" // they lie outside its range
	// some part of the device is known by its limits alone: the rate is an upper bound
	Bound Basis = "bound"
)

// Weaker returns the basis of a result that rests on both.
func (b Basis) Weaker(other Basis) Basis {
	list := []Basis{Measured, Interpolated, Extrapolated, Bound}
	return list[max(slices.Index(list, b), slices.Index(list, other), 0)]
}

// Prediction says how far a simulated Run can be trusted. Intervals hold nine of ten results.
type Prediction struct {
	Basis Basis `json:"basis"`
	// IOPercent and HostPercent are half-widths of the intervals of the times of the flash and of
	// the host; nil = not known.
	IOPercent   *float64 `json:"io_interval_percent"`
	HostPercent *float64 `json:"host_interval_percent"`
	// TokensPerSLow and TokensPerSHigh follow from them, with both times off in the same direction;
	// a nil end is not known.
	TokensPerSLow  *float64 `json:"tokens_per_s_low"`
	TokensPerSHigh *float64 `json:"tokens_per_s_high"`
	// TokensPerSPrefetched is the rate if the reads of every token went on during its compute, at
	// the memory's expense: more than any prefetching reaches; nil = not known.
	TokensPerSPrefetched *float64 `json:"tokens_per_s_prefetched"`
	Compute              []string `json:"compute"` // what the times of the host are, part by part
	Notes                []string `json:"notes,omitempty"`
}

// Estimate is a rate of the run, in tokens/s, as it is printed: with its interval, or as the bound
// that it is. The interval is of the run's whole rate; for the rate of some of its tokens it is
// taken in proportion.
func (p *Prediction) Estimate(rate, whole float64) document.Estimate {
	e := document.Estimate{Value: whole, Low: p.TokensPerSLow, High: p.TokensPerSHigh,
		Basis: string(p.Basis), Bound: p.Basis == Bound, AtMost: p.Basis == Bound}
	if whole > 0 {
		e = e.Times(rate / whole)
	}
	e.Value = rate
	return e
}

// Time is a time of the run in milliseconds, as it is printed. Of wall, io is spent on reads that
// nothing hides. Where the rate is a bound from above, the time is one from below.
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

// Millis is Time as the cell of a table whose column states the unit, without its interval.
func (p *Prediction) Millis(t units.Nanos) string { return p.Time(t, 0).Cell() }

// Within says how far a part of the times may be off, in percent: p.IOPercent of the flash, or
// p.HostPercent of the host.
func (p *Prediction) Within(percent *float64) string {
	switch {
	case p.Basis == Bound:
		return "bound"
	case percent == nil:
		return "not known"
	}
	return document.Sig3(*percent)
}

// Known says whether the prediction has an interval: of the flash, of the host, or of both.
func (p *Prediction) Known() bool { return p.IOPercent != nil || p.HostPercent != nil }

// Ends are the ends of the interval of a time, in nanoseconds. Of wall, io is spent on reads that
// nothing hides, and hidden is the time of further reads beside compute. Both ends take flash and
// host to be off in the same direction, which is the worst case. Reads stay hidden for as long as
// the compute beside them takes.
func (p *Prediction) Ends(wall, io, hidden units.Nanos) (low, high float64) {
	end := func(sign float64) float64 {
		host := widened(p.HostPercent, sign)
		exposed := float64(float64(io+hidden)*widened(p.IOPercent, sign)) -
			float64(float64(hidden)*host)
		return max(exposed, 0) + float64(float64(wall-io)*host)
	}
	return end(-1), end(1)
}

// widened is the factor of a time at an end of its interval: intervals are of logarithms, so that
// no time becomes negative.
func widened(percent *float64, sign float64) float64 {
	if percent == nil {
		return 1
	}
	return math.Pow(1+*percent/100, sign)
}

// Prefetches are the prefetches of a Run. Its I/O rows then hold only the time that compute waited.
type Prefetches struct {
	Schedule string      `json:"schedule"`     // "lookahead" or "token"
	Hidden   units.Nanos `json:"hidden_io_ns"` // time of reads beside compute
	// by which reads beside compute, and scattering their rows, slowed it down; part of the rows
	Slowed units.Nanos `json:"slowed_ns"`
	Bytes  units.Bytes `json:"ahead_bytes"`  // prefetched; part of the rows
	Wasted units.Bytes `json:"wasted_bytes"` // records prefetched that were not needed
	Named  int64       `json:"named_units"`  // loads that were predicted
	Missed int64       `json:"missed_units"` // loads of a predicted layer that were not
	// submissions of one prefetch batch or several
	Submissions int64 `json:"chunks"`
}

// Phases are what a run on a GPU did, summed over its rows. ComputePhases makes them. Without what
// was decided on the host they add up to the wall time where the host waits for every part; where
// it does not, they overlap and add up to more.
type Phases struct {
	Clock PhaseClock  `json:"clock"`
	Read  units.Nanos `json:"read_ns"` // flash reads into pinned memory, on the host's clock
	// the host's work between reads and rows on the device: lists and launches
	Stage units.Nanos `json:"stage_ns"`
	// rows from pinned memory to their places, on the device's clock
	Scatter units.Nanos `json:"scatter_ns"`
	// attention, feed-forward parts and the output head, on the device's clock
	Compute units.Nanos `json:"compute_ns"`
	// what those, and waiting for the scatter, took the host beyond the device's time: launches and
	// waits
	Sync units.Nanos `json:"sync_ns"`
}

// PhaseClock says where the device's times come from.
type PhaseClock string

// The clocks.
const (
	ClockEvents PhaseClock = "events" // of the device itself
	ClockModel  PhaseClock = "model"  // simulated
)

// PhaseNames are the phases in order, and All their times.
func PhaseNames() []string { return []string{"read", "stage", "scatter", "compute", "sync"} }

// All are the times by PhaseNames.
func (p *Phases) All() [5]units.Nanos {
	return [...]units.Nanos{p.Read, p.Stage, p.Scatter, p.Compute, p.Sync}
}

// ComputePhases sums up the rows of a run whose Device and Wait are known.
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

// Headroom is what a policy reads beside the least that any policy could which keeps as many units
// between two tokens and knows the future (package policy, Bound). Counted are loaded units, also
// those that a policy reads without need: the bound is on reads, not on waits.
type Headroom struct {
	Policy string `json:"policy"`
	// that both may keep between tokens: the most that the policy ever keeps of each layer, summed
	Kept   int   `json:"kept_units"`
	Needed int64 `json:"needed_units"` // by the masks, of all tokens and layers

	Loads int64 `json:"loads"`
	// of Loads: whole units, without what a layout reads between them
	Bytes      units.Bytes `json:"bytes"`
	Least      int64       `json:"least_loads"`
	LeastBytes units.Bytes `json:"least_bytes"`
	// Ratio is Loads / Least: 1 = no other policy reads less. 0 when nothing is needed.
	Ratio float64 `json:"ratio"`
}

// Totals are sums over the rows of a Run. ComputeTotals makes them; a file whose totals disagree
// with its rows is refused.
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
