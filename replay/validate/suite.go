package validate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/replay/emulated"
	"github.com/windrow-sim/windrow/replay/throttle"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/compare"
	"github.com/windrow-sim/windrow/traces/synth"
)

// SuiteOptions say where and on what a suite runs.
type SuiteOptions struct {
	Dir         string // for the synthetic model; on the disk to be checked
	Seed        uint64
	Tokens      int     // per configuration; 0 = the suite's own number
	Cases       []Case  // nil = the suite's 12
	Tolerance   float64 // of tokens/s in percent; 0 = the suite's own
	Prefetch    bool    // configurations that prefetch, on a deeper model
	NoReference bool    // measure no drift, which takes seconds per configuration
	Progress    func(label string, done, total int)
}

// SuiteResult is a table of outcomes.
type SuiteResult struct {
	Name      string     `json:"name"`
	What      string     `json:"what"`
	Kind      string     `json:"kind"` // "emulated" or "measured"
	Tolerance float64    `json:"tolerance_percent"`
	Outcomes  []*Outcome `json:"outcomes"`
	// false: interrupted or failed, with the outcomes so far
	Complete bool                 `json:"complete"`
	Failed   int                  `json:"failed"`
	MeanAbs  float64              `json:"mean_abs_error_percent"`
	WorstAbs float64              `json:"worst_abs_error_percent"`
	Rank     compare.Stat         `json:"rank_order"` // Spearman's, of tokens/s
	Device   *devicemodels.Device `json:"device"`
}

// suiteShape is a small model, so that a configuration takes seconds.
func suiteShape(dModel, layers int) model.Shape {
	return model.Shape{DModel: dModel, Layers: layers, DFFN: 1024, Heads: dModel / 64,
		KVHeads: dModel / 64, HeadDim: 64, Vocab: 512, MaxPos: 256, Rows: 2, DTypeSize: 2}
}

// suiteCases are the 12 configurations: chunks below and above a record. suiteCalibration is one
// that is not among them.
func suiteCases(record units.Bytes) []Case {
	return Grid([]int{0, 2, 8}, []int{4, 16}, []units.Bytes{record / 2, 4 * record})
}

func suiteCalibration(record units.Bytes) Case {
	return Case{Policy: policy.SlidingWindow(4), Parallel: 8, Chunk: 2 * record}
}

// prefetchCases are 12 configurations that prefetch: a window and K_max, for the next layer and for
// the whole token behind one and two dense layers, at two depths.
func prefetchCases(units int) []Case {
	var list []Case
	for _, kept := range []Case{{Policy: policy.SlidingWindow(4)},
		{Policy: policy.Spec{Kind: policy.KindDelta,
			Capacity: units / 8}}} {
		for _, schedule := range []schedule.Spec{{Kind: schedule.LookAhead},
			{Kind: schedule.Token, Dense: 1}, {Kind: schedule.Token, Dense: 2}} {
			for _, parallel := range []int{4, 16} {
				c := kept
				c.Schedule, c.Parallel = schedule, parallel
				list = append(list, c)
			}
		}
	}
	return list
}

// emulatedFlash is a device of milliseconds, so that timers do not matter.
func emulatedFlash() flash.Spec {
	return flash.Spec{
		Servers: 6, LTFB: 2 * units.Millisecond, ServerRate: 4 * units.MBps, LinkRate: 5 *
			units.MBps, Align: 512,
		Engines: map[string]flash.EngineCost{string(flashio.EngineEmulated): {}},
	}
}

// Emulated checks the simulator on a device of known specification with real threads that really
// wait.
func Emulated(ctx context.Context, opt SuiteOptions) (*SuiteResult, error) {
	return emulatedOn(ctx, opt, emulatedFlash())
}

// emulatedOn is Emulated on any specification.
func emulatedOn(ctx context.Context, opt SuiteOptions, spec flash.Spec) (*SuiteResult, error) {
	layers := 3
	if opt.Prefetch {
		layers = 6
	}
	s, image, err := newSuite(ctx, opt, suiteShape(512, layers), 32)
	if err != nil {
		return nil, err
	}
	defer image.Close()
	s.Device = &devicemodels.Device{
		Version: devicemodels.FormatVersion, Name: "emulated",
		Source: "specification of the validation suite", Flash: spec,
		Host: devicemodels.Host{Cores: runtime.NumCPU()},
	}
	s.Engine = string(flashio.EngineEmulated)
	s.Open = func(_ string, parallel int) (flashio.Reader, error) {
		f, err := os.Open(image.Path)
		if err != nil {
			return nil, err
		}
		d, err := emulated.New(f, f.Close, spec, emulated.Options{Parallel: parallel})
		if err != nil {
			f.Close()
			return nil, err
		}
		return d, nil
	}
	calibration := suiteCalibration(image.Geometry().Record)
	if err := s.CalibrateBatch(ctx, calibration); err != nil {
		return nil, err
	}
	r := &SuiteResult{Name: "emulated device", Kind: "emulated", Tolerance: or(opt.Tolerance, 3),
		Device: s.Device,
		What: "replay in real time on a device of known specification, host costs calibrated on " +
			calibration.String()}
	return s.finish(ctx, r, opt)
}

// The throttled suite: a limit that is slow against any disk, so that the limit is the device, and
// so slow that the credit which the kernel gives for the time of the engine's own work matters
// little. Its records are 8 KiB, since credit comes in slices of 0.1 s and many tiny reads do not
// use it up; a reading of the reference pattern lasts about 20 slices.
const (
	ThrottledRate           = 4 * units.MBps
	throttledReferenceReads = 512
	// throttledPause is enough for the credit of a slice to come back, twice.
	throttledPause = 250 * time.Millisecond
)

// Throttled checks the simulator with real direct reads of a real file through a block-I/O limit.
// It needs root.
func Throttled(ctx context.Context, opt SuiteOptions) (*SuiteResult, error) {
	return throttledTo(ctx, opt, ThrottledRate)
}

// throttledTo is Throttled with any limit.
func throttledTo(ctx context.Context, opt SuiteOptions, rate units.Rate) (result *SuiteResult,
	err error) {
	layers := 2
	if opt.Prefetch {
		layers = 4
	}
	s, image, err := newSuite(ctx, opt, suiteShape(2048, layers), 24)
	if err != nil {
		return nil, err
	}
	defer image.Close()
	s.Device = &devicemodels.Device{
		Version: devicemodels.FormatVersion, Name: "throttled disk",
		Source: fmt.Sprintf("block-I/O limit of %v; latencies of a disk are negligible beside it",
			rate),
		Flash: flash.Spec{
			Servers: 64, LTFB: 100 * units.Microsecond, Align: 512, Limit: &flash.Limit{
				Rate: rate, Interval: 100 * units.Millisecond},
			Engines: map[string]flash.EngineCost{string(flashio.EnginePread): {}},
		},
		Host: devicemodels.Host{Cores: runtime.NumCPU()},
	}
	s.Engine, s.ReferenceReads, s.ReferencePause = string(flashio.EnginePread),
		throttledReferenceReads, throttledPause
	s.Open = func(_ string, parallel int) (flashio.Reader, error) {
		return flashio.Open(image.Path, flashio.Options{Engine: flashio.EnginePread,
			Direct: flashio.DirectOn, Parallel: parallel})
	}
	leave, err := throttle.Enter(image.Path, throttle.Limit{Rate: rate})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, leave()) }()
	calibration := suiteCalibration(image.Geometry().Record)
	if err := s.CalibrateHost(ctx, calibration); err != nil {
		return nil, err
	}
	r := &SuiteResult{Name: "throttled disk", Kind: "measured", Tolerance: or(opt.Tolerance, 10),
		Device: s.Device,
		What: fmt.Sprintf("direct reads through a block-I/O limit of %v, host costs calibrated "+
			"on %v", rate, calibration)}
	return s.finish(ctx, r, opt)
}

// newSuite makes the synthetic model and trace.
func newSuite(ctx context.Context, opt SuiteOptions, shape model.Shape, tokens int) (*Setup,
	*model.Image, error) {
	path := filepath.Join(opt.Dir, "suite.flash.safetensors")
	if err := model.Synth(ctx, shape, "validation", opt.Seed, path,
		model.SynthOptions{}); err != nil {
		return nil, nil, err
	}
	if opt.Tokens > 0 {
		tokens = opt.Tokens
	}
	every := max(tokens/2, 1) // at the start, in the middle and at the end
	if opt.NoReference {
		every = 0
	}
	trace, err := synth.Collect(ctx, synth.Options{Like: "opt-6.7b", Shape: traces.Shape(shape),
		Tokens: tokens, Seed: opt.Seed, ActiveShare: 0.08})
	if err != nil {
		return nil, nil, err
	}
	image, err := model.OpenImage(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	weights, err := image.Weights(ctx)
	if err != nil {
		image.Close()
		return nil, nil, err
	}
	bundles := func(layer int) ([]byte, error) {
		data := make([]byte, image.LayerBytes())
		return data, image.Bundles(layer, data)
	}
	return &Setup{Source: trace, Weights: weights, Geometry: image.Geometry(), Bundles: bundles,
		Seed: opt.Seed, ReferenceEvery: every, Progress: opt.Progress}, image, nil
}

// finish runs the cases and sums them up.
func (s *Setup) finish(ctx context.Context, r *SuiteResult, opt SuiteOptions) (*SuiteResult,
	error) {
	cases := opt.Cases
	if cases == nil && opt.Prefetch {
		cases = prefetchCases(s.Geometry.Units)
		r.Name += ", prefetching"
	} else if cases == nil {
		cases = suiteCases(s.Geometry.Record)
	}
	// Percentiles of a few dozen tokens are single tokens: the suites judge tokens/s.
	s.Compare.Tolerance = compare.Tolerance{TokensPerS: r.Tolerance, P50: 1e3, P99: 1e3}
	var err error
	r.Outcomes, err = s.Suite(ctx, cases)
	r.Complete = err == nil
	var simulated, measured []float64
	for _, o := range r.Outcomes {
		e := math.Abs(o.Comparison.ErrorPercent)
		r.MeanAbs += e / float64(len(r.Outcomes))
		r.WorstAbs = max(r.WorstAbs, e)
		if o.Comparison.Verdict != compare.Pass {
			r.Failed++
		}
		simulated = append(simulated, o.Comparison.SimulatedTokensPerS)
		measured = append(measured, o.Comparison.MeasuredTokensPerS)
	}
	r.Rank = compare.Stat(compare.RankOrder(simulated, measured))
	return r, err
}

func or(value, otherwise float64) float64 {
	if value != 0 {
		return value
	}
	return otherwise
}
