package devicemodels

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/windrow-sim/windrow/internal/units"
)

// GPU describes a device with its own memory that computes for the host, as measured with the
// engine's kernels. Rates count bytes of weights, of rows, or of keys and values per second, by the
// device's clock. A fixed time is the time of a call besides its bytes. LaunchFixed and SyncFixed
// are the host's share of a call.
type GPU struct {
	Model  string      `yaml:"model" json:"model"`   // as its driver calls it
	Memory units.Bytes `yaml:"memory" json:"memory"` // all of it

	// copies between pinned host memory and the device
	TransferRate  units.Rate  `yaml:"transfer_rate" json:"transfer_rate"`
	TransferFixed units.Nanos `yaml:"transfer_fixed" json:"transfer_fixed"` // per copy
	// fetching records from pinned host memory to their places
	ScatterRate  units.Rate  `yaml:"scatter_rate" json:"scatter_rate"`
	ScatterFixed units.Nanos `yaml:"scatter_fixed" json:"scatter_fixed"` // per batch of records
	// rows moved inside its memory, each byte counted once
	MoveRate  units.Rate  `yaml:"move_rate" json:"move_rate"`
	MoveFixed units.Nanos `yaml:"move_fixed" json:"move_fixed"` // per batch of rows
	// mat-vec over fp16 weights
	DenseRate  units.Rate  `yaml:"dense_rate" json:"dense_rate"`
	DenseFixed units.Nanos `yaml:"dense_fixed" json:"dense_fixed"` // per mat-vec
	// feed-forward part over scattered fp16 rows
	RowRate  units.Rate  `yaml:"row_rate" json:"row_rate"`
	RowFixed units.Nanos `yaml:"row_fixed" json:"row_fixed"` // per layer
	// reading keys and values in attention
	KVRate  units.Rate  `yaml:"kv_rate" json:"kv_rate"`
	KVFixed units.Nanos `yaml:"kv_fixed" json:"kv_fixed"` // per layer

	// a small kernel, such as a norm, on the device
	KernelFixed units.Nanos `yaml:"kernel_fixed" json:"kernel_fixed"`
	// time of the host per kernel or copy that it launches
	LaunchFixed units.Nanos `yaml:"launch_fixed" json:"launch_fixed"`
	// from the end of a stream's work until the host continues
	SyncFixed units.Nanos `yaml:"sync_fixed" json:"sync_fixed"`

	// Precisions gives the rates for other weights than fp16, by name: "bf16", "f32", "q8".
	Precisions map[string]Precision `yaml:"precisions,omitempty" json:"precisions,omitempty"`
	// Samples are the measurements behind the numbers above.
	Samples []GPUSample `yaml:"samples,omitempty" json:"samples,omitempty"`
}

// SampleKind is the origin of a sample.
type SampleKind string

// The kinds of samples.
const (
	SampleMeasured  SampleKind = "measured"  // timed on the device
	SamplePublished SampleKind = "published" // by others
)

// GPUSample is one timed operation.
type GPUSample struct {
	// the numbers that rest on it: "dense", "scatter", …
	Of    string     `yaml:"of" json:"of"`
	Kind  SampleKind `yaml:"kind" json:"kind"`
	Shape string     `yaml:"shape" json:"shape"`
	// that one call moves; 0 = the sample is a fixed time
	Bytes units.Bytes `yaml:"bytes" json:"bytes"`
	// of one call: the median of Runs
	Time units.Nanos `yaml:"time" json:"time"`
	// nine of ten times are within this of the median
	SpreadPct float64 `yaml:"spread_percent" json:"spread_percent"`
	Runs      int     `yaml:"runs" json:"runs"` // each of many calls
	// the time by the numbers of the GPU
	Model units.Nanos `yaml:"model" json:"model"`
}

// Rate is the sample's bytes per second; 0 for a fixed time.
func (s *GPUSample) Rate() units.Rate { return s.Bytes.Over(s.Time) }

// GPUTerms are the values of GPUSample.Of.
func GPUTerms() []string {
	return []string{"transfer", "scatter", "move", "dense", "rows", "kv", "kernel", "launch",
		"sync"}
}

// At returns the costs on the device for weights of a precision, as Host.At does for the host.
// Predictors run on the host and keep the host's cost.
func (g *GPU) At(precision string, host *Host) Compute {
	name := strings.ToLower(precision)
	if name == "" {
		name = basePrecision
	}
	base, own := name == basePrecision, g.Precisions[name]
	if base {
		own = Precision{DenseRate: g.DenseRate, RowRate: g.RowRate}
	}
	return Compute{
		Dense:     term("dense on the GPU", g.DenseFixed, own.DenseRate, g.DenseRate, 0, base),
		Rows:      term("rows on the GPU", g.RowFixed, own.RowRate, g.RowRate, 0, base),
		Copy:      term("moves on the GPU", g.MoveFixed, g.MoveRate, 0, 0, true),
		KV:        term("keys and values on the GPU", g.KVFixed, g.KVRate, 0, 0, true),
		Transfer:  term("scatter to the GPU", g.ScatterFixed, g.ScatterRate, 0, 0, true),
		Predictor: host.At(precision).Predictor,
	}
}

// IntervalPct bounds the error in percent of nine in ten times of the device. It combines the error
// of the numbers against the samples with the spread of single runs, both as root mean squares. nil
// without samples.
func (g *GPU) IntervalPct() *float64 {
	if len(g.Samples) == 0 {
		return nil
	}
	const ninety = 1.645 // standard deviations
	sum := 0.0
	for i := range g.Samples {
		s := &g.Samples[i]
		off := ninety * 100 * (float64(s.Model)/float64(s.Time) - 1)
		sum += float64(off*off) + float64(s.SpreadPct*s.SpreadPct)
	}
	percent := math.Round(1e3*math.Sqrt(sum/float64(len(g.Samples)))) / 1e3
	return &percent
}

func (v *validator) gpu(g *GPU) {
	v.want(g.Model != "", "gpu.model", g.Model, "is empty; write what its driver calls it")
	within(v, "gpu.memory", g.Memory, gpuMemoryRange)
	for _, r := range []struct {
		name string
		rate units.Rate
	}{
		{"transfer_rate", g.TransferRate}, {"scatter_rate", g.ScatterRate},
		{"move_rate", g.MoveRate}, {"dense_rate", g.DenseRate},
		{"row_rate", g.RowRate}, {"kv_rate", g.KVRate},
	} {
		within(v, "gpu."+r.name, r.rate, gpuRateRange)
	}
	for _, f := range []struct {
		name string
		time units.Nanos
	}{
		{"transfer_fixed", g.TransferFixed}, {"scatter_fixed", g.ScatterFixed}, {"move_fixed",
			g.MoveFixed}, {"dense_fixed", g.DenseFixed},
		{"row_fixed", g.RowFixed}, {"kv_fixed", g.KVFixed}, {"kernel_fixed", g.KernelFixed},
		{"launch_fixed", g.LaunchFixed}, {"sync_fixed", g.SyncFixed},
	} {
		within(v, "gpu."+f.name, f.time, gpuFixedRange)
	}
	v.precisions("gpu", g.Precisions, basePrecision)
	for i := range g.Samples {
		s, path := &g.Samples[i], fmt.Sprintf("gpu.samples[%d]", i)
		v.want(slices.Contains(GPUTerms(), s.Of), path+".of", s.Of,
			"is none of "+strings.Join(GPUTerms(), ", "))
		v.want(s.Kind == SampleMeasured || s.Kind == SamplePublished, path+".kind", string(s.Kind),
			"is neither measured nor published")
		v.bytes(path+".bytes", s.Bytes)
		v.want(s.Time > 0, path+".time", s.Time, "is no measurement")
		v.period(path+".time", s.Time)
		v.percent(path+".spread_percent", s.SpreadPct)
		v.want(s.Runs >= 1, path+".runs", s.Runs, "is too few; write 1 or more")
		within(v, path+".runs", s.Runs, countRange)
		v.period(path+".model", s.Model)
	}
}
