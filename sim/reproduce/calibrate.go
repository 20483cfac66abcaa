package reproduce

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/units"
)

// A parameter is a number of one or more presets that is calibrated. Its value is the time that it
// stands for: of a byte where the term is a rate, of a call otherwise.
type parameter struct {
	terms   []string // of the files; the first is that of the preset, further ones follow it
	presets []string
	get     func(*devicemodels.Device) float64
	set     func(*devicemodels.Device, float64)
}

// group is a set of parameters that the same rows fix.
type group struct {
	parameters []parameter
	rows       []calibratingRow
}

// calibratingRow is a published time and the part of a run that it is compared with.
type calibratingRow struct {
	id   string
	run  func(*study) (scenario, error)
	part func(*measured) units.Nanos
}

func rateOf(seconds float64) units.Rate { return units.Rate(1 / seconds) }

// groups are the calibrations of all presets, in the order in which they are made.
func groups() []group {
	compute := func(m *measured) units.Nanos { return m.compute }
	memory := func(m *measured) units.Nanos { return m.memory }
	total := func(m *measured) units.Nanos { return m.total }
	optNaive := func(dtype, device string) func(*study) (scenario, error) {
		return func(s *study) (scenario, error) {
			opt, err := s.model("opt")
			if err != nil {
				return scenario{}, err
			}
			return naive(opt, dtype, device), nil
		}
	}
	optAll := func(dtype, device string) func(*study) (scenario, error) {
		return func(s *study) (scenario, error) {
			opt, err := s.model("opt")
			if err != nil {
				return scenario{}, err
			}
			return scenario{model: opt.name, dtype: dtype, device: device, policy: s.optWindow(),
				rank: opt.meanRank()}, nil
		}
	}
	neuro := func(d string) func(*study) (scenario, error) {
		return func(s *study) (scenario, error) {
			m, err := modelOf("mistral", "Mistral-7B-v0.1")
			if err != nil {
				return scenario{}, err
			}
			return s.neuroRun(m, int(s.val(d))), nil
		}
	}
	dense := func(preset string) parameter { // rows in memory are multiplied like any weights
		return parameter{terms: []string{"host.dense_rate", "host.row_rate"},
			presets: []string{preset},
			get:     func(d *devicemodels.Device) float64 { return 1 / float64(d.Host.DenseRate) },
			set: func(d *devicemodels.Device, v float64) {
				d.Host.DenseRate, d.Host.RowRate = rateOf(v), rateOf(v)
			}}
	}
	resident := func(preset string) parameter {
		return parameter{terms: []string{"host.dense_rate"}, presets: []string{preset},
			get: func(d *devicemodels.Device) float64 { return 1 / float64(d.Host.DenseRate) },
			set: func(d *devicemodels.Device, v float64) { d.Host.DenseRate = rateOf(v) }}
	}
	rows := func(preset string) parameter {
		return parameter{terms: []string{"host.row_rate"}, presets: []string{preset},
			get: func(d *devicemodels.Device) float64 { return 1 / float64(d.Host.RowRate) },
			set: func(d *devicemodels.Device, v float64) { d.Host.RowRate = rateOf(v) }}
	}
	copying := func(presets ...string) parameter {
		return parameter{terms: []string{"host.copy_rate"}, presets: presets,
			get: func(d *devicemodels.Device) float64 { return 1 / float64(d.Host.CopyRate) },
			set: func(d *devicemodels.Device, v float64) { d.Host.CopyRate = rateOf(v) }}
	}
	return []group{
		{[]parameter{dense(m1CPU)}, []calibratingRow{{"table3/opt/cpu/naive/compute",
			optNaive("f32", m1CPU), compute}}},
		{[]parameter{copying(m1CPU, m1Metal), {
			terms: []string{"host.copy_fixed"}, presets: []string{m1CPU, m1Metal},
			get: func(d *devicemodels.Device) float64 { return d.Host.CopyFixed.Seconds() },
			set: func(d *devicemodels.Device, v float64) {
				d.Host.CopyFixed = units.FromSeconds(v)
			},
		}}, []calibratingRow{{"table5/opt/cpu/all/mem", optAll("f32", m1CPU), memory},
			{"table3/opt/metal-m1/all/mem", optAll("f16", m1Metal), memory}}},
		{[]parameter{resident(m1Metal)}, []calibratingRow{{"table3/opt/metal-m1/naive/compute",
			optNaive("f16", m1Metal), compute}}},
		{[]parameter{rows(m1Metal)}, []calibratingRow{{"table3/opt/metal-m1/all/compute",
			optAll("f16", m1Metal), compute}}},
		{[]parameter{dense(m2Metal)}, []calibratingRow{{"table3/opt/metal-m2/naive/compute",
			optNaive("f16", m2Metal), compute}}},
		{[]parameter{resident(rtx)}, []calibratingRow{{"table3/opt/gpu/naive/compute",
			optNaive("bf16", rtx), compute}}},
		{[]parameter{rows(rtx)}, []calibratingRow{{"table5/opt/gpu/all/compute",
			optAll("bf16", rtx), compute}}},
		{[]parameter{copying(rtx)}, []calibratingRow{{"table5/opt/gpu/all/mem",
			optAll("bf16", rtx), memory}}},
		{[]parameter{{
			terms: []string{"flash.engines.uring"}, presets: []string{jetson},
			get: func(d *devicemodels.Device) float64 {
				cost := d.Flash.Engines[ioengine.Uring]
				return (cost.Submit + cost.Complete).Seconds()
			},
			set: func(d *devicemodels.Device, v float64) {
				cost := d.Flash.Engines[ioengine.Uring]
				cost.Submit = units.FromSeconds(v / 2)
				cost.Complete = units.FromSeconds(v) - cost.Submit
				d.Flash.Engines = map[string]flash.EngineCost{ioengine.Uring: cost}
			},
		}, dense(jetson)}, []calibratingRow{{"neuro/latency/9.0", neuro("neuro/d/9.0"), total},
			{"neuro/latency/14.8", neuro("neuro/d/14.8"), total}}},
	}
}

// Calibration is one number of a preset and the rows that fix it.
type Calibration struct {
	Preset string   `json:"preset"`
	Term   string   `json:"term"`
	Value  string   `json:"value"`
	Ships  string   `json:"ships"` // the value in the preset
	Rows   []string `json:"rows"`
	// LeaveOneOutPct is the error in percent of each row by a calibration without it. Terms that
	// the rows left cannot fix are 0 then. Empty where a single row fixes a single term.
	LeaveOneOutPct []float64 `json:"leave_one_out_percent"`
}

// Calibrations are the calibrated numbers of presets.
type Calibrations struct {
	Seed  uint64        `json:"seed"`
	Terms []Calibration `json:"terms"`
}

// Calibrate fits the host terms of a preset to published rows by running the simulator. An empty
// name stands for all presets. A preset that is not calibrated has no terms.
func Calibrate(ctx context.Context, preset string, seed uint64) (*Calibrations, error) {
	published, err := parsePublished(publishedTable)
	if err != nil {
		return nil, err
	}
	s := newStudy(ctx, seed, published)
	ships := map[string]*devicemodels.Device{}
	list := []Calibration{}
	for _, g := range groups() {
		for _, p := range g.parameters {
			for _, name := range p.presets {
				if ships[name] == nil {
					if ships[name], err = devicemodels.Preset(name); err != nil {
						return nil, err
					}
				}
			}
		}
		if preset != "" && !slices.ContainsFunc(g.parameters, func(p parameter) bool {
			return slices.Contains(p.presets, preset)
		}) {
			continue
		}
		left, err := s.leaveOneOut(g)
		if err != nil {
			return nil, err
		}
		if err := s.solve(g.parameters, g.rows); err != nil {
			return nil, err
		}
		var rows []string
		for _, r := range g.rows {
			rows = append(rows, r.id)
		}
		for _, p := range g.parameters {
			for _, name := range p.presets {
				if preset != "" && name != preset {
					continue
				}
				for _, term := range p.terms {
					list = append(list, Calibration{Preset: name, Term: term, Rows: rows,
						Value: valueOf(s.devices[name], term), Ships: valueOf(ships[name], term),
						LeaveOneOutPct: left})
				}
			}
		}
	}
	return &Calibrations{Seed: seed, Terms: list}, s.err
}

// Document lists the terms.
func (c *Calibrations) Document() *document.Document {
	presets := map[string]bool{}
	t := document.NewTable(document.Text("preset"), document.Text("number"),
		document.Text("ships"), document.Text("calibrated"), document.Text("rows"),
		document.Text("without each row (%)"))
	for _, term := range c.Terms {
		presets[term.Preset] = true
		var off []string
		for _, v := range term.LeaveOneOutPct {
			off = append(off, fmt.Sprintf("%+.1f", v))
		}
		if off == nil {
			off = []string{"one row"}
		}
		t.Add(term.Preset, term.Term, term.Ships, term.Value, strings.Join(term.Rows, ", "),
			strings.Join(off, ", "))
	}
	d := &document.Document{Name: "device-calibrate", Title: "windrow device calibrate", Result: c,
		Headline: fmt.Sprintf("%d numbers of %d presets are calibrated on published rows",
			len(c.Terms), len(presets))}
	d.Add("", "The last column has the error of each row by a calibration without it: numbers "+
		"that the other rows cannot fix are then 0.", *t)
	return d
}

// valueOf writes a calibrated term as files do.
func valueOf(d *devicemodels.Device, term string) string {
	switch term {
	case "host.dense_rate":
		return d.Host.DenseRate.String()
	case "host.row_rate":
		return d.Host.RowRate.String()
	case "host.copy_rate":
		return d.Host.CopyRate.String()
	case "host.copy_fixed":
		return d.Host.CopyFixed.String()
	case "flash.engines.uring":
		cost := d.Flash.Engines[ioengine.Uring]
		return (cost.Submit + cost.Complete).String()
	}
	return ""
}

// solve sets the parameters so that the simulated times are the published ones, by Newton's method:
// the time of a part is linear in the time of a byte or a call, and nearly so where reads overlap.
func (s *study) solve(list []parameter, rows []calibratingRow) error {
	const rounds, close = 4, 1e-6
	for range rounds {
		base, err := s.times(rows)
		if err != nil {
			return err
		}
		off, worst := mat.NewVecDense(len(rows), nil), 0.0
		for i, r := range rows {
			wanted := s.ms(r.id).Seconds()
			off.SetVec(i, wanted-base[i])
			worst = max(worst, math.Abs(base[i]/wanted-1))
		}
		if worst < close {
			return nil
		}
		slopes := mat.NewDense(len(rows), len(list), nil)
		at := make([]float64, len(list))
		for j, p := range list {
			if at[j], err = s.value(p); err != nil {
				return err
			}
			step := max(at[j]/4, 1e-12)
			if err := s.assign(p, at[j]+step); err != nil {
				return err
			}
			moved, err := s.times(rows)
			if err != nil {
				return err
			}
			for i := range rows {
				slopes.Set(i, j, (moved[i]-base[i])/step)
			}
			if err := s.assign(p, at[j]); err != nil {
				return err
			}
		}
		var by mat.VecDense
		if err := by.SolveVec(slopes, off); err != nil {
			return fmt.Errorf("reproduce: the rows %s do not fix the terms: %w", rows[0].id, err)
		}
		for j, p := range list {
			if err := s.assign(p, max(at[j]+by.AtVec(j), 0)); err != nil {
				return err
			}
		}
	}
	return nil
}

// leaveOneOut calibrates without each of the rows, and returns its error in percent.
func (s *study) leaveOneOut(g group) ([]float64, error) {
	list := []float64{}
	if len(g.rows) < 2 {
		return list, nil
	}
	for i, out := range g.rows {
		rest := slices.Delete(slices.Clone(g.rows), i, i+1)
		kept := make([]float64, len(g.parameters))
		for j, p := range g.parameters {
			var err error
			if kept[j], err = s.value(p); err != nil {
				return nil, err
			}
			if j >= len(rest) {
				if err := s.assign(p, 0); err != nil {
					return nil, err
				}
			}
		}
		if err := s.solve(g.parameters[:len(rest)], rest); err != nil {
			return nil, err
		}
		took, err := s.times([]calibratingRow{out})
		if err != nil {
			return nil, err
		}
		list = append(list, 100*(took[0]/s.ms(out.id).Seconds()-1))
		for j, p := range g.parameters {
			if err := s.assign(p, kept[j]); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// times simulates the parts of the rows, in seconds.
func (s *study) times(rows []calibratingRow) ([]float64, error) {
	var list []float64
	for _, r := range rows {
		c, err := r.run(s)
		if err != nil {
			return nil, err
		}
		m, err := s.simulate(c)
		if err != nil {
			return nil, err
		}
		list = append(list, r.part(m).Seconds())
	}
	return list, nil
}

// value is a parameter of the first of its presets.
func (s *study) value(p parameter) (float64, error) {
	d, err := s.device(p.presets[0])
	if err != nil {
		return 0, err
	}
	return p.get(d), nil
}

// assign sets a parameter of all its presets. Earlier results are of other devices.
func (s *study) assign(p parameter, v float64) error {
	for _, name := range p.presets {
		d, err := s.device(name)
		if err != nil {
			return err
		}
		changed := *d
		p.set(&changed, v)
		s.devices[name] = &changed
	}
	clear(s.measured)
	return nil
}
