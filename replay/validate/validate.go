// Package validate checks the simulator against replay: the same trace, configuration by
// configuration, simulated on a device model and measured on the device, compared part by part with
// counters compared exactly.
//
// Start with Setup.Case for one configuration and Setup.Suite for a grid of them. It is the one
// package that sees both the simulator and the engine.
package validate

import (
	"context"
	"fmt"
	"time"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/replay"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/compare"
)

// Setup is what all configurations of a check have in common.
type Setup struct {
	Source   traces.Source
	Weights  *model.Weights
	Geometry layout.Geometry
	Device   *devicemodels.Device
	Engine   string // the I/O engine's name in Device.Flash.Engines, of cases that name none
	// Open opens the device for reading by an engine, with the given number of threads or queue
	// depth.
	Open func(engine string, parallel int) (flashio.Reader, error)
	// Bundles reads a layer's bundles, for cases with a dense prefix.
	Bundles func(layer int) ([]byte, error)

	Tokens         int // 0 = the whole trace
	Threads        int // compute threads; 0 = all cores
	ReferenceEvery int // tokens between reference reads; 0 = no drift is measured
	ReferenceReads int // of one reading; 0 = replay's own number
	ReferencePause time.Duration
	Seed           uint64
	Compare        compare.Options
	Progress       func(label string, done, total int)
}

// Case is one configuration: the axes of a check.
type Case struct {
	Engine   string        `json:"engine,omitempty"` // empty = the setup's
	Parallel int           `json:"parallel"`
	Chunk    units.Bytes   `json:"chunk"` // 0 = no limit
	Policy   policy.Spec   `json:"policy"`
	Schedule schedule.Spec `json:"schedule,omitzero"`
}

// String names a case in tables.
func (c Case) String() string {
	kept := c.Policy.String()
	if c.Policy.PlainWindow() {
		kept = fmt.Sprintf("k=%d", c.Policy.Window)
	}
	text := fmt.Sprintf("%s ×%d %v", kept, c.Parallel, c.Chunk)
	if c.Schedule.Kind != schedule.Demand {
		text += fmt.Sprintf(" %s d=%d", c.Schedule.Kind, c.Schedule.Dense)
	}
	if c.Engine != "" {
		text = c.Engine + " " + text
	}
	return text
}

// Outcome is a configuration simulated and measured.
type Outcome struct {
	Case       Case                `json:"case"`
	Comparison *compare.Comparison `json:"comparison"`
	Simulated  *traces.Run         `json:"-"`
	Measured   *traces.Run         `json:"-"`
	Drift      replay.Drift        `json:"drift"`
	Mode       flashio.Mode        `json:"mode"`
}

// Grid lists all combinations.
func Grid(windows, parallel []int, chunks []units.Bytes) []Case {
	var cases []Case
	for _, k := range windows {
		for _, p := range parallel {
			for _, c := range chunks {
				cases = append(cases, Case{Policy: policy.SlidingWindow(k), Parallel: p, Chunk: c})
			}
		}
	}
	return cases
}

// Case simulates and measures one configuration.
func (s *Setup) Case(ctx context.Context, c Case) (*Outcome, error) {
	reader, err := s.Open(s.engine(c), c.Parallel)
	if err != nil {
		return nil, err
	}
	result, err := replay.Run(ctx, s.Source, s.Weights, s.Geometry, reader, replay.Config{
		Policy: c.Policy, Schedule: c.Schedule, Bundles: s.Bundles,
		Layout: c.layout(reader.Mode()), Threads: s.Threads, MaxTokens: s.Tokens,
		ReferenceEvery: s.ReferenceEvery, ReferenceReads: s.ReferenceReads,
		ReferencePause: s.ReferencePause, Seed: s.Seed,
		Progress: func(done, total int) {
			if s.Progress != nil {
				s.Progress(c.String(), done, total)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	o := &Outcome{Case: c, Measured: result.Run, Drift: result.Drift, Mode: result.Mode}
	o.Simulated, o.Comparison, err = s.against(ctx, s.Device, o)
	return o, err
}

// against simulates the configuration of an outcome on a device model and compares it with what was
// measured.
func (s *Setup) against(ctx context.Context, device *devicemodels.Device, o *Outcome) (*traces.Run,
	*compare.Comparison,
	error) {
	c := o.Case
	simulated, err := sim.Run(ctx, s.Source, sim.Config{
		Policy: c.Policy, Schedule: sim.Replayed(c.Schedule), Engine: s.engine(c),
		Parallel: c.Parallel, MaxTokens: s.Tokens, Layout: c.layout(o.Mode), Device: device,
		Geometry: s.Geometry,
	})
	if err != nil {
		return nil, nil, err
	}
	comparison, err := compare.Compare(simulated, o.Measured, s.Compare)
	return simulated, comparison, err
}

func (s *Setup) engine(c Case) string {
	if c.Engine != "" {
		return c.Engine
	}
	return s.Engine
}

func (c Case) layout(mode flashio.Mode) layout.Options {
	return layout.Options{Coalesce: true, MaxRequest: c.Chunk, Align: max(mode.Align, 1)}
}

// Suite runs every case. An error ends it; the outcomes so far are returned with it.
func (s *Setup) Suite(ctx context.Context, cases []Case) ([]*Outcome, error) {
	var out []*Outcome
	one := *s
	for i, c := range cases {
		one.Progress = func(label string, done, total int) { // of the whole suite
			if s.Progress != nil {
				s.Progress(label, i*total+done, len(cases)*total)
			}
		}
		o, err := one.Case(ctx, c)
		if err != nil {
			return out, fmt.Errorf("validate: %v: %w", c, err)
		}
		out = append(out, o)
	}
	return out, nil
}

// CalibrateHost measures one configuration and sets the host constants of the device model from
// everything in it but the reads. The configuration should not be one of those that are checked
// afterwards.
func (s *Setup) CalibrateHost(ctx context.Context, c Case) error {
	o, err := s.Case(ctx, c)
	if err != nil {
		return fmt.Errorf("validate: calibration: %w", err)
	}
	return replay.Calibrate(&s.Device.Host, o.Measured, s.Source.Header())
}

// CalibrateBatch also sets the host's cost per batch of reads, by what the measured I/O of one
// configuration took beyond the simulated. It is for devices whose flash is known better than what
// the host adds: the emulated ones.
func (s *Setup) CalibrateBatch(ctx context.Context, c Case) error {
	o, err := s.Case(ctx, c)
	if err != nil {
		return fmt.Errorf("validate: calibration: %w", err)
	}
	if err := replay.CalibrateBatch(&s.Device.Flash, s.engine(c), o.Simulated,
		o.Measured); err != nil {
		return err
	}
	return replay.Calibrate(&s.Device.Host, o.Measured, s.Source.Header())
}
