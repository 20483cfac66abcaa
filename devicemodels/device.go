package devicemodels

import (
	"github.com/windrow-sim/windrow/internal/units"
)

// Device is everything the simulator knows about a machine: its flash, and how fast the host computes. It is immutable
// and is what a `*.device.yaml` says. Every number has a source: Source for all of them, Sources["flash.ltfb"] for one.
type Device struct {
	Version string            `yaml:"version" json:"version"` // format version, "1"
	Name    string            `yaml:"name" json:"name"`
	Source  string            `yaml:"source" json:"source"`
	Sources map[string]string `yaml:"sources,omitempty" json:"sources,omitempty"`
	Flash   Flash             `yaml:"flash" json:"flash"`
	Host    Host              `yaml:"host" json:"host"`
	Fit     *Fit              `yaml:"fit,omitempty" json:"fit,omitempty"`
}

// Flash is a station of k parallel servers behind one shared link:
//
//	a request waits for a free server (first come, first served), keeps it for LTFB + bytes/ServerRate,
//	and moves its bytes over the link (one request at a time, at LinkRate) as they come: it is done when both are.
//
// LTFB is the latency to first byte, the part of a read's time that does not depend on its size (LLM in a flash, 2.1).
type Flash struct {
	Servers    int         `yaml:"servers" json:"servers"`
	LTFB       units.Nanos `yaml:"ltfb" json:"ltfb"`
	ServerRate units.Rate  `yaml:"server_rate" json:"server_rate"` // per server; 0 = no limit
	LinkRate   units.Rate  `yaml:"link_rate" json:"link_rate"`     // shared; 0 = no limit
	MaxIOPS    int64       `yaml:"max_iops,omitempty" json:"max_iops,omitempty"`
	Align      units.Bytes `yaml:"align" json:"align"` // smallest direct read
	// Engines gives the host's cost of using the device, by engine name ("pread", "uring", ...).
	Engines map[string]EngineCost `yaml:"engines" json:"engines"`
}

// EngineCost is host time spent per batch and per request. A pread pool spends the per-request cost on as many cores as the
// host has; a ring spends it on one.
type EngineCost struct {
	Batch    units.Nanos `yaml:"batch" json:"batch"`       // once per batch: waking the workers, or one system call
	Submit   units.Nanos `yaml:"submit" json:"submit"`     // per request, before the device sees it
	Complete units.Nanos `yaml:"complete" json:"complete"` // per request, after the device is done
	Serial   bool        `yaml:"serial,omitempty" json:"serial,omitempty"`
}

// Host is how fast memory and arithmetic are. Rates count bytes of weights (or of rows copied) per second as measured with
// the engine's own kernels, so they contain their arithmetic.
type Host struct {
	Cores      int         `yaml:"cores" json:"cores"`
	MemoryRate units.Rate  `yaml:"memory_rate" json:"memory_rate"` // plain streaming read, all cores: the roofline
	DenseRate  units.Rate  `yaml:"dense_rate" json:"dense_rate"`   // mat-vec over resident fp16 weights
	DenseFixed units.Nanos `yaml:"dense_fixed" json:"dense_fixed"` // per mat-vec call
	RowRate    units.Rate  `yaml:"row_rate" json:"row_rate"`       // FFN over scattered rows: dot and axpy
	RowFixed   units.Nanos `yaml:"row_fixed" json:"row_fixed"`     // per layer
	CopyRate   units.Rate  `yaml:"copy_rate" json:"copy_rate"`     // row-cache copies, bytes moved once
	CopyFixed  units.Nanos `yaml:"copy_fixed" json:"copy_fixed"`   // per copied row
	KVRate     units.Rate  `yaml:"kv_rate" json:"kv_rate"`         // reading keys and values in attention
	LayerFixed units.Nanos `yaml:"layer_fixed" json:"layer_fixed"` // norms, residuals, bookkeeping per layer
	TokenFixed units.Nanos `yaml:"token_fixed" json:"token_fixed"` // final norm and what else the output head's mat-vec does not explain, per token
	// Policy and layout decisions: per layer, and per unit that the layer needs.
	DecideFixed units.Nanos `yaml:"decide_fixed" json:"decide_fixed"`
	DecideUnit  units.Nanos `yaml:"decide_unit" json:"decide_unit"`
}

// Fit says where a fitted model holds and how well.
type Fit struct {
	When        string      `yaml:"when" json:"when"` // RFC 3339
	Mode        string      `yaml:"mode" json:"mode"` // e.g. "pread direct ext4"
	ChunkMin    units.Bytes `yaml:"chunk_min" json:"chunk_min"`
	ChunkMax    units.Bytes `yaml:"chunk_max" json:"chunk_max"`
	DepthMin    int         `yaml:"depth_min" json:"depth_min"`
	DepthMax    int         `yaml:"depth_max" json:"depth_max"`
	MeanAbsPct  float64     `yaml:"mean_abs_percent" json:"mean_abs_percent"` // residuals of the throughput
	WorstAbsPct float64     `yaml:"worst_abs_percent" json:"worst_abs_percent"`
	DriftPct    float64     `yaml:"drift_percent" json:"drift_percent"` // of a reference cell during the probe
	Warnings    []string    `yaml:"warnings,omitempty" json:"warnings,omitempty"`
	Cells       []Cell      `yaml:"cells" json:"cells"`
}

// Cell is one measured point of the grid, and what the fitted model says of it.
type Cell struct {
	Engine  string      `yaml:"engine" json:"engine"`
	Chunk   units.Bytes `yaml:"chunk" json:"chunk"`
	Depth   int         `yaml:"depth" json:"depth"`
	Reads   int         `yaml:"reads" json:"reads"`
	Rate    units.Rate  `yaml:"rate" json:"rate"`   // measured
	Model   units.Rate  `yaml:"model" json:"model"` // closed form of the fit
	P50     units.Nanos `yaml:"p50" json:"p50"`     // of one read, as its thread saw it
	P99     units.Nanos `yaml:"p99" json:"p99"`
	Tainted string      `yaml:"tainted,omitempty" json:"tainted,omitempty"` // why the cell was left out of the fit
}
