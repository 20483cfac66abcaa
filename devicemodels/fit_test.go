package devicemodels

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
)

var (
	gridChunks = []units.Bytes{4 << 10, 16 << 10, 64 << 10, 256 << 10}
	gridDepths = []int{1, 4, 16, 32}
)

// truths are devices of different kinds.
func truths() map[string]flash.Spec {
	engines := map[string]flash.EngineCost{"pread": {Submit: 1 * units.Microsecond, Complete: 1 *
		units.Microsecond}}
	return map[string]flash.Spec{
		"nvme": {Servers: 24, LTFB: 70 * units.Microsecond, ServerRate: 900 * units.MBps,
			LinkRate: 3400 * units.MBps,
			Align:    4096, Engines: engines},
		"sata": {Servers: 8, LTFB: 105 * units.Microsecond, ServerRate: 300 * units.MBps,
			LinkRate: 540 * units.MBps,
			Align:    4096, Engines: engines},
		"one server": {Servers: 1, LTFB: 40 * units.Microsecond, ServerRate: 330 * units.MBps,
			Align: 512, Engines: engines},
		"optane": {Servers: 7, LTFB: 10 * units.Microsecond, ServerRate: 2000 * units.MBps,
			LinkRate: 7 * units.GBps,
			Align:    4096, Engines: engines},
		"dies": {Servers: 16, Placement: flash.PlaceByAddress, LTFB: 90 * units.Microsecond,
			ServerRate: 500 * units.MBps, LinkRate: 3 * units.GBps,
			Align: 4096, Engines: engines},
		"virtual disk": {Servers: 1, Placement: flash.PlaceInRounds, LTFB: 36 * units.Microsecond,
			MaxIOPS: 130_000, LinkRate: 1500 * units.MBps,
			Align: 4096, Engines: engines},
		"never saturated": {Servers: 500, LTFB: 300 * units.Microsecond, Align: 4096,
			Engines: engines},
		"host bound": {Servers: 64, LTFB: 20 * units.Microsecond, LinkRate: 6 * units.GBps,
			Align: 4096,
			Engines: map[string]flash.EngineCost{"uring": {Submit: 9 * units.Microsecond,
				Complete: 6 * units.Microsecond, Serial: true}}},
	}
}

func grid(f *flash.Spec, cores int, noise func() float64) []Cell {
	var cells []Cell
	for engine := range f.Engines {
		for _, chunk := range gridChunks {
			for _, depth := range gridDepths {
				rate := units.Rate(float64(f.Throughput(engine, cores, chunk, depth)) * noise())
				cells = append(cells, Cell{Engine: engine, Chunk: chunk, Depth: depth, Reads: 1000,
					Rate: rate})
			}
		}
	}
	return cells
}

// worstOff compares two devices at the cells of the grid and at unseen loops between them.
func worstOff(truth, fitted *flash.Spec, cores int) (worst float64) {
	for engine := range truth.Engines {
		for _, chunk := range []units.Bytes{4 << 10, 8 << 10, 16 << 10, 24 << 10, 48 << 10,
			128 << 10, 256 << 10} {
			for _, depth := range []int{1, 2, 3, 4, 8, 12, 16, 24, 32} {
				want := float64(truth.Throughput(engine, cores, chunk, depth))
				got := float64(fitted.Throughput(engine, cores, chunk, depth))
				worst = max(worst, math.Abs(got/want-1))
			}
		}
	}
	return worst
}

func TestFitRecoversThroughput(t *testing.T) {
	for name, truth := range truths() {
		t.Run(name, func(t *testing.T) {
			fitted, fit, err := FitFlash(grid(&truth, 2, func() float64 { return 1 }), 2,
				FitOptions{})
			if err != nil {
				t.Fatal(err)
			}
			// Cells at depths 1 and 4 alone leave open how a device does at 2 and 3.
			if off := worstOff(&truth, &fitted, 2); off > 0.04 {
				t.Errorf("worst throughput between the cells is %.2f %% off\ntruth  %+v\n"+
					"fitted %+v", 100*off, truth, fitted)
			}
			if fit.WorstAbsPct > 2 || fit.ChunkMin != 4<<10 || fit.ChunkMax != 256<<10 ||
				fit.DepthMin != 1 || fit.DepthMax != 32 {
				t.Errorf("fit = %+v", fit)
			}
		})
	}
}

func TestFitRecoversThroughputFromNoise(t *testing.T) {
	for name, truth := range truths() {
		t.Run(name, func(t *testing.T) {
			random := rng.Stream(rng.DefaultSeed, "noise/"+name)
			noisy := grid(&truth, 2, func() float64 { return 0.97 + 0.06*random.Float64() })
			// A probe knows the cost of a request; from noisy rates alone it can pass for a limit
			// of the device.
			cost := map[string]units.Nanos{}
			for engine, c := range truth.Engines {
				cost[engine] = c.Submit + c.Complete
			}
			fitted, fit, err := FitFlash(noisy, 2, FitOptions{HostCost: cost})
			if err != nil {
				t.Fatal(err)
			}
			if off := worstOff(&truth, &fitted, 2); off > 0.05 {
				t.Errorf("worst throughput between the cells is %.2f %% off\ntruth  %+v\n"+
					"fitted %+v", 100*off, truth, fitted)
			}
			if fit.MeanAbsPct > 3 {
				t.Errorf("mean residual %.3g %% exceeds the noise of 3 %%", fit.MeanAbsPct)
			}
		})
	}
}

// TestFitWithKnownHostCost: with a measured CPU time the fit recovers the parameters themselves,
// not only their effect.
func TestFitWithKnownHostCost(t *testing.T) {
	truth := truths()["nvme"]
	fitted, _, err := FitFlash(grid(&truth, 2, func() float64 { return 1 }), 2,
		FitOptions{HostCost: map[string]units.Nanos{"pread": 2 * units.Microsecond}})
	if err != nil {
		t.Fatal(err)
	}
	near := func(what string, got, want float64) {
		if math.Abs(got/want-1) > 0.03 {
			t.Errorf("%s = %.4g, want %.4g", what, got, want)
		}
	}
	near("LTFB", float64(fitted.LTFB), float64(truth.LTFB))
	near("server rate", float64(fitted.ServerRate), float64(truth.ServerRate))
	near("link rate", float64(fitted.LinkRate), float64(truth.LinkRate))
	if fitted.Servers != truth.Servers {
		t.Errorf("servers = %d, want %d", fitted.Servers, truth.Servers)
	}
	if c := fitted.Engines["pread"]; c.Submit+c.Complete != 2*units.Microsecond || c.Serial {
		t.Errorf("pread cost = %+v", c)
	}
}

// TestFitOfAHiddenStation: two cores at 7 µs per request are slower than the 24 servers in every
// cell where the link is not, so no fit can find the number of servers. The fit must still match
// the cells, and must not promise a throughput above them.
func TestFitOfAHiddenStation(t *testing.T) {
	truth := truths()["nvme"]
	truth.Engines = map[string]flash.EngineCost{"pread": {Submit: 3 * units.Microsecond,
		Complete: 4 * units.Microsecond}}
	fitted, fit, err := FitFlash(grid(&truth, 2, func() float64 { return 1 }), 2, FitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if fit.WorstAbsPct > 2 {
		t.Errorf("worst cell is %.3g %% off", fit.WorstAbsPct)
	}
	for _, chunk := range gridChunks {
		seen := float64(truth.Throughput("pread", 2, chunk, 32))
		if deep := float64(fitted.Throughput("pread", 2, chunk, 32)); deep > 1.02*seen {
			t.Errorf("%v: fit promises %.4g B/s, %.4g measured", chunk, deep, seen)
		}
	}
}

func TestFitIsDeterministic(t *testing.T) {
	truth := truths()["sata"]
	cells := grid(&truth, 2, func() float64 { return 1 })
	a, fitA, errA := FitFlash(cells, 2, FitOptions{Seed: 7})
	b, fitB, errB := FitFlash(cells, 2, FitOptions{Seed: 7})
	if errA != nil || errB != nil || !reflect.DeepEqual(a, b) || !reflect.DeepEqual(fitA, fitB) {
		t.Errorf("two fits of the same cells differ:\n%+v %v\n%+v %v", a, errA, b, errB)
	}
}

func TestFitRefuses(t *testing.T) {
	truth := truths()["nvme"]
	full := grid(&truth, 2, func() float64 { return 1 })
	filter := func(keep func(Cell) bool) (out []Cell) {
		for _, c := range full {
			if keep(c) {
				out = append(out, c)
			}
		}
		return out
	}
	tainted := filter(func(Cell) bool { return true })
	for i := range tainted {
		if i != 3 {
			tainted[i].Tainted = "served from the page cache"
		}
	}
	zero := filter(func(Cell) bool { return true })
	zero[5].Rate = 0
	tests := []struct {
		name  string
		cells []Cell
		opt   FitOptions
		want  string
	}{
		{"no cells", nil, FitOptions{}, "0 of 3 usable cells"},
		{"two cells", full[:2], FitOptions{}, "2 of 3 usable cells and 1 of 2 chunk sizes; add " +
			"measurements of 4 KiB"},
		{"tainted", tainted, FitOptions{}, "left out 15: served from the page cache"},
		{"one chunk size", filter(func(c Cell) bool { return c.Chunk == 4096 }), FitOptions{},
			"1 of 2 chunk sizes; add one with reads of 128 KiB"},
		{"one depth", filter(func(c Cell) bool { return c.Depth == 4 }), FitOptions{},
			"1 of 2 depths; add one at depth 1"},
		{"a cell without a rate", zero, FitOptions{}, "cell 5"},
		{"drift", full, FitOptions{DriftPct: 60}, "drifted by 60 %"},
		{"a tighter limit", full, FitOptions{DriftPct: 12, MaxDriftPct: 10}, "more than 10 %"},
		{"drift that is no number", full, FitOptions{DriftPct: math.NaN()}, "drifted"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := FitFlash(tt.cells, 2, tt.opt)
			if !errors.Is(err, ErrFit) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one that says %q", err, tt.want)
			}
		})
	}
}

// TestField_O13_DriftIsReported: a device that throttles during a measurement acts as two devices.
func TestField_O13_DriftIsReported(t *testing.T) {
	truth := truths()["nvme"]
	_, fit, err := FitFlash(grid(&truth, 2, func() float64 { return 1 }), 2,
		FitOptions{DriftPct: 20})
	if err != nil {
		t.Fatal(err)
	}
	if fit.DriftPct != 20 || len(fit.Warnings) != 1 || !strings.Contains(fit.Warnings[0],
		"drifted by 20 %") {
		t.Errorf("fit = %+v", fit)
	}
}

// TestCellsThatContradict: measurements on a machine so busy that they contradict each other make a
// model that says so, and a file that can be read.
func TestCellsThatContradict(t *testing.T) {
	truth, i := truths()["nvme"], 0
	cells := grid(&truth, 2, func() float64 {
		i++
		return []float64{1e-5, 1, 30, 1e-3, 10}[i%5]
	})
	spec, fit, err := FitFlash(cells[:5], 2, FitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if *fit.IntervalPct < 1000 || !slices.ContainsFunc(fit.Warnings, func(w string) bool {
		return strings.Contains(w, "contradict")
	}) {
		t.Errorf("an interval of %g %%, warnings %q", *fit.IntervalPct, fit.Warnings)
	}
	d := &Device{Version: FormatVersion, Name: "busy", Source: "made up", Flash: spec, Fit: &fit}
	if err := d.Validate(); err != nil {
		t.Error(err)
	}
}

// TestTaintedCellsDoNotMoveTheFit: invariant 5.
func TestTaintedCellsDoNotMoveTheFit(t *testing.T) {
	truth := truths()["nvme"]
	clean := grid(&truth, 2, func() float64 { return 1 })
	a, _, err := FitFlash(clean, 2, FitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cached := Cell{Engine: "pread", Chunk: 1 << 20, Depth: 64, Rate: 44_670 * units.MBps,
		Tainted: "page cache"}
	b, fit, err := FitFlash(append(clean, cached), 2, FitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("a tainted cell moved the fit from %+v to %+v", a, b)
	}
	last := fit.Cells[len(fit.Cells)-1]
	if last.Tainted == "" || last.Model == 0 || fit.ChunkMax != 256<<10 || len(fit.Warnings) == 0 {
		t.Errorf("the tainted cell is not reported as such: %+v, %+v", last, fit)
	}
}

func BenchmarkFitFlash(b *testing.B) {
	truth := truths()["nvme"]
	cells := grid(&truth, 2, func() float64 { return 1 })
	for b.Loop() {
		if _, _, err := FitFlash(cells, 2, FitOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}
