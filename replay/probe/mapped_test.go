package probe

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/units"
)

// copyMapped takes the time that the event model of the same device says. Every reader starts with
// nothing in memory.
func (r *fakeReader) copyMapped(reqs []flashio.Request) (err error) {
	if r.mapped == nil {
		if r.mapped, err = flash.NewStation(r.flash, flash.Config{Engine: "mmap", Parallel: 1,
			Cores: 2}); err != nil {
			return err
		}
	}
	reads := make([]flash.Read, len(reqs))
	for i, q := range reqs {
		reads[i] = flash.Read{Offset: units.Bytes(q.Offset), Length: units.Bytes(len(q.Buf))}
		if q.Offset < 0 || q.Offset+int64(len(q.Buf)) > r.size {
			r.complain("copy from outside the file")
		}
	}
	b, err := r.mapped.Batch(r.clock, reads)
	if !r.stuck {
		r.read += int64(b.Moved)
	}
	r.clock = b.End
	return err
}

func withPageCache(ahead units.Bytes) flash.Spec {
	spec := nvme()
	spec.PageCache = &flash.PageCache{ReadAhead: ahead, Fault: 12 * units.Microsecond, FillRate: 6 *
		units.GBps, HitRate: 9 * units.GBps}
	spec.Engines["mmap"] = flash.EngineCost{Submit: 100, Complete: 200, Cached: true}
	return spec
}

func TestMappedRecoversThePageCache(t *testing.T) {
	for _, ahead := range []units.Bytes{4 * units.KiB, 32 * units.KiB, 128 * units.KiB,
		2 * units.MiB} {
		truth := withPageCache(ahead)
		f := newFake(t, truth)
		f.memory = 3 * units.GiB
		cfg := config(t)
		cfg.Mapped = true
		d, err := run(context.Background(), cfg, f.machine())
		if err != nil {
			t.Fatal(err)
		}
		got := d.Flash.PageCache
		if got == nil {
			t.Fatalf("%v: nothing was found: %v", ahead, d.Fit.Warnings)
		}
		if got.ReadAhead != ahead || got.Capacity != f.memory ||
			math.Abs(float64(got.HitRate)/9e9-1) > 0.01 {
			t.Errorf("%v: %+v", ahead, got)
		}
		if cost := d.Flash.Engines["mmap"]; !cost.Cached || cost.Submit+cost.Complete < 250 ||
			cost.Submit+cost.Complete > 350 {
			t.Errorf("%v: %+v", ahead, cost)
		}
		if rate := float64(got.FillRate); (ahead >= gapLeast) != (rate > 5e9 && rate < 7e9) {
			t.Errorf("%v: filled at %v", ahead, got.FillRate)
		}
		// The fitted device is a little off, and so is the fault, in the other direction: what
		// counts is their sum.
		for _, chunk := range []units.Bytes{4 << 10, 16 << 10, 64 << 10} {
			want, have := float64(truth.Throughput("mmap", 1, chunk, 1)),
				float64(d.Flash.Throughput("mmap", 1, chunk, 1))
			if math.Abs(have/want-1) > 0.02 {
				t.Errorf("%v: cold reads of %v at %.4g B/s, true %.4g", ahead, chunk, have, want)
			}
		}
		if f.badBatch != "" || f.open != 0 || len(f.dropped) < 3 {
			t.Errorf("%s; %d readers left open, dropped %d times", f.badBatch, f.open,
				len(f.dropped))
		}
		if d.Sources["flash.page_cache"] == "" || d.Sources["flash.engines.mmap"] == "" {
			t.Errorf("sources %v", d.Sources)
		}
		if _, err := devicemodels.Marshal(d); err != nil {
			t.Error(err)
		}
	}
}

// TestMappedIsLeftOut: what cannot be measured costs a warning and not the probe.
func TestMappedIsLeftOut(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(f *fake, cfg *Config, m *machine)
		want   string
	}{
		"not asked for": {func(_ *fake, cfg *Config, _ *machine) { cfg.Mapped = false }, ""},
		"small file": {func(_ *fake, cfg *Config, _ *machine) { cfg.Path = image(t, 32<<20) },
			"less than 64MiB"},
		"still in memory": {func(f *fake, _ *Config, _ *machine) { f.stuck = true },
			"storage served too few"},
		"cannot drop": {func(_ *fake, _ *Config, m *machine) {
			m.dropCache = func(string) error { return flashio.ErrEnvironment }
		}, "stayed there"},
		"little memory": {func(f *fake, _ *Config, _ *machine) {
			f.flash.PageCache.Capacity = 8 *
				units.MiB
		}, "did not hold the 64MiB"},
	} {
		f := newFake(t, withPageCache(128*units.KiB))
		cfg, m := config(t), f.machine()
		cfg.Mapped = true
		tt.change(f, &cfg, m)
		d, err := run(context.Background(), cfg, m)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, has := d.Flash.Engines["mmap"]; has || d.Flash.PageCache != nil {
			t.Errorf("%s: found %+v", name, d.Flash.PageCache)
		}
		const about = "The path of mapped files is not measured."
		if all := strings.Join(d.Fit.Warnings, "\n"); strings.Contains(all,
			about) != (tt.want != "") || !strings.Contains(all, tt.want) {
			t.Errorf("%s: warnings %q", name, all)
		}
	}
	cfg := config(t)
	cfg.Mapped, cfg.Open = true, func(int, flashio.Engine) (flashio.Reader, error) {
		return nil,
			errBroken
	}
	if _, err := run(context.Background(), cfg, newFake(t, nvme()).machine()); err == nil ||
		errors.Is(err, errBroken) {
		t.Errorf("a device without a file: %v", err)
	}
}

func TestMappedIsResumed(t *testing.T) {
	cfg := config(t)
	cfg.Mapped, cfg.Samples = true, filepath.Join(t.TempDir(), "samples.jsonl")
	f := newFake(t, withPageCache(128*units.KiB))
	first, err := run(context.Background(), cfg, f.machine())
	if err != nil {
		t.Fatal(err)
	}
	cfg.Resume = true
	again := newFake(t, withPageCache(256*units.KiB)) // nobody looks
	second, err := run(context.Background(), cfg, again.machine())
	if err != nil {
		t.Fatal(err)
	}
	if *first.Flash.PageCache != *second.Flash.PageCache {
		t.Errorf("%+v, then %+v", first.Flash.PageCache, second.Flash.PageCache)
	}
}

// TestMappedWarnsOfASlowModel: a device that was fitted while the machine was disturbed is slower
// than the faults it serves.
func TestMappedWarnsOfASlowModel(t *testing.T) {
	for took, warned := range map[units.Nanos]bool{300 * units.Microsecond: false,
		100 * units.Microsecond: true} {
		d := &devicemodels.Device{Flash: nvme(), Sources: map[string]string{},
			Fit: &devicemodels.Fit{}}
		g := &grid{mapped: &mappedFound{ReadAhead: 128 * units.KiB, HitRate: 9 * units.GBps,
			Cold: []coldResult{{Chunk: touched, Requests: 100, Fetched: 128 * units.KiB,
				Took: took}}}}
		g.addMapped(d)
		if got := len(d.Fit.Warnings) > 0; got != warned {
			t.Errorf("%v: warnings %q", took, d.Fit.Warnings)
		}
		if c := d.Flash.PageCache; c == nil || c.Fault < 0 || warned != (c.Fault == 0) {
			t.Errorf("%v: %+v", took, c)
		}
	}
}

// TestServed: of the requests that no earlier one can have brought in, storage served nearly all.
func TestServed(t *testing.T) {
	const far = 10 * units.MiB
	round := func(fetched ...units.Bytes) (list []coldRead) {
		for i, b := range fetched {
			list = append(list, coldRead{at: units.Bytes(i) * far, fetched: b})
		}
		return list
	}
	near := append(round(128<<10, 128<<10), coldRead{at: far + 64<<10})
	for name, tt := range map[string]struct {
		rounds [][]coldRead
		want   bool
	}{
		"all":                {[][]coldRead{round(128<<10, 128<<10), round(4096)}, true},
		"one was in memory":  {[][]coldRead{round(128<<10, 0, 128<<10)}, false},
		"one was brought in": {[][]coldRead{near}, true},
		"none":               {[][]coldRead{round(0, 0)}, false},
		"nothing":            {nil, false},
	} {
		if got := served(tt.rounds, 4096); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestSlope(t *testing.T) {
	for _, tt := range []struct {
		small, large, fixed units.Nanos
		rate                units.Rate
	}{
		{100 + 512, 100 + 8192, 100, 8 * units.GBps},
		{500, 500, 0, 131_100 * units.MBps}, // no slope: all of it is the bytes' time
		{0, 0, 0, 65_540 * units.GBps},
	} {
		if fixed, rate := slope(tt.small, tt.large); fixed != tt.fixed || rate != tt.rate {
			t.Errorf("%v and %v: %v and %v, want %v and %v", tt.small, tt.large, fixed, rate,
				tt.fixed, tt.rate)
		}
	}
}

func TestShares(t *testing.T) {
	for _, tt := range []struct {
		whole, part  units.Nanos
		window, less units.Bytes
		fault        units.Nanos
		rate         units.Rate
	}{
		// 70 µs for seven eighths
		{100_000, 30_000, 128 << 10, 112 << 10, 20_000, 1638 * units.MBps},
		{100_000, -900_000, 128 << 10, 112 << 10, 0, 1311 * units.MBps}, // no more than there is
		{100_000, 120_000, 128 << 10, 112 << 10, 100_000, 0},
		{100_000, 100_000, 4096, 4096, 100_000, 0}, // no gap was measured
		{0, -50_000, 128 << 10, 112 << 10, 0, 0},
	} {
		if fault, rate := shares(tt.whole, tt.part, tt.window, tt.less); fault != tt.fault ||
			rate != tt.rate {
			t.Errorf("%+v: %v and %v", tt, fault, rate)
		}
	}
}

func TestCacheMemory(t *testing.T) {
	const none = "9223372036854771712\n"
	for name, tt := range map[string]struct {
		files map[string]string
		want  units.Bytes
	}{
		"nobody says": {nil, 0},
		"available": {map[string]string{"proc/meminfo": "MemTotal: 9 kB\n" +
			"MemAvailable:    2048 kB\n", "proc/self/cgroup": "0::/\n"}, 2 * units.MiB},
		"version 2": {map[string]string{
			"proc/meminfo": "MemAvailable: 4096 kB\n", "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "1048576\n",
		}, units.MiB},
		"version 1": {map[string]string{
			"proc/self/cgroup": "5:cpu:/x\n4:memory:/m\n0::/\n",
			"sys/fs/cgroup/memory/m/memory.limit_in_bytes": "2097152\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":   none,
		}, 2 * units.MiB},
		"container that sees its group as the root": {map[string]string{
			"proc/self/cgroup": "0::/docker/1234\n", "sys/fs/cgroup/memory.max": "65536\n",
		}, 64 * units.KiB},
		"none": {map[string]string{"proc/meminfo": "MemAvailable: many kB\n",
			"proc/self/cgroup":                           "4:memory:/\nodd\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": none}, 0},
	} {
		root := t.TempDir()
		for file, text := range tt.files {
			path := filepath.Join(root, file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path,
				[]byte(text), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		if got := cacheMemory(root); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// TestRealMappedFile measures a file of the file system that temporary files are on.
func TestRealMappedFile(t *testing.T) {
	if testing.Short() {
		t.Skip("writes and reads a file for about a second")
	}
	m := thisMachine()
	cfg := DefaultConfig(t.TempDir())
	cfg.FileSize = mappedLeast
	file, err := openTarget(context.Background(), cfg, m)
	if errors.Is(err, flashio.ErrEnvironment) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.remove()
	p := newProber(cfg, m, file, 4096, nil)
	defer flashio.FreeBuffer(p.slab)
	g := &grid{}
	if err := g.mappedFile(context.Background(), p, 1,
		m.now()+units.Nanos(time.Second)); err != nil {
		t.Fatal(err)
	}
	if g.missing() != "" {
		t.Skipf("this file system cannot be measured: %s", g.missing())
	}
	f := g.mapped
	t.Logf("%+v", *f)
	if f.ReadAhead < 4096 || f.ReadAhead > mappedLeast || f.HitRate <= 0 {
		t.Errorf("not of this world: %+v", *f)
	}
	for _, c := range f.Cold {
		// Times depend on what else the machine does. The system's count of bytes does not.
		if c.Requests > 0 && (c.Took <= 0 || c.Fetched < c.Chunk/2) {
			t.Errorf("a cold request was served from memory: %+v", c)
		}
	}
}
