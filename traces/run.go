package traces

import (
	"encoding/json"
	"fmt"

	"github.com/windrow-sim/windrow/internal/units"
)

// Part names what a stretch of time of a Run was spent on.
type Part uint8

// The parts of a token, in the order in which they happen. Latency per token = I/O + memory management + compute,
// minus what is overlapped (LLM in a flash, section 3).
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
}

// RunMeta is everything about a Run that is not a row; it is the `*.run.json` and the metadata of `*.run.arrow`.
type RunMeta struct {
	SchemaVersion string          `json:"schema_version"`
	Tool          string          `json:"tool"`
	Simulated     bool            `json:"simulated"`
	Emulated      bool            `json:"emulated"` // measured against an emulated device
	Trace         string          `json:"trace"`
	TraceSHA256   string          `json:"trace_sha256"`
	Device        string          `json:"device"`
	Model         string          `json:"model"`
	Seed          uint64          `json:"seed"`
	DriftPercent  *float64        `json:"drift_percent"` // by how much the device changed its speed during a measured run; nil = not measured
	Warnings      []string        `json:"warnings"`
	Config        json.RawMessage `json:"config"` // the whole resolved configuration
	Totals        Totals          `json:"totals"`
}

// Totals are sums over the rows of a Run. ComputeTotals makes them; a file whose totals disagree with its rows is refused.
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
