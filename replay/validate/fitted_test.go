package validate

import (
	"context"
	"errors"
	"io/fs"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/replay/probe"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/compare"
)

// TestFittedCasesAreUnseen: what is predicted has no chunk and no depth of the grid that was
// measured, for every engine, and the calibration is none of them.
func TestFittedCasesAreUnseen(t *testing.T) {
	cases := fittedCases([]string{"threads", "ring"})
	if len(cases) != 24 {
		t.Errorf("%d cases", len(cases))
	}
	engines := map[string]int{}
	for i, c := range cases {
		engines[c.Engine]++
		if slices.Contains(fittedChunks, c.Chunk) || slices.Contains(fittedDepths, c.Parallel) {
			t.Errorf("%v was measured", c)
		}
		if c == fittedCalibration(c.Engine) || slices.Contains(cases[:i], c) {
			t.Errorf("%v is the calibration, or there twice", c)
		}
	}
	if engines["threads"] != 12 || engines["ring"] != 12 {
		t.Errorf("%v", engines)
	}
	if truth, err := emulatedTruth(); err != nil || truth.Flash.Engines["ring"].Serial ==
		truth.Flash.Engines["threads"].Serial {
		t.Errorf("%v: the emulated engines are alike: %+v", err, truth)
	}
}

// TestFillEngines: an engine that fio could not measure costs what the first that it could costs,
// but is serial or not as the engine is.
func TestFillEngines(t *testing.T) {
	fromFio := &devicemodels.Device{Flash: flash.Spec{Engines: map[string]flash.EngineCost{
		"threads": {Submit: 3, Complete: 4}}}}
	like := &devicemodels.Device{Flash: flash.Spec{Engines: map[string]flash.EngineCost{
		"threads": {Submit: 9}, "ring": {Submit: 8, Serial: true}}}}
	fillEngines(fromFio, like)
	want := map[string]flash.EngineCost{"threads": {Submit: 3, Complete: 4},
		"ring": {Submit: 3, Complete: 4, Serial: true}}
	if !reflect.DeepEqual(fromFio.Flash.Engines, want) {
		t.Errorf("%+v", fromFio.Flash.Engines)
	}
}

// TestFromFio: a model of outputs of fio alone, with the probe's host and alignment. Without any
// output the result says why, and an output that cannot be read is an error.
func TestFromFio(t *testing.T) {
	const grid = "../../devicemodels/fio/testdata/grid.json"
	host := devicemodels.Host{Cores: 7, MemoryRate: 5 * units.GBps}
	s := &Setup{Seed: 1, Device: &devicemodels.Device{Host: host, Flash: flash.Spec{Align: 512,
		Engines: map[string]flash.EngineCost{"made up": {Serial: true}}}}}
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		results []string
		measure func() (string, error)
		why     string
		err     error
	}{
		"given":    {[]string{grid}, func() (string, error) { return "", broken }, "", nil},
		"measured": {nil, func() (string, error) { return grid, nil }, "", nil},
		"none":     {nil, nil, "no outputs of fio were given", nil},
		"no fio": {nil, func() (string, error) { return "", exec.ErrNotFound }, "not installed",
			nil},
		"it failed": {nil, func() (string, error) { return "", broken }, "", broken},
		"missing":   {[]string{filepath.Join(t.TempDir(), "x")}, nil, "", fs.ErrNotExist},
	} {
		r := &FittedResult{}
		files, err := readFio(t.Context(), c.results)
		if err == nil {
			err = s.fromFio(t.Context(), r, files, c.measure)
		}
		if !errors.Is(err, c.err) || c.err == nil && err != nil ||
			!strings.Contains(r.FioWhyNot, c.why) || (r.FioWhyNot == "") != (c.why == "") {
			t.Errorf("%s: %v, %q", name, err, r.FioWhyNot)
		}
		fitted := c.err == nil && c.why == ""
		if !fitted {
			if r.FioDevice != nil {
				t.Errorf("%s: there is a model", name)
			}
			continue
		}
		d := r.FioDevice
		if d == nil || d.Host.Cores != 7 || d.Host.MemoryRate != host.MemoryRate ||
			d.Flash.Align != 512 || !d.Flash.Engines["made up"].Serial || len(d.Flash.Engines) < 2 {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// TestFioIsReadFirst: an output that cannot be read is refused before anything is measured, which
// takes minutes.
func TestFioIsReadFirst(t *testing.T) {
	s := &Setup{Progress: func(stage string, _, _ int) { t.Errorf("%s was begun", stage) }}
	missing := filepath.Join(t.TempDir(), "x")
	_, err := s.fitted(t.Context(), &FittedResult{}, []string{"threads"}, probe.Config{},
		FittedOptions{FioResults: []string{missing}}, nil)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
}

// TestAddOutcome sums up errors: the mean and the worst, the failed and those inside the interval
// of their prediction.
func TestAddOutcome(t *testing.T) {
	s, r := &Setup{}, &FittedResult{FioTolerance: 15}
	add := func(verdict compare.Verdict, percent, measured, p99 float64) {
		o := outcomeOf(verdict, true)
		o.Comparison.ErrorPercent, o.Comparison.MeasuredTokensPerS = percent, measured
		o.Comparison.Percentiles = []compare.PercentileError{{Percentile: 50, Error: 90},
			{Percentile: 99, Error: compare.Stat(p99)}}
		if err := s.addOutcome(t.Context(), r, o); err != nil {
			t.Fatal(err)
		}
	}
	add(compare.Pass, 2, 3, -4)       // inside 2 to 4 tokens/s
	add(compare.Outside, -10, 4.5, 8) // above
	add(compare.Noisy, 3, 2, 1)       // on the end
	if r.Failed != 2 || r.Covered != 2 || len(r.Outcomes) != 3 || r.FioErrors != nil {
		t.Errorf("%d failed, %d covered of %d", r.Failed, r.Covered, len(r.Outcomes))
	}
	if want := (Errors{MeanTokensPerS: 5, WorstTokensPerS: 10, WorstP99: 8}); r.Probe != want {
		t.Errorf("%+v, want %+v", r.Probe, want)
	}
}

// TestAgainstFio: a model from fio judges the same configuration, and one that is far off fails it
// although the probe's model passes. What was measured is a simulation here: no clock runs.
func TestAgainstFio(t *testing.T) {
	s, image, err := newSuite(t.Context(), shortSuite(t, nil, false), suiteShape(512, 2), 16)
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	good := &devicemodels.Device{Version: devicemodels.FormatVersion, Name: "good",
		Flash: emulatedFlash(), Host: devicemodels.Host{Cores: 2}}
	off := *good
	off.Flash.LTFB *= 50
	s.Engine, s.Compare.Tolerance = "emulated", compare.Tolerance{TokensPerS: 5, P50: 1e3, P99: 15}
	o := &Outcome{Case: shortCases()[0]}
	run, err := sim.Run(t.Context(), s.Source, sim.Config{Policy: o.Case.Policy, Engine: s.Engine,
		Parallel: o.Case.Parallel, Layout: o.Case.layout(o.Mode), Device: good,
		Geometry: s.Geometry})
	if err != nil {
		t.Fatal(err)
	}
	o.Measured = run
	if o.Simulated, o.Comparison, err = s.against(t.Context(), good, o); err != nil {
		t.Fatal(err)
	}
	o.Comparison.Verdict = compare.Pass
	for _, c := range []struct {
		device *devicemodels.Device
		failed int
	}{{good, 0}, {&off, 1}} {
		r := &FittedResult{FioTolerance: 15, FioDevice: c.device}
		if err := s.addOutcome(t.Context(), r, o); err != nil {
			t.Fatal(err)
		}
		fio := r.Outcomes[0].Fio
		if fio == nil || !fio.CountersEqual || r.Failed != c.failed || r.FioErrors == nil ||
			(r.FioErrors.WorstTokensPerS > 50) != (c.failed > 0) {
			t.Errorf("%s: %+v, %d failed, %+v", c.device.Name, fio, r.Failed, r.FioErrors)
		}
	}
}

// TestCalibrateByTrace replays on this machine's disk and sets what the host takes: every constant
// is above 0, and the device says where it comes from.
func TestCalibrateByTrace(t *testing.T) {
	s, image, err := newSuite(t.Context(), shortSuite(t, nil, false), suiteShape(512, 2), 16)
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	d := &devicemodels.Device{Version: devicemodels.FormatVersion, Name: "here",
		Flash: flash.Spec{Servers: 4, LTFB: units.Microsecond, ServerRate: units.GBps, Align: 512,
			Engines: map[string]flash.EngineCost{"pread": {}}},
		Host: devicemodels.Host{Cores: runtime.NumCPU(), MemoryRate: units.GBps}}
	if err := CalibrateByTrace(t.Context(), d, s.Source, image); err != nil {
		t.Fatal(err)
	}
	if d.Sources["host"] == "" || d.Sources["flash.engines.pread.batch"] == "" ||
		!strings.Contains(d.Sources["host"], image.Name) {
		t.Errorf("sources %q", d.Sources)
	}
	before := devicemodels.Host{Cores: runtime.NumCPU(), MemoryRate: units.GBps}
	if reflect.DeepEqual(d.Host, before) {
		t.Errorf("the host is as before: %+v", d.Host)
	}
	short := &traces.Memory{Head: *s.Source.Header()}
	if err := CalibrateByTrace(t.Context(), d, short, image); err == nil {
		t.Error("a trace without tokens calibrates")
	}
}

// TestInterruptedSuites end with the error of their context, while they make their model and while
// they probe, and have no result then.
func TestInterruptedSuites(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	opt := shortSuite(t, shortCases(), false)
	for name, run := range map[string]func() (any, error){
		"emulated":  func() (any, error) { return result(Emulated(stopped, opt)) },
		"throttled": func() (any, error) { return result(Throttled(stopped, opt)) },
		"fitted": func() (any, error) {
			return result(FittedEmulated(stopped, FittedOptions{SuiteOptions: opt}))
		},
		"fitted, throttled": func() (any, error) {
			return result(FittedThrottled(stopped, FittedOptions{SuiteOptions: opt}))
		},
		"while it probes": func() (any, error) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			own := opt
			own.Progress = func(stage string, _, _ int) {
				if strings.HasPrefix(stage, "probe ") {
					cancel()
				}
			}
			return result(FittedEmulated(ctx, FittedOptions{SuiteOptions: own}))
		},
	} {
		if r, err := run(); r != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// result is nil for a nil pointer.
func result[T any](r *T, err error) (any, error) {
	if r == nil {
		return nil, err
	}
	return r, err
}

// TestPercentileErrors: the error at a percentile, where there is one.
func TestPercentileErrors(t *testing.T) {
	c := &compare.Comparison{Percentiles: []compare.PercentileError{{Percentile: 50, Error: 12.34},
		{Percentile: 99, Error: -5}}}
	for p, want := range map[float64]string{50: "+12.3", 99: "-5.00", 75: "n/a"} {
		if got := percentileError(c, p); got != want {
			t.Errorf("at %v: %q, want %q", p, got, want)
		}
	}
}
