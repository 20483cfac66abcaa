package validate

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/fio"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/replay/emulated"
	"github.com/windrow-sim/windrow/replay/probe"
	"github.com/windrow-sim/windrow/replay/throttle"
	"github.com/windrow-sim/windrow/traces/compare"
)

// FittedOptions are those of a suite that fits its device models itself.
type FittedOptions struct {
	SuiteOptions
	ProbeBudget time.Duration // 0 = a minute
	// FioResults are outputs of fio on the same device. Without any, the throttled suite runs fio
	// itself where there is one.
	FioResults []string
}

// FittedOutcome is a configuration measured, and simulated on two models of the device.
type FittedOutcome struct {
	*Outcome
	// of the model fitted to fio's JSON alone; nil without one
	Fio *compare.Comparison `json:"fio_comparison"`
}

// FittedResult is a table of outcomes.
type FittedResult struct {
	Name      string            `json:"name"`
	What      string            `json:"what"`
	Kind      string            `json:"kind"`      // "emulated" or "measured"
	Tolerance compare.Tolerance `json:"tolerance"` // of the probe's model
	// of tokens/s by the model from fio, percent
	FioTolerance float64         `json:"fio_tolerance"`
	Outcomes     []FittedOutcome `json:"outcomes"`
	// false: interrupted or failed, with the outcomes so far
	Complete  bool    `json:"complete"`
	Failed    int     `json:"failed"`
	Probe     Errors  `json:"probe_errors"`
	FioErrors *Errors `json:"fio_errors"`
	// outcomes inside the interval that the prediction stated
	Covered   int                  `json:"covered"`
	Device    *devicemodels.Device `json:"device"`
	FioDevice *devicemodels.Device `json:"fio_device"`
	// why there is no model from fio
	FioWhyNot string `json:"fio_why_not,omitempty"`
}

// Errors sums up absolute errors, in percent.
type Errors struct {
	MeanTokensPerS  float64 `json:"mean_tokens_per_s"`
	WorstTokensPerS float64 `json:"worst_tokens_per_s"`
	WorstP99        float64 `json:"worst_p99"`
}

// The limit of the throttled suite makes tokens shorter and longer than a slice of credit. Readings
// of the reference pattern last twenty slices, since the last may be one more or less, and none is
// taken between tokens: credit comes back while the engine waits.
const (
	fittedRate           = 16 * units.MBps
	fittedReferenceReads = 2048
)

// The grid that is measured, and the configurations that are predicted: none of these is a cell of
// the grid.
var (
	fittedChunks = []units.Bytes{4 * units.KiB, 16 * units.KiB, 64 * units.KiB}
	fittedDepths = []int{1, 4, 16, 64}
)

// fittedCases are 24 configurations: window × chunk × depth × engine.
func fittedCases(engines []string) []Case {
	var cases []Case
	for _, engine := range engines {
		for _, c := range Grid([]int{0, 2, 8}, []int{6, 24}, []units.Bytes{8 * units.KiB,
			32 * units.KiB}) {
			c.Engine = engine
			cases = append(cases, c)
		}
	}
	return cases
}

func fittedCalibration(engine string) Case {
	return Case{Engine: engine, Policy: policy.SlidingWindow(4), Parallel: 12, Chunk: 24 *
		units.KiB}
}

//go:embed emulated.device.yaml
var emulatedDevice []byte

// emulatedTruth returns the specification of the device that FittedEmulated emulates.
func emulatedTruth() (*devicemodels.Device, error) {
	return devicemodels.Parse("emulated.device.yaml", emulatedDevice)
}

// FittedEmulated probes an emulated device, which knows nothing of the model, and checks what the
// fit predicts.
func FittedEmulated(ctx context.Context, opt FittedOptions) (*FittedResult, error) {
	truth, err := emulatedTruth()
	if err != nil {
		return nil, err
	}
	s, image, err := newSuite(ctx, opt.SuiteOptions, suiteShape(2048, 2), 24)
	if err != nil {
		return nil, err
	}
	defer image.Close()
	open := func(engine string, parallel int) (flashio.Reader, error) {
		f, err := os.Open(image.Path)
		if err != nil {
			return nil, err
		}
		d, err := emulated.New(f, f.Close, truth.Flash, emulated.Options{Parallel: parallel,
			Ring: engine == "ring", Seed: opt.Seed})
		if err != nil {
			f.Close()
			return nil, err
		}
		return d, nil
	}
	s.Open = open
	engines := []string{"threads", "ring"}
	r := &FittedResult{Name: "fitted to an emulated device", Kind: "emulated",
		What: "an emulated device probed, its model fitted, and replays on it predicted in " +
			"configurations that the probe did not measure"}
	cfg := probe.DefaultConfig(image.Path)
	cfg.Engines = []flashio.Engine{"threads", "ring"}
	cfg.Open = func(parallel int, engine flashio.Engine) (flashio.Reader, error) {
		return open(string(engine), parallel)
	}
	return s.fitted(ctx, r, engines, cfg, opt, nil)
}

// FittedThrottled does the same on a real file behind a block-I/O limit. It needs root.
func FittedThrottled(ctx context.Context, opt FittedOptions) (result *FittedResult, err error) {
	s, image, err := newSuite(ctx, opt.SuiteOptions, suiteShape(2048, 2), 24)
	if err != nil {
		return nil, err
	}
	defer image.Close()
	s.ReferenceReads, s.ReferencePause = fittedReferenceReads, throttledPause
	if s.ReferenceEvery > 0 {
		s.ReferenceEvery = s.Source.Tokens()
	}
	s.Open = func(engine string, parallel int) (flashio.Reader, error) {
		return flashio.Open(image.Path, flashio.Options{Engine: flashio.Engine(engine),
			Direct: flashio.DirectOn, Parallel: parallel})
	}
	var engines []string
	for _, e := range flashio.Working() {
		engines = append(engines, string(e))
	}
	leave, err := throttle.Enter(image.Path, throttle.Limit{Rate: fittedRate})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, leave()) }()
	r := &FittedResult{Name: "fitted to a throttled disk", Kind: "measured",
		What: fmt.Sprintf("direct reads of a file through a block-I/O limit of %v, which the "+
			"probe and fio do not know of", fittedRate)}
	cfg := probe.DefaultConfig(image.Path)
	cfg.Engines = flashio.Working()
	return s.fitted(ctx, r, engines, cfg, opt, func() (string, error) {
		return runFio(ctx,
			image.Path, opt.Dir, engines)
	})
}

// fitted probes, fits, calibrates the host, measures every case and compares. measureFio, where
// given, runs fio on the device.
func (s *Setup) fitted(ctx context.Context, r *FittedResult, engines []string, cfg probe.Config,
	opt FittedOptions, measureFio func() (string, error)) (*FittedResult, error) {
	cfg.Chunks, cfg.Depths, cfg.Seed, cfg.Budget = fittedChunks, fittedDepths, opt.Seed,
		opt.ProbeBudget
	if cfg.Budget == 0 {
		cfg.Budget = time.Minute
	}
	cfg.Span = 0 // the image is small
	cfg.Progress = func(stage string, done, total int) {
		if s.Progress != nil {
			s.Progress("probe "+stage, done, total)
		}
	}
	// A file that is none of fio's is refused before minutes of measuring.
	given, err := readFio(ctx, opt.FioResults)
	if err != nil {
		return nil, err
	}
	if s.Device, err = probe.Run(ctx, cfg); err != nil {
		return nil, err
	}
	if err := s.calibrate(ctx, r.Kind, engines); err != nil {
		return nil, err
	}
	r.Device = s.Device
	if err := s.fromFio(ctx, r, given, measureFio); err != nil {
		return nil, err
	}
	cases := opt.Cases
	if cases == nil {
		cases = fittedCases(engines)
	}
	r.Tolerance = compare.Tolerance{TokensPerS: or(opt.Tolerance, 5), P50: 1e3, P99: 15}
	r.FioTolerance = 15
	s.Compare.Tolerance = r.Tolerance
	outcomes, err := s.Suite(ctx, cases)
	r.Complete = err == nil
	for _, o := range outcomes {
		if sumErr := s.addOutcome(ctx, r, o); sumErr != nil {
			return r, errors.Join(err, sumErr)
		}
	}
	return r, err
}

// calibrate sets the host's constants, and on an emulated device what a batch costs with each
// engine. Behind a limit the latter would show more of its slices than of the host.
func (s *Setup) calibrate(ctx context.Context, kind string, engines []string) error {
	if kind != "emulated" {
		return s.CalibrateHost(ctx, fittedCalibration(engines[0]))
	}
	for _, engine := range engines {
		if err := s.CalibrateBatch(ctx, fittedCalibration(engine)); err != nil {
			return err
		}
	}
	return nil
}

// fromFio fits a second model to outputs of fio alone. Its host is the same: fio says nothing of
// that.
func (s *Setup) fromFio(ctx context.Context, r *FittedResult, files []*fio.File,
	measure func() (string, error)) error {
	if len(files) == 0 && measure != nil {
		path, err := measure()
		if errors.Is(err, exec.ErrNotFound) {
			r.FioWhyNot = "fio is not installed"
			return nil
		}
		if err != nil {
			return err
		}
		if files, err = readFio(ctx, []string{path}); err != nil {
			return err
		}
	}
	if len(files) == 0 {
		r.FioWhyNot = "no outputs of fio were given"
		return nil
	}
	d, err := fio.Device(files, fio.DeviceOptions{Name: "from fio", Host: s.Device.Host,
		Align: s.Device.Flash.Align, Seed: s.Seed})
	if err != nil {
		return err
	}
	fillEngines(d, s.Device)
	r.FioDevice = d
	return nil
}

// readFio reads outputs of fio.
func readFio(ctx context.Context, paths []string) (files []*fio.File, err error) {
	for _, path := range paths {
		f, err := fio.Read(ctx, path)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// fillEngines gives a model from fio the engines that fio could not measure (it reads the emulated
// device through threads alone): they cost what the others cost.
func fillEngines(d, like *devicemodels.Device) {
	for _, name := range slices.Sorted(maps.Keys(like.Flash.Engines)) {
		if _, ok := d.Flash.Engines[name]; !ok {
			cost := d.Flash.Engines[slices.Sorted(maps.Keys(d.Flash.Engines))[0]]
			cost.Serial = like.Flash.Engines[name].Serial
			d.Flash.Engines[name] = cost
		}
	}
}

// addOutcome compares an outcome with the model from fio, and adds its errors to the sums.
func (s *Setup) addOutcome(ctx context.Context, r *FittedResult, o *Outcome) error {
	out := FittedOutcome{Outcome: o}
	if r.FioDevice != nil {
		var err error
		if _, out.Fio, err = s.against(ctx, r.FioDevice, o); err != nil {
			return err
		}
	}
	r.Outcomes = append(r.Outcomes, out)
	n := float64(len(r.Outcomes))
	r.Probe.add(o.Comparison, n)
	failed := o.Comparison.Verdict != compare.Pass
	if out.Fio != nil {
		if r.FioErrors == nil {
			r.FioErrors = &Errors{}
		}
		r.FioErrors.add(out.Fio, n)
		failed = failed || math.Abs(out.Fio.ErrorPercent) > r.FioTolerance
	}
	if failed {
		r.Failed++
	}
	measured := o.Comparison.MeasuredTokensPerS
	if p := o.Simulated.Meta.Prediction; p != nil && p.TokensPerSLow != nil &&
		*p.TokensPerSLow <= measured && measured <= *p.TokensPerSHigh {
		r.Covered++
	}
	return nil
}

// add takes the n-th comparison into account.
func (e *Errors) add(c *compare.Comparison, n float64) {
	off := math.Abs(c.ErrorPercent)
	e.MeanTokensPerS += (off - e.MeanTokensPerS) / n
	e.WorstTokensPerS = max(e.WorstTokensPerS, off)
	for _, p := range c.Percentiles {
		if p.Percentile == 99 && p.Error.Defined() {
			e.WorstP99 = max(e.WorstP99, math.Abs(float64(p.Error)))
		}
	}
}

// runFio measures the grid on a file with fio, which inherits this process's limits, and returns
// the path of its output.
func runFio(ctx context.Context, path, dir string, engines []string) (string, error) {
	program, err := exec.LookPath("fio")
	if err != nil {
		return "", err
	}
	grid := fio.DefaultGrid(path)
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	grid.Size = units.Bytes(info.Size()) / fittedChunks[len(fittedChunks)-1] *
		fittedChunks[len(fittedChunks)-1]
	grid.Chunks, grid.Depths, grid.Runtime = fittedChunks, fittedDepths, 2*units.Second
	grid.Engines = []string{"psync"}
	if slices.Contains(engines, string(flashio.EngineUring)) {
		grid.Engines = append(grid.Engines, "io_uring")
	}
	var job bytes.Buffer
	if err := fio.WriteJob(&job, grid); err != nil {
		return "", err
	}
	jobFile, output := filepath.Join(dir, "grid.fio"), filepath.Join(dir, "grid.json")
	if err := os.WriteFile(jobFile, job.Bytes(), 0o600); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, program, "--readonly", "--output-format=json+",
		"--output="+output, jobFile)
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("validate: fio: %w: %s", err, text)
	}
	return output, nil
}
