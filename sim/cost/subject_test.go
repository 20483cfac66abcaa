package cost

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels/energy"
	"github.com/windrow-sim/windrow/devicemodels/wear"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

// byHand is a run of two tokens that read 4 MB in 40 requests during 2 of its 6 seconds, and its
// trace.
func byHand(t *testing.T) (*traces.Run, *traces.Header) {
	t.Helper()
	run := &traces.Run{}
	m := &run.Meta
	m.Model, m.Device, m.Trace, m.TraceSHA256 = "m", "d", "t", "ab"
	m.Totals.Tokens, m.Totals.Bytes, m.Totals.Requests = 2, 4_000_000, 40
	m.Totals.Wall = 6 * units.Second
	m.Totals.PartNanos[traces.PartIO] = 2 * units.Second
	m.Totals.PartNanos[traces.PartFFN] = 3 * units.Second
	m.Totals.PartNanos[traces.PartOther] = units.Second
	run.Rows = []traces.RunRow{{Part: traces.PartIO, Bytes: 3_000_000, Hits: 1, Misses: 1},
		{Part: traces.PartMemory, Bytes: 500_000}, {Part: traces.PartIO, Bytes: 1_000_000}}
	head := &traces.Header{Layers: 2, Units: 100, UnitBytes: 1000}
	return run, head
}

// TestNewSubject refuses a run without tokens and a trace that is not the run's.
func TestNewSubject(t *testing.T) {
	run, head := byHand(t)
	if _, err := NewSubject("a.run.arrow", run, "", "", nil); err != nil {
		t.Error(err)
	}
	if _, err := NewSubject("a.run.arrow", run, "x", "ab", head); err != nil {
		t.Error(err)
	}
	if _, err := NewSubject("a.run.arrow", run, "x", "cd", head); !errors.Is(err,
		refusal.ErrConfig) || !strings.Contains(err.Error(), "x is not the trace of a.run.arrow") {
		t.Errorf("%v", err)
	}
	run.Meta.Totals.Tokens = 0
	if _, err := NewSubject("a.run.arrow", run, "", "", nil); !errors.Is(err, refusal.ErrInput) {
		t.Errorf("%v", err)
	}
}

// TestEnergyByHand: a token's share of bytes and times is that of the run. Reads that are hidden
// behind compute keep the drive busy too. Memory counts only with the trace.
func TestEnergyByHand(t *testing.T) {
	run, head := byHand(t)
	flash, err := energy.Published(energy.FlashRead, "nvme-ssd")
	if err != nil {
		t.Fatal(err)
	}
	dram, err := energy.Published(energy.DRAM, "lpddr5")
	if err != nil {
		t.Fatal(err)
	}
	model := energy.Model{Flash: flash, DRAM: dram}
	amounts := func(s *Subject) map[string]float64 {
		t.Helper()
		r, err := Energy(s, model)
		if err != nil {
			t.Fatal(err)
		}
		if r.Document().Check() != nil || r.Run.Tokens != 2 {
			t.Errorf("%+v", r.Run)
		}
		list := map[string]float64{}
		for i := range r.Energy.Parts {
			if p := &r.Energy.Parts[i]; p.Amount != nil {
				list[p.Part] = *p.Amount
			}
		}
		return list
	}
	without := amounts(&Subject{Run: run, Name: "r"})
	with := amounts(&Subject{Run: run, Name: "r", Head: head})
	// 4 MB are read into memory, 2 rows of 1 kB by the FFN, and 0.5 MB copied.
	const memory = (4_000_000 + 2*1000 + 2*500_000) / 2
	if len(with) != len(without)+1 {
		t.Errorf("%v with the trace, %v without", with, without)
	}
	found := 0
	for part, amount := range with {
		if math.Abs(amount-memory) < 1 && without[part] == 0 {
			found++
		}
		if math.Abs(amount-2_000_000) < 1 && without[part] == amount {
			found++
		}
	}
	if found != 2 {
		t.Errorf("amounts %v: 2 MB of flash and %v B of memory are wanted", with, memory)
	}
	before := amounts(&Subject{Run: run, Name: "r"})
	run.Meta.Prefetches = &traces.Prefetches{Hidden: units.Second}
	after := amounts(&Subject{Run: run, Name: "r"})
	busier := 0
	for part, amount := range after {
		if math.Abs(amount-before[part]) > 0.4 {
			busier++
		}
	}
	if busier == 0 {
		t.Errorf("hidden reads take nothing: %v, then %v", before, after)
	}
	perToken, err := FlashAndDRAM(head)
	if err != nil {
		t.Fatal(err)
	}
	joules, ok := perToken(run)
	const pJPerByte = 8e-12 // the constants are pJ/bit
	want := pJPerByte * (2_000_000*flash.Interval.Mid + memory*dram.Interval.Mid)
	if !ok || math.Abs(joules/want-1) > 1e-6 {
		t.Errorf("%v J, %v; %v by hand", joules, ok, want)
	}
	run.Rows[0].Hits, head.UnitBytes = math.MaxUint32, math.MaxInt64
	if _, ok := perToken(run); ok {
		t.Error("traffic that cannot be has a result")
	}
}

// TestWearRegion: reads fall on the rows of the trace, or of the geometry that the run holds; a run
// that holds none needs its trace.
func TestWearRegion(t *testing.T) {
	run, head := byHand(t)
	geometry, err := json.Marshal(map[string]any{"geometry": layout.Geometry{Base: []int64{0, 4096},
		Units: 50, Record: 1000, Stride: 4096, Size: 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	drive, err := wear.Describe(wear.Description{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		head   *traces.Header
		config json.RawMessage
		want   units.Bytes
	}{
		"of the trace":    {head, nil, 2 * 100 * 1000},
		"of the geometry": {nil, geometry, 2 * 50 * 4096},
		"the trace first": {head, geometry, 2 * 100 * 1000},
		"of nothing":      {nil, nil, 0},
		"of another":      {nil, json.RawMessage(`{"geometry": 3}`), 0},
	} {
		run.Meta.Config = c.config
		r, err := Wear(&Subject{Run: run, Name: "r", Head: c.head}, WearConfig{TokensPerDay: 1000,
			Drive: drive})
		if c.want == 0 {
			if !errors.Is(err, refusal.ErrConfig) || !strings.Contains(err.Error(), "Trace") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || r.Drive.Data != c.want || r.Wear.BytesPerDay != 1000*2_000_000 ||
			r.Wear.ReadsPerDay != 1000*20 || r.Document().Check() != nil {
			t.Errorf("%s: %v, %+v", name, err, r)
		}
	}
}
