package reproduce

import (
	"fmt"
	"strings"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/synth"
)

// traceTokens is the length of a synthetic trace. The runs of the papers have 256 tokens. Fewer are
// enough here: a token has half a million units.
const traceTokens = 40

// threads is the number of read threads of LLM in a flash, section 4.1.
const threads = 32

// scenario is a published run as "windrow sim" takes it.
type scenario struct {
	model  string  // shape and statistics of the trace
	dtype  string  // precision of the weights
	active float64 // share of active units; 0 = as published
	device string  // a preset

	truth     bool // the true masks are needed, not the predicted ones
	policy    string
	rank      int  // of the predictor, the mean over the layers; 0 = none
	unbundled bool // the rows of a unit are separate reads

	engine   string // empty = pread
	parallel int    // 0 = threads

	schedule schedule.Kind
	dense    int // layers whose units are all in memory
}

// measured has the means per token of a simulated run, after the memory has filled.
type measured struct {
	io, memory, compute units.Nanos
	total               units.Nanos
	read                units.Bytes
	resident            units.Bytes // rows in memory while the token computes
	ffn                 units.Bytes // of the whole model

	byToken []units.Nanos // I/O of every token
	run     *traces.Run
}

// share is b as percent of the FFN.
func (m *measured) share(b units.Bytes) float64 { return 100 * float64(b) / float64(m.ffn) }

// config is the configuration of a scenario.
func (s *study) config(c scenario, head *traces.Header) (sim.Config, error) {
	device, err := s.device(c.device)
	if err != nil {
		return sim.Config{}, err
	}
	kept, err := policy.Parse(c.policy)
	if err != nil {
		return sim.Config{}, err
	}
	cfg := sim.Config{
		Policy: kept, Engine: ioengine.Pread, Parallel: threads, Device: device,
		Predicted: !c.truth, PredictorRank: c.rank,
		// Reads past the page cache need no alignment on macOS (F_NOCACHE), and records of 4 KiB
		// multiples have it anyway.
		Layout: layout.Options{Align: 1},
	}
	if c.engine != "" {
		cfg.Engine, cfg.Parallel = c.engine, c.parallel
	}
	if c.unbundled {
		cfg.Layout.MaxRequest = head.UnitBytes / units.Bytes(head.Shape.Rows)
	}
	if c.schedule != schedule.Demand {
		cfg.Schedule = sim.Schedule{Recall: 1, Spec: schedule.Spec{Kind: c.schedule, Dense: c.dense,
			Staging: schedule.Unlimited}}
	}
	return cfg, nil
}

// simulate runs a scenario once and keeps the result.
func (s *study) simulate(c scenario) (*measured, error) {
	if m := s.measured[c]; m != nil {
		return m, nil
	}
	trace, err := s.trace(c)
	if err != nil {
		return nil, err
	}
	cfg, err := s.config(c, &trace.Head)
	if err != nil {
		return nil, err
	}
	run, err := sim.Run(s.ctx, trace, cfg)
	if err != nil {
		return nil, fmt.Errorf("%s on %s: %w", c.model, c.device, err)
	}
	m := digest(run, &trace.Head, max(cfg.Policy.Window, 2))
	s.measured[c] = m
	return m, nil
}

// device is a preset, or the one that a calibration tries in its place.
func (s *study) device(name string) (*devicemodels.Device, error) {
	if d := s.devices[name]; d != nil {
		return d, nil
	}
	d, err := devicemodels.Preset(name)
	if err != nil {
		return nil, err
	}
	s.devices[name] = d
	return d, nil
}

// traceKey holds everything that a synthetic trace depends on.
type traceKey struct {
	model, dtype string
	active       float64
	seed         uint64
}

// trace makes the synthetic trace of a scenario, once.
func (s *study) trace(c scenario) (*traces.Memory, error) {
	key := traceKey{c.model, c.dtype, c.active, s.seed}
	if t := s.traces[key]; t != nil {
		return t, nil
	}
	trace, err := synth.Collect(s.ctx, synth.Options{Like: c.model, DType: c.dtype,
		ActiveShare: c.active, Tokens: traceTokens, Seed: s.seed, Predicted: true})
	if err != nil {
		return nil, err
	}
	s.traces[key] = trace
	return trace, nil
}

// inputs describes a scenario, and names the published numbers that its device is calibrated on.
func (s *study) inputs(c scenario) []Input {
	device, err := s.device(c.device)
	if err != nil {
		s.fail(err)
		return nil
	}
	share := "published active share"
	if c.active > 0 {
		share = fmt.Sprintf("%s %% active", number(100*c.active))
	}
	flags := fmt.Sprintf("-d %s --policy %s", c.device, c.policy)
	if !c.truth {
		flags += " --predicted"
	}
	if c.rank > 0 {
		flags += fmt.Sprintf(" --predictor-rank %d", c.rank)
	}
	if c.engine != "" {
		flags += fmt.Sprintf(" --io %s --parallel %d", c.engine, c.parallel)
	}
	if c.schedule != schedule.Demand {
		flags += fmt.Sprintf(" --schedule %v --dense-prefix %d", c.schedule, c.dense)
	}
	list := []Input{
		other("trace", fmt.Sprintf("synth trace --like %s --precision %s", strings.ToLower(c.model),
			c.dtype), share+"; traces/synth/targets.csv"),
		other("run", "sim "+flags, "the published setting"),
	}
	for _, term := range device.Calibrated {
		for _, row := range term.Rows {
			list = append(list, calibrated(term.Term, "of the preset "+c.device, row))
		}
	}
	return list
}

// digest computes the means over the tokens from warm on.
func digest(run *traces.Run, head *traces.Header, warm int) *measured {
	m := &measured{ffn: units.Bytes(head.Layers*head.Units) * head.UnitBytes, run: run}
	var resident, evicted int64
	var cached units.Bytes
	last := -1
	count := 0
	for i := range run.Rows {
		r := &run.Rows[i]
		if int(r.Token) != last { // the evictions of a token take effect before the next one
			resident, evicted, last = resident-evicted, 0, int(r.Token)
			m.byToken = append(m.byToken, 0)
			if last >= warm {
				count++
			}
		}
		resident += int64(r.Misses)
		evicted += int64(r.Evictions)
		if r.Part == traces.PartIO {
			m.byToken[last] += r.Dur
		}
		if last < warm {
			continue
		}
		switch r.Part {
		case traces.PartIO:
			m.io, m.read = m.io+r.Dur, m.read+r.Bytes
		case traces.PartMemory:
			m.memory += r.Dur
		case traces.PartOther:
			cached += units.Bytes(resident) * head.UnitBytes
			m.compute += r.Dur
		default:
			m.compute += r.Dur
		}
	}
	n := units.Nanos(max(count, 1))
	m.io, m.memory, m.compute = m.io/n, m.memory/n, m.compute/n
	m.total = m.io + m.memory + m.compute
	m.read, m.resident = m.read/units.Bytes(n), cached/units.Bytes(n)
	return m
}
