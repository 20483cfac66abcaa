package wear

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
)

func given(t *testing.T, low, high float64) *Constant {
	t.Helper()
	c, err := Given(low, high)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// example can be computed by hand: 1000 tokens a day of 100 reads of 16 KiB, from 1000 blocks of 1
// MiB.
func example(t *testing.T) (Use, Drive) {
	t.Helper()
	return Use{TokensPerDay: 1000, BytesPerToken: 1600 * units.KiB, ReadsPerToken: 100},
		Drive{
			Name: "example", Capacity: 1e12, Endurance: 1e15, Data: 1000 * units.MiB, Page: 8 *
				units.KiB, Block: units.MiB,
			Disturb: given(t, 1e4, 1e6), Cycles: given(t, 100, 10000),
		}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12*max(math.Abs(a), math.Abs(b), 1e-300) }

func same(a, b Interval) bool {
	return near(a.Low, b.Low) && near(a.Mid, b.Mid) && near(a.High, b.High)
}

func TestEstimateByHand(t *testing.T) {
	u, d := example(t)
	r, err := Estimate(u, d, Hot{Share: 0.8, Fraction: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	if r.BytesPerDay != 1000*1600*1024 || r.ReadsPerDay != 1e5 || r.PageReadsPerDay != 2e5 ||
		r.Blocks != 1000 {
		t.Errorf("per day: %+v", r)
	}
	// 2e5 page reads: 0.2 to 20 refreshes of 1 MiB.
	if !same(r.RefreshesPerDay, Interval{0.2, 2, 20}) ||
		!same(r.RefreshBytes, Interval{0.2 * 1048576, 2 * 1048576, 20 * 1048576}) ||
		r.WrittenPerDay != r.RefreshBytes {
		t.Errorf("refreshes %+v, %+v", r.RefreshesPerDay, r.RefreshBytes)
	}
	// 1e15 bytes at 20 MiB a day, and 100 to 10,000 cycles of 1e12 bytes.
	if want := (Interval{1e15 / 20971520 / 365.25, 1e15 / 2097152 / 365.25, 1e15 / 209715.2 /
		365.25}); !r.ToEndurance.Known || !same(r.ToEndurance.Years, want) {
		t.Errorf("to the endurance: %+v, want %+v", r.ToEndurance, want)
	}
	if want := (Interval{1e14 / 20971520 / 365.25, 1e15 / 2097152 / 365.25, 1e16 / 209715.2 /
		365.25}); !r.ToCycles.Known || !same(r.ToCycles.Years, want) {
		t.Errorf("to the cycles: %+v, want %+v", r.ToCycles, want)
	}
	for i, want := range []struct {
		name          string
		blocks, reads float64
	}{{"even", 1000, 200}, {"hot", 100, 1600}, {"one block", 1, 2e5}} {
		s := r.Spreads[i]
		if s.Name != want.name || s.Blocks != want.blocks || !near(s.Reads, want.reads) ||
			!same(s.Refreshes, Interval{want.reads / 1e6, want.reads / 1e5, want.reads / 1e4}) {
			t.Errorf("%+v, want %+v", s, want)
		}
		if years := 100 / (want.reads / 1e4) / 365.25; !near(s.YearsInPlace.Years.Low, years) {
			t.Errorf("%s: %g years in place at least, want %g", s.Name, s.YearsInPlace.Years.Low,
				years)
		}
		// What one block has, all that share the reads have together: the sum does not depend on
		// the spread.
		if i != 1 && !near(s.Refreshes.Mid*s.Blocks, r.RefreshesPerDay.Mid) {
			t.Errorf("%s: the blocks together are refreshed %g times a day, the drive %g", s.Name,
				s.Refreshes.Mid*s.Blocks, r.RefreshesPerDay.Mid)
		}
	}
}

// A read touches whole pages, and the host's writes count beside the refreshes.
func TestPagesAndWrites(t *testing.T) {
	u, d := example(t)
	u.BytesPerToken = 100*8*units.KiB + 100 // a byte more than a page per read
	u.BytesWrittenPerDay = 1e9
	r, err := Estimate(u, d, Hot{})
	if err != nil {
		t.Fatal(err)
	}
	if r.PageReadsPerDay != 2e5 || !near(r.WrittenPerDay.Low, r.RefreshBytes.Low+1e9) ||
		len(r.Spreads) != 2 {
		t.Errorf("%+v", r)
	}
}

// More reads or writes never give more years, and a drive of greater endurance never gives fewer.
func TestMonotone(t *testing.T) {
	years := func(change func(u *Use, d *Drive)) [4]float64 {
		u, d := example(t)
		u.BytesWrittenPerDay = units.GiB
		change(&u, &d)
		r, err := Estimate(u, d, Hot{Share: 0.5, Fraction: 0.25})
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range []Interval{r.RefreshesPerDay, r.WrittenPerDay, r.ToEndurance.Years,
			r.ToCycles.Years, r.Spreads[1].YearsInPlace.Years} {
			if !i.positive() {
				t.Errorf("%+v is no interval", i)
			}
		}
		return [4]float64{r.ToEndurance.Years.Low, r.ToEndurance.Years.High, r.ToCycles.Years.Mid,
			r.Spreads[1].YearsInPlace.Years.Low}
	}
	base := years(func(*Use, *Drive) {})
	for name, change := range map[string]func(u *Use, d *Drive){
		"tokens":    func(u *Use, _ *Drive) { u.TokensPerDay *= 7 },
		"bytes":     func(u *Use, _ *Drive) { u.BytesPerToken *= 3 },
		"reads":     func(u *Use, _ *Drive) { u.ReadsPerToken *= 5 },
		"writes":    func(u *Use, _ *Drive) { u.BytesWrittenPerDay *= 2 },
		"endurance": func(_ *Use, d *Drive) { d.Endurance /= 2 },
		"threshold": func(_ *Use, d *Drive) { d.Disturb = given(t, 1e3, 1e5) },
		"cycles":    func(_ *Use, d *Drive) { d.Cycles = given(t, 10, 1000) },
	} {
		for i, y := range years(change) {
			if y > base[i] {
				t.Errorf("%s: %g years, %g before", name, y, base[i])
			}
		}
	}
}

func TestZeroUseWearsNothing(t *testing.T) {
	_, d := example(t)
	for name, u := range map[string]Use{"nothing": {}, "no tokens": {BytesPerToken: 1,
		ReadsPerToken: 1}, "no reads": {TokensPerDay: 5}} {
		r, err := Estimate(u, d, Hot{})
		if err != nil {
			t.Fatal(err)
		}
		if !r.ToEndurance.Never || !r.ToCycles.Never || !r.Spreads[0].YearsInPlace.Never ||
			r.RefreshesPerDay != (Interval{}) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	// Writes alone cause wear, also without reads.
	r, err := Estimate(Use{BytesWrittenPerDay: 1e9}, Drive{Name: "x", Endurance: 36525e9, Page: 1,
		Block: 1, Disturb: d.Disturb}, Hot{})
	if err != nil || r.ToEndurance.Never || !near(r.ToEndurance.Years.Mid, 100) {
		t.Errorf("1 GB a day: %+v, %v; want 100 years", r, err)
	}
}

func TestUnknownEndurance(t *testing.T) {
	u, d := example(t)
	d.Endurance, d.Cycles = 0, nil
	r, err := Estimate(u, d, Hot{})
	if err != nil {
		t.Fatal(err)
	}
	if r.ToEndurance.Known || r.ToCycles.Known || r.Spreads[0].YearsInPlace.Known {
		t.Errorf("years without an endurance: %+v", r)
	}
	u, d = example(t)
	d.Capacity = 0
	if r, err = Estimate(u, d, Hot{}); err != nil || r.ToCycles.Known || !r.ToEndurance.Known ||
		!r.Spreads[0].YearsInPlace.Known {
		t.Errorf("a drive of unknown size: %+v, %v", r, err)
	}
}

func TestRefusedEstimates(t *testing.T) {
	for name, change := range map[string]func(u *Use, d *Drive, h *Hot){
		"tokens per day: NaN": func(u *Use, _ *Drive, _ *Hot) {
			u.TokensPerDay = math.NaN()
		},
		"tokens per day: +Inf": func(u *Use, _ *Drive, _ *Hot) {
			u.TokensPerDay = math.Inf(1)
		},
		"reads per token: -1":       func(u *Use, _ *Drive, _ *Hot) { u.ReadsPerToken = -1 },
		"reads per token: none":     func(u *Use, _ *Drive, _ *Hot) { u.ReadsPerToken = 0 },
		"bytes per token":           func(u *Use, _ *Drive, _ *Hot) { u.BytesPerToken = -1 },
		"bytes written per day":     func(u *Use, _ *Drive, _ *Hot) { u.BytesWrittenPerDay = -1 },
		"use: 1e+308 tokens":        func(u *Use, _ *Drive, _ *Hot) { u.TokensPerDay = 1e308 },
		"drive example: a capacity": func(_ *Use, d *Drive, _ *Hot) { d.Endurance = -1 },
		"no region":                 func(_ *Use, d *Drive, _ *Hot) { d.Data = 0 },
		"do not fit":                func(_ *Use, d *Drive, _ *Hot) { d.Capacity = 1 },
		"whole number of pages":     func(_ *Use, d *Drive, _ *Hot) { d.Block++ },
		"reads before a refresh": func(_ *Use, d *Drive, _ *Hot) {
			d.Disturb.Interval.Low = 0
		},
		"program/erase cycles are no": func(_ *Use, d *Drive, _ *Hot) {
			d.Cycles.Interval.Mid = math.NaN()
		},
		"hot: 0.1 of the reads":      func(_ *Use, _ *Drive, h *Hot) { *h = Hot{0.1, 0.5} },
		"hot: 2":                     func(_ *Use, _ *Drive, h *Hot) { *h = Hot{2, 0.5} },
		"hot: NaN":                   func(_ *Use, _ *Drive, h *Hot) { *h = Hot{math.NaN(), 0.5} },
		"hot: 0.5 of the reads on 0": func(_ *Use, _ *Drive, h *Hot) { *h = Hot{0.5, 0} },
	} {
		u, d := example(t)
		var h Hot
		change(&u, &d, &h)
		if _, err := Estimate(u, d, h); !errors.Is(err, ErrInput) || !strings.HasPrefix(err.Error(),
			"wear: ") || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Results stay finite at the ends of the range.
func TestHugeAndTinyStayFinite(t *testing.T) {
	u, d := example(t)
	d.Cycles = given(t, 1, math.MaxFloat64)
	for _, tokens := range []float64{1e290, 1e-300, 5e-324} {
		u.TokensPerDay = tokens
		r, err := Estimate(u, d, Hot{})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range []Lifetime{r.ToEndurance, r.ToCycles, r.Spreads[0].YearsInPlace} {
			if l.Never {
				continue // what cannot be told from nothing
			}
			if y := l.Years; !(0 <= y.Low && y.Low <= y.Mid && y.Mid <= y.High &&
				y.High <= math.MaxFloat64) {
				t.Errorf("%g tokens a day: %+v", tokens, l)
			}
		}
	}
}
