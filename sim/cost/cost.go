// Package cost says what a Run costs the machine besides time: joules per token, and what a stated
// use does to the flash. The Run may be simulated or measured. Bytes and times are the Run's;
// published constants with their intervals come from devicemodels/energy and devicemodels/wear.
//
// Start with Energy and Wear. DRAMTraffic counts the bytes of memory that a Run does not state.
package cost

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/windrow-sim/windrow/devicemodels/energy"
	"github.com/windrow-sim/windrow/devicemodels/wear"
	"github.com/windrow-sim/windrow/internal/bounds"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

// Subject is the run that a cost is of.
type Subject struct {
	Run *traces.Run
	// Name of the run, for errors.
	Name string
	// Head describes its trace; nil = not known.
	Head *traces.Header
}

// Facts are the run, as results name it.
type Facts struct {
	Kind     string      `json:"kind"` // simulated, measured, or on an emulated device
	Model    string      `json:"model"`
	Device   string      `json:"device"`
	Trace    string      `json:"trace"`
	Tokens   int         `json:"tokens"`
	Wall     units.Nanos `json:"wall_ns"`
	Warnings []string    `json:"warnings"`
}

// NewSubject checks that a run has tokens and that a trace, if one is given, is the run's. hash is
// that of the trace, and trace its name, for errors.
func NewSubject(name string, run *traces.Run, trace, hash string, head *traces.Header) (*Subject,
	error) {
	m := &run.Meta
	if m.Totals.Tokens == 0 {
		return nil, refusal.Input("%s holds no tokens", name)
	}
	if head != nil && m.TraceSHA256 != hash {
		return nil, refusal.Config("%s is not the trace of %s, which is of %s", trace, name,
			m.Trace)
	}
	return &Subject{Run: run, Name: name, Head: head}, nil
}

// facts are those of the run.
func (s *Subject) facts() Facts {
	m := &s.Run.Meta
	return Facts{m.Kind(), m.Model, m.Device, m.Trace, m.Totals.Tokens, m.Totals.Wall,
		append([]string{}, m.Warnings...)}
}

// String is one line about the run.
func (f *Facts) String() string {
	return fmt.Sprintf("%s: %s on %s, mean of %d tokens, prompt and generated alike", f.Kind,
		f.Model, f.Device, f.Tokens)
}

// EnergyResult are the joules per token of a run.
type EnergyResult struct {
	Energy *energy.Report `json:"energy"`
	Model  energy.Model   `json:"model"`
	Run    Facts          `json:"run"`
}

// Energy is what a token of the run takes, part by part. With the header of its trace, DRAM traffic
// is counted too.
func Energy(s *Subject, m energy.Model) (*EnergyResult, error) {
	t := &s.Run.Meta.Totals
	use := energy.Use{Tokens: t.Tokens, Wall: t.Wall, IOTime: t.PartNanos[traces.PartIO],
		FlashBytes: t.Bytes}
	if ahead := s.Run.Meta.Prefetches; ahead != nil { // the drive works beside compute too
		use.IOTime += ahead.Hidden
	}
	for part, took := range t.PartNanos {
		if traces.Part(part) != traces.PartIO {
			use.ComputeTime += took
		}
	}
	if s.Head != nil {
		bytes, err := DRAMTraffic(s.Run.Rows, s.Head)
		if err != nil {
			return nil, refusal.Input("%s: %v", s.Name, err)
		}
		use.DRAMBytes = &bytes
	}
	r, err := energy.PerToken(use, m)
	if err != nil {
		return nil, refusal.Input("%s: %v", s.Name, err)
	}
	return &EnergyResult{Energy: r, Model: m, Run: s.facts()}, nil
}

// FlashAndDRAM returns a function of a run of a trace that gives joules per token by what is
// published of flash reads and memory. The processor and the idle drive are left out. ok is false
// for a run without a result.
func FlashAndDRAM(head *traces.Header) (perToken func(*traces.Run) (joules float64, ok bool),
	err error) {
	flash, err := energy.Published(energy.FlashRead, "nvme-ssd")
	if err != nil {
		return nil, err
	}
	dram, err := energy.Published(energy.DRAM, "lpddr5")
	if err != nil {
		return nil, err
	}
	return func(run *traces.Run) (float64, bool) {
		t := &run.Meta.Totals
		bytes, err := DRAMTraffic(run.Rows, head)
		if err != nil {
			return 0, false
		}
		use := energy.Use{Tokens: t.Tokens, Wall: t.Wall, IOTime: t.PartNanos[traces.PartIO],
			ComputeTime: t.Wall - t.PartNanos[traces.PartIO], FlashBytes: t.Bytes,
			DRAMBytes: &bytes}
		r, err := energy.PerToken(use, energy.Model{Flash: flash, DRAM: dram})
		if err != nil {
			return 0, false
		}
		return r.Total.Mid, true
	}, nil
}

// DRAMTraffic counts what a run read from and wrote to memory, as if no processor cache kept
// weights between tokens:
//
//	attention  the layer's four projections and pos+1 keys and values read, one of each written
//	io         the bytes that the reads put into memory, and the active rows (hits and misses)
//	           that the FFN reads
//	memory     row-cache copies, read and written
//	other      the output head
func DRAMTraffic(rows []traces.RunRow, head *traces.Header) (units.Bytes, error) {
	sum := 0.0 // whose whole numbers are exact up to 2^53: 9 PB
	attention, kv := float64(head.Shape.AttentionBytes()), float64(head.Shape.KVBytes())
	for i := range rows {
		r := &rows[i]
		switch r.Part {
		case traces.PartAttention:
			sum += attention + kv*(float64(r.Pos)+2)
		case traces.PartIO:
			sum += float64(r.Bytes) + (float64(r.Hits)+float64(r.Misses))*float64(head.UnitBytes)
		case traces.PartMemory:
			sum += 2 * float64(r.Bytes)
		case traces.PartOther:
			sum += float64(head.Shape.HeadBytes())
		}
	}
	if !(sum >= 0 && sum < math.MaxInt64) {
		return 0, fmt.Errorf("cost: %g bytes of memory traffic are not possible", sum)
	}
	return units.Bytes(sum), nil
}

// WearConfig is the use that wears a drive.
type WearConfig struct {
	TokensPerDay  float64 // prompt and generated alike
	WrittenPerDay units.Bytes
	Drive         wear.Drive // Data is set by Wear
	Hot           wear.Hot
}

// WearResult is what a use does to the flash.
type WearResult struct {
	Drive        wear.Drive   `json:"drive"`
	Hot          wear.Hot     `json:"hot"`
	Run          Facts        `json:"run"`
	TokensPerDay float64      `json:"tokens_per_day"`
	Wear         *wear.Report `json:"wear"`
}

// Wear is what a stated use of the run's model does to the flash.
func Wear(s *Subject, cfg WearConfig) (*WearResult, error) {
	t := &s.Run.Meta.Totals
	use := wear.Use{TokensPerDay: cfg.TokensPerDay, BytesWrittenPerDay: cfg.WrittenPerDay,
		BytesPerToken: t.Bytes / units.Bytes(t.Tokens),
		ReadsPerToken: float64(t.Requests) / float64(t.Tokens)}
	var err error
	if cfg.Drive.Data, err = s.flashRegion(); err != nil {
		return nil, err
	}
	r, err := wear.Estimate(use, cfg.Drive, cfg.Hot)
	if err != nil {
		return nil, refusal.Config("%v", err)
	}
	return &WearResult{Drive: cfg.Drive, Hot: cfg.Hot, Run: s.facts(),
		TokensPerDay: cfg.TokensPerDay, Wear: r}, nil
}

// The ranges of a geometry, as the headers of traces have them.
var (
	unitRange   = bounds.Range[int]{Least: 1, Most: 1 << 24, Why: "no layer has more"}
	strideRange = bounds.Range[units.Bytes]{Least: 0, Most: 1 << 34, Why: "no unit is larger"}
	layerRange  = bounds.Range[int]{Least: 0, Most: traces.NoLayer, Why: "no model has more"}
)

// flashRegion is the size of the rows on flash: the trace's when it is given, else of the geometry
// that a simulated run was made on and holds.
func (s *Subject) flashRegion() (units.Bytes, error) {
	if head := s.Head; head != nil {
		return units.Bytes(head.Layers) * units.Bytes(head.Units) * head.UnitBytes, nil
	}
	var config struct {
		Geometry layout.Geometry `json:"geometry"`
	}
	if err := json.Unmarshal(s.Run.Meta.Config, &config); err != nil ||
		config.Geometry.Units == 0 {
		return 0, refusal.Config("the run does not hold the size of its model's rows; give its " +
			"{Trace}")
	}
	g := &config.Geometry
	var f bounds.First
	bounds.Want(&f, "units", g.Units, unitRange)
	bounds.Want(&f, "stride", g.Stride, strideRange)
	bounds.Want(&f, "base", len(g.Base), layerRange)
	if f.Path != "" {
		return 0, refusal.Input("%s: config.geometry.%s: %v %s", s.Name, f.Path, f.Value, f.Why)
	}
	return units.Bytes(len(g.Base)) * units.Bytes(g.Units) * g.Stride, nil
}
