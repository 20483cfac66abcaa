package devicemodels

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/units"
)

// limitedCells measures a device behind a token bucket with its event model, including single
// reads.
func limitedCells(t *testing.T, spec flash.Spec) []Cell {
	t.Helper()
	var cells []Cell
	random := rand.New(rand.NewPCG(8, 9))
	for _, chunk := range []units.Bytes{4096, 32 * units.KiB} {
		for _, depth := range []int{1, 2, 8, 32} {
			// Batches of one read per thread give the times of single reads: a thread waits for no
			// other.
			var c Cell
			s, err := flash.NewStation(spec, flash.Config{Engine: "pread", Parallel: depth,
				Cores: 2, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			now, reads := units.Nanos(0), 0
			for now < 6*units.Second {
				batch := make([]flash.Read, depth)
				for i := range batch {
					batch[i] = flash.Read{Offset: units.Bytes(random.Int64N(1<<20)) * chunk,
						Length: chunk}
				}
				b, err := s.Batch(now, batch)
				if err != nil {
					t.Fatal(err)
				}
				c.Times.Add(b.Sojourn/units.Nanos(depth), int64(depth))
				now, reads = b.End, reads+depth
			}
			c.Engine, c.Chunk, c.Depth, c.Reads = "pread", chunk, depth, reads
			c.Rate = (units.Bytes(reads) * chunk).Over(now)
			cells = append(cells, c)
		}
	}
	return cells
}

func TestFitFindsTheLimit(t *testing.T) {
	spec := flash.Spec{Servers: 8, LTFB: 100 * units.Microsecond, ServerRate: 300 * units.MBps,
		Align:   4096,
		Engines: map[string]flash.EngineCost{"pread": {Submit: 1000, Complete: 1000}}}
	for name, limit := range map[string]flash.Limit{
		"bytes":    {Rate: 4 * units.MBps, Interval: 100 * units.Millisecond},
		"requests": {IOPS: 500, Interval: 100 * units.Millisecond},
	} {
		limited := spec
		limited.Limit = &limit
		fitted, fit, err := FitFlash(limitedCells(t, limited), 2, FitOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if fitted.Limit == nil {
			t.Fatalf("%s: no limit was found\n%+v", name, fit.Cells)
		}
		got := *fitted.Limit
		near := func(a, b float64) bool { return a == b || math.Abs(a/b-1) < 0.05 }
		if !near(float64(got.Rate), float64(limit.Rate)) || !near(float64(got.IOPS),
			float64(limit.IOPS)) || !near(float64(got.Interval), float64(limit.Interval)) {
			t.Errorf("%s: found %+v, want %+v", name, got, limit)
		}
		// The device behind the limit comes from what happens between stalls.
		if !near(float64(fitted.LTFB+fitted.ServerRate.Time(4096)),
			float64(spec.LTFB+spec.ServerRate.Time(4096))) && fitted.LTFB > 2*spec.LTFB {
			t.Errorf("%s: a read of 4 KiB takes %v", name, fitted.LTFB)
		}
		if fit.MeanAbsPct > 5 {
			t.Errorf("%s: the model is %.3g %% off the limited cells", name, fit.MeanAbsPct)
		}
	}
}

// TestNoLimitWithoutStalls: a slow tail does not count as a token bucket.
func TestNoLimitWithoutStalls(t *testing.T) {
	truth := truths()["sata"]
	cells := grid(&truth, 2, func() float64 { return 1 })
	for i := range cells {
		for range 1000 {
			cells[i].Times.Add(100*units.Microsecond, 1)
		}
		// a hundredth of the reads, two thirds of the time
		cells[i].Times.Add(30*units.Millisecond, 10)
	}
	if spec, _, err := FitFlash(cells, 2, FitOptions{}); err != nil || spec.Limit != nil {
		t.Errorf("found %+v in a device whose rates do not agree (%v)", spec.Limit, err)
	}
}
