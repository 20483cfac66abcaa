package devicemodels

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/windrow-sim/windrow/internal/units"
)

// probed is a host with all measurements of a probe.
func probed() Host {
	return Host{
		Cores: 4, MemoryRate: 20 * units.GBps, DenseRate: 15 * units.GBps, DenseFixed: 2000,
		RowRate: 10 * units.GBps, RowFixed: 1000,
		CopyRate: 8 * units.GBps, CopyFixed: 100, KVRate: 12 * units.GBps, LayerFixed: 3000,
		TokenFixed: 10000, DecideFixed: 500, DecideUnit: 10,
	}
}

// TestBasePrecisionIsChargedAsTheFileSays: for weights of the precision of the file's rates every
// rate is used unchanged, with any roofline. For others it is scaled by bytes.
func TestBasePrecisionIsChargedAsTheFileSays(t *testing.T) {
	hosts := map[string]Host{"probed": probed(), "drive alone": {}}
	for _, name := range Presets() {
		d, err := Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		hosts[name] = d.Host
	}
	for name, h := range hosts {
		names := []string{h.Precision, strings.ToUpper(h.Precision)}
		if h.Precision == "" {
			names = []string{"f16", "F16", ""}
		}
		for _, precision := range names {
			c := h.At(precision)
			for _, b := range []units.Bytes{0, 1, 16384, 134_217_728} {
				check := func(term Term, given units.Rate, fixed units.Nanos, calls int) {
					t.Helper()
					if want := units.Nanos(calls)*fixed + given.Time(b); given > 0 &&
						term.Time(b, calls) != want {
						t.Errorf("%s at %q: %d calls of %v of %s take %v, want %v", name, precision,
							calls, b, term.Name, term.Time(b, calls), want)
					}
					if given > 0 && term.Basis != Measured {
						t.Errorf("%s: %v, but its rate is given", name, term)
					}
				}
				check(c.Dense, h.DenseRate, h.DenseFixed, 4)
				check(c.Rows, h.RowRate, h.RowFixed, 1)
				check(c.Copy, h.CopyRate, h.CopyFixed, 17)
				check(c.KV, h.KVRate, 0, 1)
			}
		}
		if c := h.At("bf16"); h.Precision != "" && h.Precision != "bf16" && h.DenseRate > 0 &&
			c.Dense.Basis != Scaled {
			t.Errorf("%s: rates of %s are said to be %v for bf16", name, h.Precision, c.Dense)
		}
		for _, w := range h.At(h.Precision).Warnings() {
			if strings.Contains(w, "times the roofline") {
				t.Errorf("%s: %s", name, w)
			}
		}
	}
	h := probed()
	if got := h.Decide(7); got != 570 {
		t.Errorf("deciding about 7 units takes %v, want 570 ns", got)
	}
}

func TestWhatATermRestsOn(t *testing.T) {
	with := func(change func(*Host)) *Host {
		h := probed()
		change(&h)
		return &h
	}
	f32 := map[string]Precision{"f32": {DenseRate: 17 * units.GBps}}
	tests := []struct {
		name      string
		host      *Host
		precision string
		term      func(c Compute) Term
		basis     Basis
		rate      units.Rate
		text      string
	}{
		{"measured", with(func(*Host) {}), "f16", func(c Compute) Term { return c.Dense }, Measured,
			15 * units.GBps, "dense: measured, 0.75 of the roofline"},
		{"copies move each byte twice", with(func(*Host) {}), "f16", func(c Compute) Term {
			return c.Copy
		}, Measured, 8 * units.GBps, "copies: measured, 0.8 of the roofline"},
		{"another precision", with(func(*Host) {}), "F32", func(c Compute) Term { return c.Dense },
			Scaled, 15 * units.GBps, "dense: scaled by bytes, 0.75 of the roofline"},
		{"a precision without a name here", with(func(*Host) {}), "q3_k", func(c Compute) Term {
			return c.Rows
		}, Scaled, 10 * units.GBps, "rows: scaled by bytes, 0.5 of the roofline"},
		{"a rate of its own", with(func(h *Host) { h.Precisions = f32 }), "f32",
			func(c Compute) Term { return c.Dense }, Measured, 17 * units.GBps,
			"dense: measured, 0.85 of the roofline"},
		{"the other rate is not given", with(func(h *Host) { h.Precisions = f32 }), "f32",
			func(c Compute) Term { return c.Rows }, Scaled, 10 * units.GBps,
			"rows: scaled by bytes, 0.5 of the roofline"},
		{"no rate", with(func(h *Host) { h.KVRate = 0 }), "f16", func(c Compute) Term {
			return c.KV
		}, Roofline, 20 * units.GBps, "keys and values: roofline"},
		{"no rate of copies", with(func(h *Host) { h.CopyRate, h.CopyFixed = 0, 0 }), "f16",
			func(c Compute) Term { return c.Copy }, Roofline, 10 * units.GBps, "copies: roofline"},
		{"arithmetic bounds", with(func(h *Host) {
			h.DenseRate, h.DenseFixed, h.ComputeGFLOPS = 0,
				0, 8
		}), "f16", func(c Compute) Term { return c.Dense }, Roofline, 8 * units.GBps,
			"dense: roofline"},
		{"arithmetic alone bounds", &Host{Cores: 2, ComputeGFLOPS: 8}, "f32", func(c Compute) Term {
			return c.Rows
		}, Roofline, 16 * units.GBps, "rows: roofline"},
		{"and more so where a byte is more weights", with(func(h *Host) { h.ComputeGFLOPS = 16 }),
			"q8", func(c Compute) Term { return c.Dense }, Scaled, 8 * units.GBps,
			"dense: scaled by bytes, 1 of the roofline"},
		{"all in the fixed part", with(func(h *Host) { h.RowRate = 0 }), "f16",
			func(c Compute) Term { return c.Rows }, Measured, 0, "rows: measured as a fixed time"},
		{"a fixed part of other weights", with(func(h *Host) { h.RowRate = 0 }), "f32",
			func(c Compute) Term { return c.Rows }, Roofline, 20 * units.GBps, "rows: roofline"},
		{"nothing", &Host{Cores: 2}, "f16", func(c Compute) Term { return c.Dense }, Unknown, 0,
			"dense: not known, charged as no time"},
		{"no roofline", &Host{Cores: 2, DenseRate: 5}, "f16", func(c Compute) Term {
			return c.Dense
		}, Measured, 5, "dense: measured"},
		{"a predictor as dense weights", with(func(*Host) {}), "f16", func(c Compute) Term {
			return c.Predictor
		}, Scaled, 15 * units.GBps, "predictor: scaled by bytes, 0.75 of the roofline"},
		{"a predictor as a bound", with(func(h *Host) { h.DenseRate, h.DenseFixed = 0, 0 }), "f16",
			func(c Compute) Term { return c.Predictor }, Roofline, 20 * units.GBps,
			"predictor: roofline"},
		{"a predictor's own rate", with(func(h *Host) { h.PredictorRate = 4 * units.GBps }), "f16",
			func(c Compute) Term { return c.Predictor }, Measured, 4 * units.GBps,
			"predictor: measured, 0.2 of the roofline"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.term(tt.host.At(tt.precision))
			if got.Basis != tt.basis || got.Rate != tt.rate || got.String() != tt.text {
				t.Errorf("%q at %v, want %q at %v", got, got.Rate, tt.text, tt.rate)
			}
		})
	}
}

// TestBoundsBound: a roofline or scaled rate is never faster than the roofline. A measured rate
// stays, with a warning.
func TestBoundsBound(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		rate := func() units.Rate {
			return units.Rate(random.IntN(3)) *
				units.Rate(random.Int64N(40e9))
		}
		h := Host{MemoryRate: rate(), DenseRate: rate(), RowRate: rate(), CopyRate: rate(),
			KVRate: rate(), PredictorRate: rate(),
			ComputeGFLOPS: float64(random.IntN(2)) * 50 * random.Float64(), TransferRate: rate()}
		c := h.At([]string{"f16", "f32", "bf16", "q8", "other"}[random.IntN(5)])
		above := 0
		for _, term := range c.Terms() {
			if term.Efficiency() > 1 {
				above++
				if term.Basis != Measured {
					t.Fatalf("%+v: %v is above its bound", h, term)
				}
			}
			if (term.Basis == Unknown) != (term.Rate == 0) || (term.Basis == Roofline &&
				term.Rate != term.Bound) {
				t.Fatalf("%+v: %+v", h, term)
			}
		}
		if said := strings.Count(strings.Join(c.Warnings(), "\n"),
			"times the roofline"); said != above {
			t.Fatalf("%+v: %d rates are above the roofline, %d are said to be", h, above, said)
		}
	}
}

func TestWarnings(t *testing.T) {
	h := probed()
	c := h.At("f16")
	if w := c.Warnings(); len(w) != 0 {
		t.Errorf("a probed host is warned of: %q", w)
	}
	c = new(Host).At("f16")
	if w := c.Warnings(); len(w) != 1 ||
		!strings.Contains(w[0], "dense, rows, copies, keys and values, predictor") {
		t.Errorf("a drive without a host: %q", w)
	}
	h.KVRate = 30 * units.GBps
	c = h.At("f16")
	if w := c.Warnings(); len(w) != 1 ||
		!strings.Contains(w[0], "keys and values at 30GB/s is 1.5 times the roofline of 20GB/s") {
		t.Errorf("a rate above the memory's: %q", w)
	}
}

// TestSmallWorkIsSlow: the fixed part makes the rate depend on the size. Rate·Fixed bytes reach
// half of the rate.
func TestSmallWorkIsSlow(t *testing.T) {
	h := probed()
	dense := h.At("f16").Dense
	half := units.Bytes(float64(h.DenseRate) * h.DenseFixed.Seconds())
	if got := float64(half.Over(dense.Time(half, 1))) /
		float64(h.DenseRate); math.Abs(got-0.5) > 1e-6 {
		t.Errorf("%v reach %.4f of the rate, want half", half, got)
	}
	last := units.Rate(0)
	for b := units.Bytes(1 << 10); b <= 1<<30; b *= 4 {
		rate := b.Over(dense.Time(b, 1))
		if rate <= last || rate > h.DenseRate {
			t.Errorf("%v at %v, after %v", b, rate, last)
		}
		last = rate
	}
}

// TestPredictorOfThePaper: the predictors of OPT-6.7B have rank 128 in 28 layers and 1024 in 4, two
// matrices each (LLM in a flash, appendix C.1), and take 2.75 % of the time on the M1 Max (appendix
// B.3). As dense weights they take 2.36 %.
func TestPredictorOfThePaper(t *testing.T) {
	const model, ffn, rank, params = 4096, 16384, 28*128 + 4*1024, 6_658_473_984
	d, err := Preset("m1-max")
	if err != nil {
		t.Fatal(err)
	}
	c := d.Host.At("f32")
	share := 100 * c.Predictor.Time(2*rank*(model+ffn), 2*32).Seconds() / c.Dense.Time(2*params,
		0).Seconds()
	if math.Abs(share-2.36) > 0.01 || math.Abs(share/2.75-1) > 0.2 {
		t.Errorf("the predictors take %.2f %% of the time of all weights; derived 2.36, "+
			"published 2.75", share)
	}
}

// TestAcceleratorOfItsOwn: rows cross a bus, and predictions list the term. Machines without a bus
// have no cost and no term.
func TestAcceleratorOfItsOwn(t *testing.T) {
	h := probed()
	c := h.At("f16")
	if got := c.Transfer.Time(units.GiB, 9) + c.Held.Time(units.GiB, 9); got != 0 ||
		len(c.Terms()) != 5 {
		t.Errorf("without an accelerator transfers take %v; terms %v", got, c.Terms())
	}
	h.TransferRate, h.TransferFixed, h.HeldRate = 10*units.GBps, 5000, 100*units.GBps
	c = h.At("f16")
	if got := c.Transfer.Time(20_000, 2); got != 12_000 {
		t.Errorf("two batches of 20 kB take %v, want 12 us", got)
	}
	if got := c.Held.Time(1_000_000, 1); got != 10_000 {
		t.Errorf("holding 1 MB takes %v, want 10 us", got)
	}
	if list := c.Terms(); len(list) != 7 || list[5].String() != "transfer: measured, 0.5 of the "+
		"roofline" || list[6].String() != "held rows: measured" {
		t.Errorf("terms %v", list)
	}
}

// overlapCase is one possible pair of I/O and compute: neither demands more than the memory's rate.
type overlapCase struct {
	host                  Host
	io, compute           units.Nanos
	ioBytes, computeBytes units.Bytes
}

func (o overlapCase) wall() units.Nanos {
	return o.host.Overlap(o.io, o.ioBytes, o.compute, o.computeBytes)
}

func randomOverlap(random *rand.Rand) overlapCase {
	o := overlapCase{host: Host{MemoryRate: units.Rate(1e9 + random.Int64N(400e9)),
		IOContention: 80 * random.Float64() * random.Float64()},
		io: units.Nanos(1 + random.Int64N(1e8)), compute: units.Nanos(1 + random.Int64N(1e8))}
	o.ioBytes = units.Bytes(10e9 * random.Float64() * o.io.Seconds())
	o.computeBytes = units.Bytes(float64(o.host.MemoryRate) * random.Float64() *
		o.compute.Seconds())
	return o
}

// TestOverlapLimits: never less than the longer of the two, never more than both in turn, and never
// less for more contention, more bytes or less memory.
func TestOverlapLimits(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	kinds := map[string]int{}
	for range 20_000 {
		o := randomOverlap(random)
		wall := o.wall()
		switch {
		case wall < max(o.io, o.compute) || wall > o.io+o.compute:
			t.Fatalf("%+v: %v is outside [%v, %v]", o, wall, max(o.io, o.compute), o.io+o.compute)
		case wall == max(o.io, o.compute):
			kinds["hidden"]++
		case wall == o.io+o.compute:
			kinds["in turn"]++
		default:
			kinds["between"]++
		}
		separate := o
		separate.host.IOContention = 0
		if got := separate.wall(); got != max(o.io, o.compute) {
			t.Fatalf("%+v: separate memories take %v", separate, got)
		}
		for name, change := range map[string]func(*overlapCase){
			"more contention":   func(o *overlapCase) { o.host.IOContention *= 1.3 },
			"more bytes of I/O": func(o *overlapCase) { o.ioBytes += o.ioBytes / 3 },
			"less memory": func(o *overlapCase) {
				o.host.MemoryRate -= o.host.MemoryRate /
					4
			},
			"longer I/O at the same rate": func(o *overlapCase) {
				o.io, o.ioBytes = 2*o.io, 2*o.ioBytes
			},
		} {
			worse := o
			change(&worse)
			if got := worse.wall(); got < wall-1 {
				t.Fatalf("%s: %v became %v, %+v", name, wall, got, o)
			}
		}
	}
	for _, kind := range []string{"hidden", "in turn", "between"} {
		if kinds[kind] < 500 {
			t.Errorf("only %d of the cases are %s", kinds[kind], kind)
		}
	}
}

// TestOverlapAgainstSteps compares the closed form with a simulation in time steps: in each step
// the I/O takes its part of the memory first, and compute the rest.
func TestOverlapAgainstSteps(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 50 {
		o := randomOverlap(random)
		if o.computeBytes == 0 {
			continue
		}
		const steps = 20_000
		step := (o.io + o.compute).Seconds() / steps
		wanted := float64(o.computeBytes) / o.compute.Seconds()
		left, now := float64(o.computeBytes), 0.0
		for left > 0 || now < o.io.Seconds() {
			rate := wanted
			if now < o.io.Seconds() {
				taken := o.host.IOContention * float64(o.ioBytes) / o.io.Seconds()
				rate = min(rate, max(0, float64(o.host.MemoryRate)-taken))
			}
			left -= rate * step
			now += step
		}
		if got := o.wall().Seconds(); math.Abs(got-now) > 3*step {
			t.Errorf("%+v: %v s, step by step %v s", o, got, now)
		}
	}
}

// TestOverlapByHand: memory of 20 GB/s, reads of 5 GB/s for 10 ms (50 MB).
func TestOverlapByHand(t *testing.T) {
	const ms, mb = units.Millisecond, units.Bytes(1e6)
	for name, tt := range map[string]struct {
		contention   float64
		compute      units.Nanos
		computeBytes units.Bytes
		want         units.Nanos
	}{
		"compute leaves enough": {2, 30 * ms, 300 * mb, 30 * ms},
		// wants 10 of 20, the I/O takes 10
		// (600 + 2·50 MB) / 20 GB/s
		"compute uses all: all bytes by rate": {2, 30 * ms, 600 * mb, 35 * ms},
		// 10 ms at half the speed
		"a part is taken": {3, 30 * ms, 300 * mb, 35 * ms},
		// one after the other
		"the I/O takes all": {4, 30 * ms, 600 * mb, 40 * ms},
		// 40 MB at 15 GB/s are done in 2.7 ms
		"the I/O outlasts compute": {1, 2 * ms, 40 * mb, 10 * ms},
		// no worse than one after the other
		"contention beyond all reason": {1e300, 30 * ms, 300 * mb, 40 * ms},
		// no bytes, nothing to lose
		"arithmetic alone": {5, 30 * ms, 0, 30 * ms},
		// 40 GB/s, more than memory has: 100 MB at 40 GB/s
		"compute from a cache": {2, 10 * ms, 400 * mb, 12*ms + 500*1_000},
	} {
		h := Host{MemoryRate: 20 * units.GBps, IOContention: tt.contention}
		if got := h.Overlap(10*ms, 50*mb, tt.compute, tt.computeBytes); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
	unknown := Host{IOContention: 2}
	if got := unknown.Overlap(10*ms, 50*mb, 30*ms, 600*mb); got != 30*ms {
		t.Errorf("memory of no known rate: %v, want the longer of both", got)
	}
	if got := probed(); got.Overlap(0, 0, 30*ms, mb) != 30*ms || got.Overlap(10*ms, mb, 0,
		0) != 10*ms {
		t.Error("one of two alone does not take its own time")
	}
}

// TestPrefetchCanGainNothing: on the M3 Max of github.com/danveloper/flash-moe, commit 3601d41882
// (400 GB/s of unified memory, cold reads of 5.5 GB/s, docs/io-and-gpu-exploration.md; the remark
// on overlap is in its notes), overlapping reads with a kernel that uses all of memory gained
// nothing. Bytes alone do not explain this: with two bytes of traffic per byte read, overlap would
// hide 97 % of the reads. At 400/5.5 it gains nothing, and useless prefetches are a loss.
func TestPrefetchCanGainNothing(t *testing.T) {
	const compute, needed = 10 * units.Millisecond, units.Bytes(11e6)
	h := Host{Cores: 16, MemoryRate: 400 * units.GBps}
	ssd := units.Rate(5_500 * units.MBps)
	// the kernel uses all of memory
	traffic := units.Bytes(float64(h.MemoryRate) * compute.Seconds())
	onDemand := ssd.Time(needed) + compute
	prefetch := func(read units.Bytes) units.Nanos {
		return h.Overlap(ssd.Time(read), read, compute,
			traffic)
	}

	h.IOContention = 2
	if gain := float64(onDemand-prefetch(needed)) /
		float64(ssd.Time(needed)); math.Abs(gain-0.9725) > 0.001 {
		t.Errorf("by bytes alone, prefetching gains %.4f of the reads, want 0.9725", gain)
	}
	h.IOContention = 400 / 5.5
	if got := prefetch(needed); got < onDemand-10 || got > onDemand {
		t.Errorf("prefetching takes %v, reading on demand %v: want the same", got, onDemand)
	}
	if got := prefetch(needed + needed/4); got <= onDemand {
		t.Errorf("prefetching a quarter too much takes %v, not more than %v on demand", got,
			onDemand)
	}
}

// TestField_H7_BiggerCacheCanBeSlower: with a larger expert cache decoding was slower, at identical
// output, on unified memory (github.com/JustVugg/colibri issue 387). Contention is no explanation,
// since fewer reads take less of the memory. The cost of keeping all resident rows visible to the
// accelerator is one.
func TestField_H7_BiggerCacheCanBeSlower(t *testing.T) {
	const model, used = 64 * units.GiB, 2 * units.GiB // of experts; per token
	curve := func(h Host) (times []units.Nanos) {
		c, ssd := h.At("f16"), 5*units.GBps
		for held := units.Bytes(0); held <= model; held += model / 16 {
			// any expert as likely as any other
			read := used - units.Bytes(float64(used)*float64(held)/float64(model))
			rows := c.Rows.Time(used, 60)
			times = append(times, h.Overlap(ssd.Time(read), read, rows, used)+c.Held.Time(held, 1))
		}
		return times
	}
	// lowest is the minimum of the curve; falling says that it never rises.
	shape := func(times []units.Nanos) (lowest int, falling bool) {
		falling = true
		for i, at := range times {
			if at < times[lowest] {
				lowest = i
			}
			falling = falling && (i == 0 || at <= times[i-1])
		}
		return lowest, falling
	}
	h := Host{Cores: 16, MemoryRate: 400 * units.GBps, RowRate: 200 * units.GBps}
	if _, falling := shape(curve(h)); !falling {
		t.Errorf("separate memories: a bigger cache is slower: %v", curve(h))
	}
	h.IOContention = 40
	if _, falling := shape(curve(h)); !falling {
		t.Errorf("contention alone: a bigger cache is slower: %v", curve(h))
	}
	h.HeldRate = 100 * units.GBps
	if lowest, falling := shape(curve(h)); falling || lowest != 0 {
		t.Errorf("rows held at a price, reads cheaper than that: best with %d sixteenths held, "+
			"want none: %v", lowest, curve(h))
	}
	h.HeldRate = 250 * units.GBps
	if lowest, falling := shape(curve(h)); falling || lowest == 0 || lowest == 16 {
		t.Errorf("rows held at a lower price: best with %d sixteenths held, want some but not "+
			"all: %v", lowest, curve(h))
	}
}

func TestHostIsRefused(t *testing.T) {
	tests := map[string]func(*Host){
		"host.precisions: \"f16\"": func(h *Host) {
			h.Precisions["f16"] = Precision{
				DenseRate: units.GBps}
		},
		"host.precisions: \"F32\"": func(h *Host) {
			h.Precisions["F32"] = Precision{
				DenseRate: units.GBps}
		},
		"host.precisions.bf16: 0B/s": func(h *Host) {
			h.Precisions["bf16"] = Precision{}
		},
		"host.precisions.q8.dense_rate: -1B/s": func(h *Host) {
			h.Precisions["q8"] = Precision{
				DenseRate: -1}
		},
		"host.precisions.q8.row_rate: -1B/s": func(h *Host) {
			h.Precisions["q8"] = Precision{
				RowRate: -1}
		},
		"host.compute_gflops: -1":        func(h *Host) { h.ComputeGFLOPS = -1 },
		"host.compute_gflops: NaN":       func(h *Host) { h.ComputeGFLOPS = math.NaN() },
		"host.compute_gflops: 1e+10":     func(h *Host) { h.ComputeGFLOPS = 1e10 },
		"host.predictor_rate: -1B/s":     func(h *Host) { h.PredictorRate = -1 },
		"host.transfer_rate: -1B/s":      func(h *Host) { h.TransferRate = -1 },
		"host.transfer_fixed: -1ns":      func(h *Host) { h.TransferFixed = -1 },
		"host.transfer_fixed: 8us needs": func(h *Host) { h.TransferRate = 0 },
		"host.sync_fixed: -1ns":          func(h *Host) { h.SyncFixed = -1 },
		"host.held_rate: -1B/s":          func(h *Host) { h.HeldRate = -1 },
		`host.precision: "q3"`:           func(h *Host) { h.Precision = "q3" },
		"host.precisions: \"f32\"":       func(h *Host) { h.Precision = "F32" },
		"host.io_contention: -1":         func(h *Host) { h.IOContention = -1 },
		"host.io_contention: NaN":        func(h *Host) { h.IOContention = math.NaN() },
		"host.io_contention: +Inf":       func(h *Host) { h.IOContention = math.Inf(1) },
		"host.io_contention: 1.75 needs": func(h *Host) { h.MemoryRate = 0 },
		"host.cores: 0":                  func(h *Host) { *h = Host{SyncFixed: 1} },
	}
	for want, change := range tests {
		d := sample()
		change(&d.Host)
		err := d.Validate()
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want one line of ErrFormat with %q", err, want)
		}
	}
	for want, list := range map[string][]Calibration{
		`calibrated[0].term: "host.copyrate"`: {{Term: "host.copyrate", Rows: []string{"a"}}},
		"calibrated[1].rows: 0 rows": {{Term: "host", Rows: []string{"a"}},
			{Term: "host"}},
	} {
		d := sample()
		d.Calibrated = list
		if err := d.Validate(); !errors.Is(err, ErrFormat) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want ErrFormat with %q", err, want)
		}
	}
	data := minimal + "host: {cores: 1, precisions: {f32: {dense_rat: 1GB/s}}}\n"
	if _, err := Parse("x.yaml", []byte(data)); !errors.Is(err, ErrFormat) ||
		!strings.Contains(err.Error(),
			`host.precisions.f32: unknown key "dense_rat"; did you mean "dense_rate"?`) {
		t.Errorf("a misspelt rate: %v", err)
	}
}

// TestSampleSetsEveryHostField keeps the round trip through the file complete.
func TestSampleSetsEveryHostField(t *testing.T) {
	host := sample().Host
	v := reflect.ValueOf(host)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("sample() does not set Host.%s", v.Type().Field(i).Name)
		}
	}
	text, err := json.Marshal(host)
	if err != nil {
		t.Fatal(err)
	}
	var again Host
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(host, again); diff != "" {
		t.Errorf("the host changed on its way through JSON (-before +after):\n%s", diff)
	}
}

// TestOldFilesStayAsTheyAre: a host without the optional parts is written without them, in files
// and in Runs.
func TestOldFilesStayAsTheyAre(t *testing.T) {
	d := sample()
	d.Host, d.GPU = probed(), nil
	delete(d.Sources, "gpu")
	delete(d.Sources, "gpu.dense_rate")
	file, err := Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	run, err := json.Marshal(d.Host)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"precisions", "gflops", "predictor", "transfer_rate",
		"transfer_fixed", "sync_fixed", "held_rate", "io_contention", "gpu", "resident_rows",
		"accelerator"} {
		if strings.Contains(string(file), name) || strings.Contains(string(run), name) {
			t.Errorf("%q is written though it is not set:\n%s\n%s", name, file, run)
		}
	}
}
