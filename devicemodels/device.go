package devicemodels

import (
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/units"
)

// Device describes a machine to the simulator: its flash, its host and its GPU. It is immutable and
// has the content of a `*.device.yaml` file. Every number has a source: Source for all of them,
// Sources["flash.ltfb"] for one.
type Device struct {
	Version string            `yaml:"version" json:"version"` // format version, "1"
	Name    string            `yaml:"name" json:"name"`
	Source  string            `yaml:"source" json:"source"`
	Sources map[string]string `yaml:"sources,omitempty" json:"sources,omitempty"`
	Flash   flash.Spec        `yaml:"flash" json:"flash"`
	Host    Host              `yaml:"host" json:"host"`
	// nil = not measured, or there is none
	GPU *GPU `yaml:"gpu,omitempty" json:"gpu,omitempty"`
	Fit *Fit `yaml:"fit,omitempty" json:"fit,omitempty"`
	// Calibrated names the numbers that were chosen so that the simulator gives published rows.
	Calibrated []Calibration `yaml:"calibrated,omitempty" json:"calibrated,omitempty"`
}

// Calibration is a number that was fitted to published times by running the simulator.
type Calibration struct {
	Term string   `yaml:"term" json:"term"` // a field of the device: "host.copy_rate"
	Rows []string `yaml:"rows" json:"rows"` // of "windrow reproduce", by id
}

// Host holds the rates of memory and arithmetic. A rate counts bytes of weights, or of copied rows,
// per second. It is measured with the engine's kernels, so it includes their arithmetic. Host.At
// turns rates into times (host.go). A rate of 0 is not known; the roofline replaces it where there
// is one.
type Host struct {
	Cores int `yaml:"cores" json:"cores"`
	// Precision names the weights that DenseRate and RowRate are of: "f16", "bf16", "f32" or "q8".
	// Empty is f16.
	Precision string `yaml:"precision,omitempty" json:"precision,omitempty"`
	// plain streaming read, all cores: the roofline
	MemoryRate units.Rate `yaml:"memory_rate" json:"memory_rate"`
	// mat-vec over resident weights of Precision
	DenseRate  units.Rate  `yaml:"dense_rate" json:"dense_rate"`
	DenseFixed units.Nanos `yaml:"dense_fixed" json:"dense_fixed"` // per mat-vec call
	// FFN over scattered rows of Precision: dot and axpy
	RowRate  units.Rate  `yaml:"row_rate" json:"row_rate"`
	RowFixed units.Nanos `yaml:"row_fixed" json:"row_fixed"` // per layer
	// row-cache copies, bytes moved once
	CopyRate  units.Rate  `yaml:"copy_rate" json:"copy_rate"`
	CopyFixed units.Nanos `yaml:"copy_fixed" json:"copy_fixed"` // per copied row
	// reading keys and values in attention
	KVRate units.Rate `yaml:"kv_rate" json:"kv_rate"`
	// norms, residuals, bookkeeping per layer
	LayerFixed units.Nanos `yaml:"layer_fixed" json:"layer_fixed"`
	// final norm, and all of the output head that its mat-vec does not explain, per token
	TokenFixed units.Nanos `yaml:"token_fixed" json:"token_fixed"`
	// Policy and layout decisions: per layer, and per unit that the layer needs.
	DecideFixed units.Nanos `yaml:"decide_fixed" json:"decide_fixed"`
	DecideUnit  units.Nanos `yaml:"decide_unit" json:"decide_unit"`

	// The fields below are optional: 0 means that the machine lacks the part or does not need it.

	// Precisions gives the rates for other weights than those of Precision, by name.
	Precisions map[string]Precision `yaml:"precisions,omitempty" json:"precisions,omitempty"`
	// ResidentRows says that the FFN multiplies all rows in memory, needed or not, as the engine of
	// "LLM in a flash" does (section 3.3: matrix[:num_rows]). The engine of this program multiplies
	// the needed rows alone.
	ResidentRows bool `yaml:"resident_rows,omitempty" json:"resident_rows,omitempty"`
	// ComputeGFLOPS is the peak of arithmetic in 10⁹ operations per second, the other side of the
	// roofline. A multiply-add is two operations.
	ComputeGFLOPS float64 `yaml:"compute_gflops,omitempty" json:"compute_gflops,omitempty"`
	// PredictorRate is the rate of a mat-vec over a predictor's weights, which are small; 0 = the
	// dense rate.
	PredictorRate units.Rate `yaml:"predictor_rate,omitempty" json:"predictor_rate,omitempty"`
	// Loaded rows reach an accelerator with its own memory over a bus: TransferFixed per batch, and
	// the bytes at TransferRate.
	TransferRate  units.Rate  `yaml:"transfer_rate,omitempty" json:"transfer_rate,omitempty"`
	TransferFixed units.Nanos `yaml:"transfer_fixed,omitempty" json:"transfer_fixed,omitempty"`
	// Accelerator says that a processor of its own computes: reads and row copies take no cores
	// from it. With a TransferRate, a SyncFixed or a HeldRate there is one.
	Accelerator bool `yaml:"accelerator,omitempty" json:"accelerator,omitempty"`
	// SyncFixed is the time of synchronising host and accelerator, per layer.
	SyncFixed units.Nanos `yaml:"sync_fixed,omitempty" json:"sync_fixed,omitempty"`
	// HeldRate is the rate at which all resident rows, used or not, are kept visible to an
	// accelerator, once per token.
	HeldRate units.Rate `yaml:"held_rate,omitempty" json:"held_rate,omitempty"`
	// IOContention is the memory traffic in bytes that compute loses to one byte of I/O; 0 = I/O
	// uses another memory. See Host.Overlap.
	IOContention float64 `yaml:"io_contention,omitempty" json:"io_contention,omitempty"`
}

// Precision holds the rates for weights of one precision, in bytes of these weights per second; 0 =
// not measured.
type Precision struct {
	DenseRate units.Rate `yaml:"dense_rate,omitempty" json:"dense_rate,omitempty"`
	RowRate   units.Rate `yaml:"row_rate,omitempty" json:"row_rate,omitempty"`
}

// Fit states the range and the errors of a fitted model.
type Fit struct {
	When     string      `yaml:"when" json:"when"` // RFC 3339
	Mode     string      `yaml:"mode" json:"mode"` // e.g. "pread direct ext4"
	ChunkMin units.Bytes `yaml:"chunk_min" json:"chunk_min"`
	ChunkMax units.Bytes `yaml:"chunk_max" json:"chunk_max"`
	DepthMin int         `yaml:"depth_min" json:"depth_min"`
	DepthMax int         `yaml:"depth_max" json:"depth_max"`
	// residuals of the throughput
	MeanAbsPct  float64 `yaml:"mean_abs_percent" json:"mean_abs_percent"`
	WorstAbsPct float64 `yaml:"worst_abs_percent" json:"worst_abs_percent"`
	// LeaveOneOutPct is the mean absolute error over the cells, each predicted by a fit without it;
	// nil with fewer than three cells.
	LeaveOneOutPct *float64 `yaml:"leave_one_out_percent,omitempty" json:"leave_one_out_percent"`
	// IntervalPct bounds the error of nine in ten throughputs inside the range; nil = not known.
	IntervalPct *float64 `yaml:"interval_percent,omitempty" json:"interval_percent"`
	// HostPct is the same for times of the host; nil = not known.
	HostPct *float64 `yaml:"host_interval_percent,omitempty" json:"host_interval_percent"`
	// fields that the fit was given, such as "flash.link_rate"
	Fixed []string `yaml:"fixed,omitempty" json:"fixed,omitempty"`
	// reason why there is no fit; empty = there is one
	Unfitted string `yaml:"unfitted,omitempty" json:"unfitted,omitempty"`
	// of a reference cell during the probe
	DriftPct float64  `yaml:"drift_percent" json:"drift_percent"`
	Warnings []string `yaml:"warnings,omitempty" json:"warnings,omitempty"`
	Cells    []Cell   `yaml:"cells" json:"cells"`
}

// Unsteady is the Quality of a cell whose rate did not settle during the measurement. A fit gives
// it little weight.
const Unsteady = "not steady"

// Cell is one measured point of the grid, with the rate of the fitted model.
type Cell struct {
	Engine string      `yaml:"engine" json:"engine"`
	Chunk  units.Bytes `yaml:"chunk" json:"chunk"`
	Depth  int         `yaml:"depth" json:"depth"`
	Reads  int         `yaml:"reads" json:"reads"`
	Rate   units.Rate  `yaml:"rate" json:"rate"` // measured
	// RateLow and RateHigh are the 95 % confidence interval of the mean rate; 0 = not known.
	RateLow  units.Rate `yaml:"rate_low,omitempty" json:"rate_low"`
	RateHigh units.Rate `yaml:"rate_high,omitempty" json:"rate_high"`
	Model    units.Rate `yaml:"model" json:"model"` // closed form of the fit
	// latency of one read as its thread saw it; 0 = not known
	P50 units.Nanos `yaml:"p50" json:"p50"`
	P99 units.Nanos `yaml:"p99" json:"p99"`
	// Times holds the latencies of single reads as their threads saw them; empty = not kept. A file
	// does not contain them.
	Times  flash.Histogram `yaml:"-" json:"-"`
	Source string          `yaml:"source,omitempty" json:"source,omitempty"`
	// of a published number: measured, table, derived, ...
	Quality string `yaml:"quality,omitempty" json:"quality,omitempty"`
	// reason why the fit left the cell out
	Tainted string `yaml:"tainted,omitempty" json:"tainted,omitempty"`
}
