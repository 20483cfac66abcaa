package energy

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
)

func given(t *testing.T, low, high float64, unit string) *Constant {
	t.Helper()
	c, err := Given(low, high, unit)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// example is a run whose energy can be computed by hand: 2 tokens of 1 s, 0.25 s of it reading 1e9
// bytes in all.
func example(t *testing.T) (Use, Model) {
	t.Helper()
	dram := units.Bytes(4e9)
	return Use{Tokens: 2, Wall: 2 * units.Second, IOTime: units.Second / 2, ComputeTime: 3 *
			units.Second / 2, FlashBytes: 1e9, DRAMBytes: &dram},
		Model{
			Flash: given(t, 100, 200, PicojoulePerBit), DRAM: given(t, 5, 10, PicojoulePerBit),
			DriveIdle: given(t, 0.02, 0.04, Watt), Compute: given(t, 10, 20, Watt),
			HostIdle: given(t, 1, 3, Watt),
		}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12*max(math.Abs(a), math.Abs(b), 1e-12) }

func same(a, b Interval) bool {
	return near(a.Low, b.Low) && near(a.Mid, b.Mid) && near(a.High, b.High)
}

func TestPerTokenByHand(t *testing.T) {
	u, m := example(t)
	r, err := PerToken(u, m)
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		part   string
		amount float64
		joules Interval
	}{
		{"flash read", 5e8, Interval{0.4, 0.6, 0.8}},       // 5e8 · 8 bit · 100 to 200 pJ
		{"DRAM", 2e9, Interval{0.08, 0.12, 0.16}},          // 2e9 · 8 bit · 5 to 10 pJ
		{"compute", 0.75, Interval{7.5, 11.25, 15}},        // 0.75 s · 10 to 20 W
		{"drive idle", 0.75, Interval{0.015, .0225, 0.03}}, // 1 s − 0.25 s
		{"host idle", 0.25, Interval{0.25, 0.5, 0.75}},     // 1 s − 0.75 s
	}
	if len(r.Parts) != len(want) {
		t.Fatalf("%d parts, want %d", len(r.Parts), len(want))
	}
	for i, w := range want {
		p := r.Parts[i]
		if p.Part != w.part || !near(*p.Amount, w.amount) || !same(*p.Joules, w.joules) {
			t.Errorf("part %d: %s of %g: %+v, want %+v", i, p.Part, *p.Amount, *p.Joules, w)
		}
	}
	if !same(r.Total, Interval{8.245, 12.4925, 16.74}) || r.LowerBound || len(r.NotKnown) > 0 {
		t.Errorf("total %+v, lower bound %v, not known %v", r.Total, r.LowerBound, r.NotKnown)
	}
}

func TestWhatIsNotKnownIsNotGuessed(t *testing.T) {
	u, m := example(t)
	whole, err := PerToken(u, m)
	if err != nil {
		t.Fatal(err)
	}
	m.Compute, u.DRAMBytes = nil, nil
	r, err := PerToken(u, m)
	if err != nil {
		t.Fatal(err)
	}
	if !r.LowerBound || !slices.Equal(r.NotKnown, []string{"DRAM", "compute"}) ||
		r.Parts[1].Joules != nil || r.Parts[1].Amount != nil || r.Parts[2].Joules != nil {
		t.Errorf("%+v", r)
	}
	if want := whole.Total.High - whole.Parts[1].Joules.High -
		whole.Parts[2].Joules.High; !near(r.Total.High, want) {
		t.Errorf("total %g, want the known parts' %g", r.Total.High, want)
	}
	// An amount of 0 is 0 J, for any constant.
	u.ComputeTime = 0
	if r, err = PerToken(u, m); err != nil || r.Parts[2].Joules == nil ||
		*r.Parts[2].Joules != (Interval{}) {
		t.Errorf("a run without compute: %+v, %v", r.Parts[2], err)
	}
}

func TestPerTokenIsLinear(t *testing.T) {
	u, m := example(t)
	one, err := PerToken(u, m)
	if err != nil {
		t.Fatal(err)
	}
	dram := 3 * *u.DRAMBytes
	u.Wall, u.IOTime, u.ComputeTime, u.FlashBytes, u.DRAMBytes = 3*u.Wall, 3*u.IOTime,
		3*u.ComputeTime, 3*u.FlashBytes, &dram
	three, err := PerToken(u, m)
	if err != nil {
		t.Fatal(err)
	}
	if !same(three.Total, one.Total.scale(3)) {
		t.Errorf("three times the use takes %+v, once %+v", three.Total, one.Total)
	}
}

func TestRefusedUse(t *testing.T) {
	minus := units.Bytes(-1)
	for name, change := range map[string]func(u *Use, m *Model){
		"tokens":       func(u *Use, _ *Model) { u.Tokens = 0 },
		"flash bytes":  func(u *Use, _ *Model) { u.FlashBytes = -1 },
		"DRAM bytes":   func(u *Use, _ *Model) { u.DRAMBytes = &minus },
		"I/O time":     func(u *Use, _ *Model) { u.IOTime = u.Wall + 1 },
		"compute time": func(u *Use, _ *Model) { u.ComputeTime = u.Wall + 1 },
		"flash read":   func(_ *Use, m *Model) { m.Flash.Interval.Mid = math.NaN() },
		"DRAM":         func(_ *Use, m *Model) { m.DRAM.Interval.Low = -1 },
		"drive idle":   func(_ *Use, m *Model) { m.DriveIdle.Interval.High = math.Inf(1) },
		"compute":      func(_ *Use, m *Model) { m.Compute.Unit = PicojoulePerBit },
		"host idle":    func(_ *Use, m *Model) { m.HostIdle.Interval = Interval{3, 2, 1} },
		"total": func(u *Use, m *Model) {
			u.Wall, u.ComputeTime = units.Forever, units.Forever
			m.Compute.Interval = Interval{math.MaxFloat64, math.MaxFloat64, math.MaxFloat64}
		},
	} {
		u, m := example(t)
		change(&u, &m)
		if _, err := PerToken(u, m); !errors.Is(err, ErrInput) || !strings.HasPrefix(err.Error(),
			"energy: "+name+": ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, bad := range [][2]float64{{-1, 1}, {2, 1}, {math.NaN(), 1}, {1, math.NaN()},
		{1, math.Inf(1)}} {
		if _, err := Given(bad[0], bad[1], Watt); !errors.Is(err, ErrInput) {
			t.Errorf("Given(%g, %g): %v", bad[0], bad[1], err)
		}
	}
}

func TestRateWarning(t *testing.T) {
	u, m := example(t) // 1e9 bytes in 0.5 s: 2 GB/s
	var err error
	if m.Flash, err = Published(FlashRead, "nvme-ssd"); err != nil {
		t.Fatal(err)
	}
	r, err := PerToken(u, m)
	if err != nil {
		t.Fatal(err)
	}
	// At most a drive draws 6.2 W for the 0.25 s per token.
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "2GB/s") ||
		!strings.Contains(r.Warnings[0], "6.2 W") {
		t.Errorf("slow reads: %q", r.Warnings)
	}
	var ends float64
	for _, p := range r.Parts {
		ends += p.Joules.High
	}
	if high := r.Parts[0].Joules.High; !near(high, 6.2/4) || !near(r.Total.High, ends) {
		t.Errorf("slow reads take at most %g J, in all %g; want 1.55 and the sum of the parts, %g",
			high, r.Total.High, ends)
	}
	u.FlashBytes = 25e8
	if r, err = PerToken(u, m); err != nil || len(r.Warnings) != 0 {
		t.Errorf("5 GB/s: %v, %v", r, err)
	}
	u.FlashBytes = 5e9
	if r, err = PerToken(u, m); err != nil || len(r.Warnings) != 1 {
		t.Errorf("10 GB/s: %v, %v", r, err)
	}
}
