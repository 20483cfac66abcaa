package probe

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/units"
)

// limited is a configuration with cells that a limit of 20 MB/s, or of 2,000 reads/s, holds, and
// time to look for it.
func limited(t *testing.T) Config {
	cfg := config(t)
	cfg.Budget = 40 * time.Second
	cfg.Chunks, cfg.Depths = []units.Bytes{4 * units.KiB, 32 * units.KiB}, []int{1, 4, 8}
	return cfg
}

func TestProbeFindsALimit(t *testing.T) {
	const slice = 100 * units.Millisecond
	tests := map[string]struct {
		bucket bucket
		rate   float64 // bytes per second
		iops   float64
		burst  float64
	}{
		"bytes": {bucket: bucket{interval: slice, credit: 2e6, burst: 2e6},
			rate: 20e6},
		"bytes with a burst": {bucket: bucket{interval: slice, credit: 2e6, burst: 8e6}, rate: 20e6,
			burst: 8e6},
		"requests": {bucket: bucket{interval: slice, credit: 200, burst: 200,
			perRead: true}, iops: 2000},
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 0.05*want {
			t.Errorf("%s = %.4g, want %.4g", what, got, want)
		}
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, nvme())
			f.limit, f.noise = &tt.bucket, 0.1
			d, err := run(context.Background(), limited(t), f.machine())
			if err != nil {
				t.Fatal(err)
			}
			l := d.Flash.Limit
			if l == nil {
				t.Fatal("no limit was found")
			}
			near("rate", float64(l.Rate), tt.rate)
			near("reads per second", float64(l.IOPS), tt.iops)
			near("interval", l.Interval.Seconds(), slice.Seconds())
			if math.Abs(float64(l.Burst)-tt.burst) > 0.15*tt.burst {
				t.Errorf("burst %v, want %.3g", l.Burst, tt.burst)
			}
			// What is behind the limit shows in the reads that did not wait.
			if off := float64(d.Flash.LTFB)/float64(nvme().LTFB) - 1; math.Abs(off) > 0.10 {
				t.Errorf("LTFB %v behind the limit, want %v", d.Flash.LTFB, nvme().LTFB)
			}
			if mean, _ := d.Flash.LTFBShape.Moments(); mean > 1.2*float64(nvme().LTFB) {
				t.Errorf("the shape of the LTFB has a mean of %.3g ns: stalls are in it", mean)
			}
			for _, c := range d.Fit.Cells {
				if off := float64(c.Model)/float64(c.Rate) - 1; c.Tainted == "" &&
					math.Abs(off) > 0.08 {
					t.Errorf("%v depth %d: %v measured, %v modelled", c.Chunk, c.Depth, c.Rate,
						c.Model)
				}
			}
		})
	}
}

func TestProbeFindsNoLimitWhereNoneIs(t *testing.T) {
	f := newFake(t, nvme())
	f.noise = 0.6
	stalls := 0
	f.onBatch = func() error { // a stall of 20 ms now and then, at no regular times
		if f.dice.Float64() < 0.003 {
			f.clock += 20 * units.Millisecond
			stalls++
		}
		return nil
	}
	cfg := limited(t)
	cfg.MaxDriftPct = 1e6
	d, err := run(context.Background(), cfg, f.machine())
	if err != nil {
		t.Fatal(err)
	}
	if d.Flash.Limit != nil || stalls < 5 {
		t.Errorf("limit %+v after %d stalls", d.Flash.Limit, stalls)
	}
}

func TestLoopsThatOnlyShowTheLimitAreLeftOut(t *testing.T) {
	f := newFake(t, nvme())
	f.limit = &bucket{interval: 100 * units.Millisecond, credit: 2e6, burst: 2e6}
	cfg := limited(t)
	cfg.Chunks, cfg.Depths = []units.Bytes{4 * units.KiB, 16 * units.KiB, 512 * units.KiB},
		[]int{1, 8}
	d, err := run(context.Background(), cfg, f.machine())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(d.Fit.Cells, func(c devicemodels.Cell) bool {
		return c.Chunk == 512*units.KiB && c.Depth == 8
	})
	if i < 0 || d.Fit.Cells[i].Tainted == "" {
		t.Errorf("4 MiB in flight against 2 MB of credit: %+v", d.Fit.Cells)
	}
}

// TestPattern: stop and go is regular, and takes a good part of the time.
func TestPattern(t *testing.T) {
	const ms = units.Millisecond
	// ends makes completions: reads 0.1 ms apart, and before each group a stall.
	ends := func(reads []int, stall []units.Nanos) (list []units.Nanos) {
		at := units.Nanos(0)
		for i, n := range reads {
			at += stall[i%len(stall)]
			for range n {
				at += ms / 10
				list = append(list, at)
			}
		}
		return list
	}
	same := slices.Repeat([]int{100}, 12)
	tests := []struct {
		what string
		ends []units.Nanos
		want units.Nanos
	}{
		{"regular stalls", ends(same, []units.Nanos{90 * ms}), 100 * ms},
		{"one of them longer", ends(same, []units.Nanos{90 * ms, 90 * ms, 90 * ms, 90 * ms, 90 * ms,
			400 * ms}), 100 * ms},
		{"no reads", nil, 0},
		{"no stalls", ends(same, []units.Nanos{ms / 10}), 0},
		{"short stalls", ends(same, []units.Nanos{2 * ms}), 0},
		{"too few", ends(same[:4], []units.Nanos{90 * ms}), 0},
		{"irregular stalls", ends(same, []units.Nanos{90 * ms, 50 * ms, 70 * ms, 130 * ms}), 0},
		{"irregular amounts", ends([]int{100, 10, 60, 200, 30, 90, 150, 20, 80, 5}, []units.Nanos{
			90 * ms}), 0},
		{"rarely", ends(slices.Repeat([]int{1000}, 12), []units.Nanos{20 * ms}), 0},
	}
	for _, tt := range tests {
		got := pattern(tt.ends)
		switch {
		case tt.want == 0:
			if got != nil {
				t.Errorf("%s: %+v", tt.what, *got)
			}
		case got == nil:
			t.Errorf("%s: not seen", tt.what)
		case math.Abs(float64(got.interval-tt.want)) > float64(tt.want)/20 || got.first != 100:
			t.Errorf("%s: %+v, want an interval of %v and 100 reads first", tt.what, *got, tt.want)
		}
	}
}

func TestDecideTellsBytesFromRequests(t *testing.T) {
	s := func(reads float64) *stopAndGo {
		return &stopAndGo{interval: 100 * units.Millisecond, reads: reads, first: int(reads / 10),
			firstAt: units.Millisecond}
	}
	tests := []struct {
		what                string
		small, big          *stopAndGo
		smallRate, bigRate  float64
		wantRate, wantReads float64
	}{
		{"both held by bytes", s(5000), s(312.5), 5000, 312.5, 20.48e6, 0},
		{"both held by requests", s(2000), s(2000), 2000, 2000, 0, 2000},
		{"small reads are too slow to be held", nil, s(312.5), 3000, 312.5, 20.48e6, 0},
		{"large reads are too slow to be held", s(2000), nil, 2000, 900, 0, 2000},
		{"neither", nil, nil, 1, 1, 0, 0},
	}
	for _, tt := range tests {
		l := decide(tt.small, tt.big, 4096, 65536, tt.smallRate, tt.bigRate)
		if l == nil {
			if tt.wantRate+tt.wantReads > 0 {
				t.Errorf("%s: no limit", tt.what)
			}
			continue
		}
		if float64(l.Rate) != tt.wantRate || float64(l.IOPS) != tt.wantReads || l.Burst != 0 {
			t.Errorf("%s: %+v", tt.what, *l)
		}
	}
}

// TestProbeFindsTheEffectOfTheSpan: reads beyond the first 64 MiB take longer.
func TestProbeFindsTheEffectOfTheSpan(t *testing.T) {
	for _, extra := range []units.Nanos{0, 30 * units.Microsecond} {
		f := newFake(t, nvme())
		f.spread, f.noise = extra, 0.1
		cfg := config(t)
		cfg.Path = image(t, 512<<20)
		cfg.Budget = 10 * time.Second
		d, err := run(context.Background(), cfg, f.machine())
		if err != nil {
			t.Fatal(err)
		}
		if extra == 0 {
			if len(d.Flash.Spans) != 0 {
				t.Errorf("an effect was found where none is: %+v", d.Flash.Spans)
			}
			continue
		}
		// One read in eight lies in the first 64 MiB of 512.
		want := float64(extra) * 7 / 8
		if len(d.Flash.Spans) != 2 || d.Flash.Spans[0].Within != narrowSpan ||
			math.Abs(float64(d.Flash.Spans[1].ExtraLTFB)/want-1) > 0.1 {
			t.Fatalf("spans %+v, want one of %.3g ns", d.Flash.Spans, want)
		}
		if off := float64(d.Flash.LTFB)/float64(nvme().LTFB) - 1; math.Abs(off) > 0.08 {
			t.Errorf("LTFB %v within a stretch, want %v", d.Flash.LTFB, nvme().LTFB)
		}
	}
}

func TestLimitedLoopsTooSlowForTheirTimeAreSkipped(t *testing.T) {
	f := newFake(t, nvme())
	f.limit = &bucket{interval: 100 * units.Millisecond, credit: 4e5, burst: 4e5}
	cfg := limited(t)
	cfg.Chunks, cfg.Depths = []units.Bytes{4 * units.KiB, 8 * units.KiB, units.MiB}, []int{1, 4, 64}
	cfg.Engines = []flashio.Engine{flashio.EnginePread}
	d, err := run(context.Background(), cfg, f.machine())
	if err != nil {
		t.Fatal(err)
	}
	// 64 reads of 1 MiB take 16 s a round.
	if used := time.Duration(f.clock); used > cfg.Budget*3/2 || len(d.Fit.Cells) >= 9 {
		t.Errorf("a budget of %v took %v for %d cells", cfg.Budget, used, len(d.Fit.Cells))
	}
	if !slices.ContainsFunc(d.Fit.Warnings, func(w string) bool {
		return len(w) > 7 &&
			w[:7] == "A limit"
	}) {
		t.Errorf("warnings = %v", d.Fit.Warnings)
	}
}
