package reproduce

import (
	"math"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

// Two servers of 50 µs and 1 GB/s read 8 KiB in 58.192 µs and 16 KiB in 66.384 µs each; the
// calibration finds them again.
func TestCalibrateReads(t *testing.T) {
	spec := flash.Spec{Servers: 2, Engines: map[string]flash.EngineCost{"pread": {}}}
	rows, bundles := (2 * units.Bytes(rowBytes)).Over(58192),
		(2 * units.Bytes(bundleBytes)).Over(66384)
	if err := calibrateReads(&spec, rows, bundles); err != nil {
		t.Fatal(err)
	}
	if math.Abs(spec.LTFB.Seconds()-50e-6) > 1e-9 || math.Abs(float64(spec.ServerRate)-1e9) > 1e6 {
		t.Errorf("%v and %v, want 50 us and 1 GB/s", spec.LTFB, spec.ServerRate)
	}
	if err := calibrateReads(&spec, bundles, rows); err == nil {
		t.Error("rows faster than bundles are not of a latency and a rate")
	}
}

func TestWeights(t *testing.T) {
	opt, err := modelOf("opt", "OPT-6.7B")
	if err != nil {
		t.Fatal(err)
	}
	if opt.attention != 32*4*4096*4096 || opt.ffn != 32*2*4096*16384 || opt.head != 50272*4096 ||
		opt.lookup != 0 || opt.moved() != opt.total {
		t.Errorf("OPT-6.7B: %+v", opt)
	}
	llama, err := modelOf("llama", "Llama-2-7B")
	if err != nil {
		t.Fatal(err)
	}
	if llama.lookup != 32000*4096 || llama.embedding != 2*llama.lookup ||
		llama.ffn != 32*3*4096*11008 {
		t.Errorf("Llama-2-7B: %+v", llama)
	}
}

func TestCyclicMiss(t *testing.T) {
	for _, c := range []struct {
		size, capacity float64
		r              Replacement
		want           float64
	}{{100, 100, LRU, 0}, {100, 100, Random, 0}, {101, 100, LRU, 1}, {101, 0, Random, 1}} {
		if got := CyclicMiss(c.size, c.capacity, c.r); got != c.want {
			t.Errorf("%+v: %g", c, got)
		}
	}
	// The closed form against a cache of frames that is gone through page by page.
	const pages, frames, rounds = 3000, 2000, 40
	random := rng.Stream(1, "test")
	at := make([]int, pages) // frame of a page, −1 when absent
	holds := make([]int, 0, frames)
	for i := range at {
		at[i] = -1
	}
	missed := 0
	for round := range rounds {
		for p := range pages {
			switch {
			case at[p] >= 0:
				continue
			case len(holds) < frames:
				holds = append(holds, p)
				at[p] = len(holds) - 1
			default:
				f := random.IntN(frames)
				at[holds[f]], holds[f], at[p] = -1, p, f
			}
			if round >= rounds/2 {
				missed++
			}
		}
	}
	got := float64(missed) / (pages * (rounds - rounds/2))
	if want := CyclicMiss(pages, frames, Random); math.Abs(got-want) > 0.01 {
		t.Errorf("%g of the pages were missed, the closed form says %g", got, want)
	}
}

// Numbers of which the times can be seen: 1 byte takes 1 ns to compute and 2 ns to read.
func smallPipeline() *Pipeline {
	return &Pipeline{
		Layers: 4, Attention: 10, MLP: 100, Rows: 40, Predictor: 5, Head: 7, Fixed: 3,
		Reserve: 1000,
		New:     func(layer int) units.Bytes { return units.Bytes(20 * (layer + 1)) },
		Compute: devicemodels.Term{Rate: 1e9}, Reads: 5e8, Paging: 1e8,
	}
}

func TestPipelineByHand(t *testing.T) {
	p := smallPipeline()
	got := p.Token(2, 1<<20)
	want := Token{
		Read: 60 + 80, IO: 280, Prefix: 110, // layer 1
		Rest:     110 + 7 + 5 + 2*50, // layer 0, head, predictor, two sparse layers
		Resident: 3 + 7 + 40 + 200 + 5 + 80, Total: 222 + 280,
	}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got.Regime() != ReadBound || math.Abs(got.Share()-280.0/502) > 1e-12 {
		t.Errorf("%s, share %g", got.Regime(), got.Share())
	}
	if dense := p.Token(4, 1<<20); dense.Read != 0 || dense.Total != 4*110+7 ||
		dense.Regime() != ComputeBound {
		t.Errorf("all dense: %+v", dense)
	}
	// 50 bytes too many of 200 that can be paged: the share of a cyclic pass, at 10 ns a byte.
	tight := p.Token(2, p.Resident(2)+p.Reserve-50)
	if paged := units.Nanos(10 * int64(CyclicMiss(200, 150, Random)*200)); tight.Paged != paged ||
		tight.Regime() != MemoryBound || tight.Total != want.Total+paged {
		t.Errorf("%+v, want %v of paging", tight, paged)
	}
}

// More memory never makes the best split slower, and the split fits.
func TestBestSplit(t *testing.T) {
	p := smallPipeline()
	if p.Best(0) != 1 {
		t.Error("nothing fits, and yet not 1")
	}
	last := units.Nanos(math.MaxInt64)
	for memory := p.Resident(1) + p.Reserve; memory < p.Resident(4)+p.Reserve+10; memory += 10 {
		d := p.Best(memory)
		token := p.Token(d, memory)
		if token.Paged > 0 || token.Total > last {
			t.Errorf("%d bytes: d = %d takes %v after %v, %v of it paging", memory, d, token.Total,
				last, token.Paged)
		}
		last = token.Total
	}
}

func TestFriendsAndRuns(t *testing.T) {
	// Unit 0 is always active, unit 1 in three of four tokens, unit 3 in one; runs are {0,1} and
	// {0}, {3}.
	trace := &traces.Memory{Head: traces.Header{Layers: 1, Units: 16}}
	for _, word := range []uint64{0b0011, 0b0011, 0b0011, 0b1001} {
		trace.List = append(trace.List, traces.Token{Active: []mask.Mask{{word}},
			Predicted: []mask.Mask{{word}}})
	}
	friends := closest(trace, 1, 2)
	if friends[0] != (friend{75, 75}) || friends[1] != (friend{25, 25}) ||
		friends[2] != (friend{0, 0}) {
		t.Errorf("%+v", friends)
	}
	if got := meanRun(trace); got != 8.0/5 {
		t.Errorf("mean run %g, want 8 units in 5 runs", got)
	}
}

// Two tokens of two layers, with rows of 10 bytes: the evictions of a token take effect after it
// has computed.
func TestDigest(t *testing.T) {
	head := &traces.Header{Layers: 1, Units: 100, UnitBytes: 10}
	token := func(i uint32, misses, evictions uint32) []traces.RunRow {
		return []traces.RunRow{
			{Token: i, Part: traces.PartIO, Dur: 100, Bytes: units.Bytes(misses) * 10,
				Misses: misses},
			{Token: i, Part: traces.PartMemory, Bytes: 50, Evictions: evictions},
			{Token: i, Layer: traces.NoLayer, Part: traces.PartOther},
		}
	}
	run := &traces.Run{Rows: append(append(token(0, 8, 2), token(1, 3, 0)...), token(2, 1, 4)...)}
	m := digest(run, head, 1)
	if m.io != 100 || m.read != 20 || m.copied != 50 || m.ffn != 1000 || len(m.byToken) != 3 {
		t.Errorf("%+v", m)
	}
	if m.resident != (90+100)/2 { // 8−2+3, and one more
		t.Errorf("%v resident, want 95 B", m.resident)
	}
}
