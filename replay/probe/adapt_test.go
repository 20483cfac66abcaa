package probe

import (
	"context"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/units"
)

func adaptive(t *testing.T) Config {
	cfg := DefaultConfig(image(t, 256<<20))
	cfg.Budget = 20 * time.Second
	return cfg
}

// TestAdaptiveGridNeedsFewCells: a drive that is what the model says needs a fraction of the grid,
// and is known all over it.
func TestAdaptiveGridNeedsFewCells(t *testing.T) {
	f, cfg := newFake(t, nvme()), adaptive(t)
	d, err := run(context.Background(), cfg, f.machine())
	if err != nil {
		t.Fatal(err)
	}
	fit := d.Fit
	if n := len(fit.Cells); n < 8 || n > 25 {
		t.Errorf("%d cells of 76", n)
	}
	if fit.ChunkMin != 4*units.KiB || fit.ChunkMax != units.MiB || fit.DepthMin != 1 ||
		fit.DepthMax != 256 {
		t.Errorf("range %v to %v, depth %d to %d", fit.ChunkMin, fit.ChunkMax, fit.DepthMin,
			fit.DepthMax)
	}
	truth := nvme()
	for chunk := 4 * units.KiB; chunk <= units.MiB; chunk *= 2 {
		for depth := 1; depth <= 256; depth *= 2 {
			want, got := truth.Throughput("pread", 2, chunk, depth), d.Flash.Throughput("pread", 2,
				chunk, depth)
			if math.Abs(float64(got)/float64(want)-1) > 0.05 {
				t.Errorf("%v depth %d: %v, want %v", chunk, depth, got, want)
			}
		}
	}
	if f.badBatch != "" || f.open != 0 {
		t.Errorf("%s; %d readers left open", f.badBatch, f.open)
	}
}

// TestSearchIsDeterministic: the same measurements lead the same way.
func TestSearchIsDeterministic(t *testing.T) {
	if testing.Short() {
		t.Skip("fits many times")
	}
	cfg := adaptive(t)
	cfg.Chunks = []units.Bytes{4 * units.KiB, 64 * units.KiB} // the depths are searched
	var ways [2][]flashio.Options
	for i := range ways {
		f := newFake(t, nvme())
		if _, err := run(context.Background(), cfg, f.machine()); err != nil {
			t.Fatal(err)
		}
		ways[i] = f.opened
	}
	if !slices.Equal(ways[0], ways[1]) || len(ways[0]) < 8 {
		t.Errorf("two ways: %v and %v", ways[0], ways[1])
	}
}

// TestAdaptiveGridLooksWhereTheModelIsWrong: what no model of ours explains is measured more
// closely.
func TestAdaptiveGridLooksWhereTheModelIsWrong(t *testing.T) {
	pl := &plan{engines: []flashio.Engine{flashio.EnginePread}, chunks: []units.Bytes{4096, 8192,
		16384, 32768, 65536}, depths: []int{1, 2, 4, 8, 16}}
	s := newSearch(pl, &prober{m: &machine{cores: 2}})
	truth := nvme()
	s.spec, s.first = &truth, nil
	g := &grid{modes: []flashio.Mode{{Engine: flashio.EnginePread}}}
	measure := func(chunk units.Bytes, depth int, factor float64) {
		l := loop{Kind: kindCell, Engine: flashio.EnginePread, Chunk: chunk, Depth: depth}
		s.close(l)
		rate := truth.Throughput("pread", 2, chunk, depth)
		g.cells = append(g.cells, result{loop: l, Rate: units.Rate(factor * float64(rate))})
		s.learn(g)
	}
	s.fitted = 100 // no new fit
	p := &prober{m: &machine{now: func() units.Nanos { return 0 }}}
	for _, chunk := range pl.chunks[:4] {
		measure(chunk, 1, 1)
		measure(chunk, 16, 1)
	}
	measure(65536, 1, 1)
	measure(65536, 16, 0.6)
	l, ok := s.next(g, p, units.Second)
	if !ok || l.Chunk < 16384 || l.Depth < 4 {
		t.Errorf("next is %+v, far from the cell that is 40 %% off", l)
	}
	// With everything as predicted, the search ends.
	s.surprise, s.seen = nil, nil
	for i := range s.open {
		measure(s.open[0].Chunk, s.open[0].Depth, 1)
		if i == 6 {
			break
		}
	}
	if l, ok := s.next(g, p, units.Second); ok {
		t.Errorf("next is %+v although all was as predicted", l)
	}
}

func TestCrossIsCornersAndMiddle(t *testing.T) {
	pl := &plan{engines: []flashio.Engine{flashio.EnginePread}, chunks: []units.Bytes{4096, 65536,
		units.MiB}, depths: []int{1, 16, 256}}
	list := cross(pl.cells())
	has := func(chunk units.Bytes, depth int) bool {
		return slices.Contains(list, loop{kindCell, flashio.EnginePread, chunk, depth})
	}
	// 1 MiB at depth 256 is more in flight than is measured.
	if len(list) != 5 || !has(4096, 1) || !has(4096, 256) || !has(units.MiB, 1) ||
		!has(units.MiB, 16) {
		t.Errorf("%+v", list)
	}
	if list := cross(nil); list != nil {
		t.Errorf("of nothing: %+v", list)
	}
}

func TestBothEnginesAreMeasured(t *testing.T) {
	f, cfg := newFake(t, nvme()), config(t)
	f.engines = []flashio.Engine{flashio.EnginePread, flashio.EngineUring}
	cfg.Engines = []flashio.Engine{flashio.EngineAuto}
	cfg.Depths = []int{1, 32}
	d, err := run(context.Background(), cfg, f.machine())
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Fit.Cells) != 12 || len(d.Flash.Engines) != 2 || !strings.Contains(d.Fit.Mode,
		"pread direct ext4, uring direct ext4") {
		t.Errorf("%d cells, engines %v, mode %q", len(d.Fit.Cells), d.Flash.Engines, d.Fit.Mode)
	}
	for _, name := range []string{"pread", "uring"} {
		got, want := d.Flash.Engines[name], nvme().Engines[name]
		if got.Serial != want.Serial || got.Batch < want.Batch-100 || got.Batch > want.Batch+100 ||
			got.Submit+got.Complete != want.Submit+want.Complete {
			t.Errorf("%s costs %+v, want %+v", name, got, want)
		}
	}
}

// TestAPoolThatReadsAsOneThread: what few cores make of pread must not be blamed on the drive.
func TestAPoolThatReadsAsOneThread(t *testing.T) {
	truth := nvme()
	truth.Engines["pread"] = flash.EngineCost{Submit: 13 * units.Microsecond, Complete: 13 *
		units.Microsecond, Serial: true}
	f, cfg := newFake(t, truth), config(t)
	f.engines = []flashio.Engine{flashio.EnginePread, flashio.EngineUring}
	d, err := run(context.Background(), cfg, f.machine())
	if err != nil {
		t.Fatal(err)
	}
	cost := d.Flash.Engines["pread"]
	if sum := cost.Submit + cost.Complete; !cost.Serial || sum < 23*units.Microsecond ||
		sum > 29*units.Microsecond {
		t.Errorf("pread costs %+v", cost)
	}
	for _, c := range d.Fit.Cells {
		if off := math.Abs(float64(c.Model)/float64(c.Rate) - 1); off > 0.08 {
			t.Errorf("%s %v depth %d: %v measured, %v modelled", c.Engine, c.Chunk, c.Depth, c.Rate,
				c.Model)
		}
	}
}

// TestReadersOfTheCaller: an emulated device is no file system's, and the device file says so.
func TestReadersOfTheCaller(t *testing.T) {
	f, cfg := newFake(t, nvme()), config(t)
	truth := nvme()
	truth.Engines["emulated"] = truth.Engines["pread"]
	f.flash, f.served = truth, 0 // nothing comes from storage
	f.mode = flashio.Mode{Align: 512, FileSystem: "emulated", MemoryBacked: true}
	cfg.Path, cfg.FileSize = "", 64*units.MiB
	cfg.Open = func(parallel int, engine flashio.Engine) (flashio.Reader, error) {
		f.open++
		return &fakeReader{fake: f, depth: parallel, engine: engine, size: 64 << 20}, nil
	}
	d, err := run(context.Background(), cfg, f.machine())
	if err != nil {
		t.Fatal(err)
	}
	if d.Fit.Mode != "emulated" || !strings.Contains(d.Source, "emulated") ||
		len(d.Fit.Warnings) != 0 {
		t.Errorf("mode %q, source %q, warnings %v", d.Fit.Mode, d.Source, d.Fit.Warnings)
	}
	for _, c := range d.Fit.Cells {
		if c.Engine != "emulated" || c.Tainted != "" {
			t.Errorf("cell %+v", c)
		}
	}
	if len(f.dropped) != 0 || f.open != 0 {
		t.Errorf("caches dropped: %v; %d readers left open", f.dropped, f.open)
	}
}

// TestWithoutTimesOfReads: an engine that cannot tell has no percentiles and no distribution, and
// the rest is as ever.
func TestWithoutTimesOfReads(t *testing.T) {
	f := newFake(t, nvme())
	f.mute = true
	d, err := run(context.Background(), config(t), f.machine())
	if err != nil {
		t.Fatal(err)
	}
	if c := d.Fit.Cells[0]; c.P50 != 0 || c.P99 != 0 || !d.Flash.LTFBShape.IsZero() {
		t.Errorf("P50 %v, P99 %v, shape %v", c.P50, c.P99, d.Flash.LTFBShape)
	}
}

// TestTheShapeIsThatOfTheLatency: the distribution of a noisy latency comes back, its mean being
// the host's cost less.
func TestTheShapeIsThatOfTheLatency(t *testing.T) {
	f := newFake(t, nvme())
	f.noise = 0.5
	d, err := run(context.Background(), config(t), f.machine())
	if err != nil {
		t.Fatal(err)
	}
	mean, cv2 := d.Flash.LTFBShape.Moments()
	transfer := nvme().ServerRate.Time(4096) // stays in
	if want := float64(nvme().LTFB + transfer); math.Abs(mean/want-1) > 0.05 {
		t.Errorf("mean %.4g ns, want %.4g", mean, want)
	}
	if want := math.Expm1(0.25); math.Abs(cv2/want-1) > 0.35 {
		t.Errorf("squared coefficient of variation %.3g, want %.3g", cv2, want)
	}
}

// TestRealMemoryFileIsRefused asks the real system about a real file in memory.
func TestRealMemoryFileIsRefused(t *testing.T) {
	f, err := os.CreateTemp("/dev/shm", "windrow-probe-test-")
	if err != nil {
		t.Skipf("no memory file system to try: %v", err)
	}
	defer os.Remove(f.Name())
	f.Truncate(32 << 20)
	f.Close()
	if info, err := flashio.Describe(f.Name()); err != nil || !info.MemoryBacked {
		t.Skipf("/dev/shm is not in memory here (%v)", err)
	}
	_, err = Run(context.Background(), DefaultConfig(f.Name()))
	if err == nil || !strings.Contains(err.Error(), "is memory and not flash") {
		t.Errorf("error = %v", err)
	}
}
