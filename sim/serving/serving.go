package serving

import (
	"fmt"
	"slices"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/sim/sweep"
	"github.com/windrow-sim/windrow/traces"
)

// ErrConfig marks a server or a load that cannot be simulated. Refusals by package sim are of kind
// sim.ErrConfig.
var ErrConfig = refusal.Kind(refusal.ErrConfig, "the load cannot be simulated")

// Compute says how the arithmetic of several tokens in a step is charged. doc.go has the rules.
type Compute string

// The ways to charge it.
const (
	Auto Compute = ""     // Peak if the device states one, else Each
	Peak Compute = "peak" // bounded by the device's peak
	Once Compute = "once" // weights pass once, arithmetic is free
	Each Compute = "each" // every token by itself
)

// Limits of a configuration: every running sequence and every chunk token costs time in every step.
const (
	MaxBatch = 4096
	MaxChunk = 1 << 20
)

// Config describes a server.
type Config struct {
	Sim      sim.Config // of every step; its window counts steps
	MaxBatch int        // sequences that run together, 1 to MaxBatch
	Chunk    int        // prompt tokens of a step, 1 to MaxChunk
	// memory for keys and values, reserved for a whole request when it is admitted; 0 = no limit
	KV       units.Bytes
	TTFT     units.Nanos // objective for the time to the first token; 0 = none
	TPOT     units.Nanos // objective for the time per output token; 0 = none
	Deadline units.Nanos // no step begins at this time or later; 0 = none
	Compute  Compute
	// time every read as an event, also if a table of the event model is exact enough
	Events bool
	Seed   uint64 // of the positions of the trace at which requests begin

	// Progress, if not nil, is called after every step with the number of requests that are
	// finished or refused.
	Progress func(done int64)
}

// Server is a checked configuration on one trace. It runs any number of loads, one after the other,
// and is not safe for concurrent use.
type Server struct {
	cfg      Config
	head     *traces.Header
	src      traces.Source
	costs    devicemodels.Compute
	peak     units.Rate   // of arithmetic, in bytes of weights; 0 = not charged
	table    *sweep.Table // nil if reads are events
	prompt   *ring
	decode   *ring
	readsAll bool // the policy reads units that no token needs; they are computed too
	warnings []string
}

// New returns a server. It reads the trace once and keeps its masks: they must stay valid as long
// as the server is used. Errors are of kind ErrConfig or sim.ErrConfig, or those of the trace.
func New(src traces.Source, cfg Config) (*Server, error) {
	if err := cfg.check(src); err != nil {
		return nil, err
	}
	head := src.Header()
	s := &Server{cfg: cfg, head: head, src: src, costs: cfg.Sim.Device.Host.At(head.DType)}
	if _, err := sim.NewMachine(&s.cfg.Sim, head, sim.MachineOptions{}); err != nil {
		return nil, err // before the trace is read
	}
	if cfg.Compute == Peak {
		// a weight is a multiply-add
		s.peak = units.Rate(cfg.Sim.Device.Host.ComputeGFLOPS * 1e9 / 2 *
			float64(head.Shape.DTypeSize))
	}
	if !cfg.Events && sweep.Tabular(&cfg.Sim) {
		s.table = sweep.NewTable(cfg.Sim)
	}
	kind := cfg.Sim.Policy.Kind
	s.readsAll = kind == policy.KindAll || kind == policy.KindHybrid
	var err error
	if s.prompt, s.decode, err = readRings(src, cfg.Sim.Predicted); err != nil {
		return nil, err
	}
	s.warnings = s.traceWarnings()
	return s, nil
}

// limits are the settings of Config.Sim that are refused.
func limits() []sim.Limit {
	return []sim.Limit{
		{Setting: sim.SettingMaxTokens, Why: "requests walk through the whole trace; cut the " +
			"trace"},
		{Setting: sim.SettingPredictorRank, Why: "the cost of a predictor for several tokens in " +
			"a step is not known; take the predicted masks without one"},
		{Setting: sim.SettingSchedule, Why: "prefetches for the requests of a step are not " +
			"modelled; read on demand"},
		{Setting: sim.SettingBackend, Why: "several tokens in a step are not modelled on a GPU; " +
			"compute on the host"},
	}
}

// check refuses what cannot be simulated and fills in defaults.
func (cfg *Config) check(src traces.Source) error {
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("serving: %s: %w", fmt.Sprintf(format, args...), ErrConfig)
	}
	switch {
	case cfg.MaxBatch < 1 || cfg.MaxBatch > MaxBatch:
		return refuse("batches of %d sequences: give 1 to %d", cfg.MaxBatch, MaxBatch)
	case cfg.Chunk < 1 || cfg.Chunk > MaxChunk:
		return refuse("%d prompt tokens in a step: give 1 to %d", cfg.Chunk, MaxChunk)
	case cfg.KV < 0 || cfg.TTFT < 0 || cfg.TPOT < 0 || cfg.Deadline < 0:
		return refuse("memory of %v, objectives of %v and %v, a deadline of %v: none may be "+
			"below 0", cfg.KV, cfg.TTFT, cfg.TPOT, cfg.Deadline)
	case cfg.Sim.Policy.Kind == policy.KindBelady:
		return refuse("the policy %s: the units of later steps depend on the arrivals of requests "+
			"and are not known beforehand; use lru", cfg.Sim.Policy)
	case !slices.Contains([]Compute{Auto, Peak, Once, Each}, cfg.Compute):
		return refuse("compute %q: it is peak, once or each", cfg.Compute)
	case src.Tokens() == 0:
		return refuse("the trace has no tokens")
	}
	if err := cfg.Sim.Refuse("serving", limits()...); err != nil {
		return err
	}
	if err := cfg.Sim.Check(src.Header()); err != nil {
		return err
	}
	known := cfg.Sim.Device.Host.ComputeGFLOPS > 0
	switch {
	case cfg.Compute == Peak && !known:
		return refuse("compute at the peak of %s: the device states none (host.compute_gflops)",
			cfg.Sim.Device.Name)
	case cfg.Compute == Auto && known:
		cfg.Compute = Peak
	case cfg.Compute == Auto:
		cfg.Compute = Each
	}
	return nil
}

// traceWarnings warns of a trace that is too short or lacks a phase.
func (s *Server) traceWarnings() (list []string) {
	if s.prompt == s.decode {
		phase := "generated"
		if s.prompt.phase == traces.Prefill {
			phase = "prompt"
		}
		list = append(list, fmt.Sprintf("the trace has %s tokens only: prompts and outputs take "+
			"their masks from the same rows", phase))
	}
	if n := s.prompt.tokens(); s.cfg.Chunk > n {
		list = append(list, fmt.Sprintf("the trace has %d rows for prompts and a step takes up "+
			"to %d prompt tokens: masks repeat and the union is too small; record more, or "+
			"take a smaller chunk", n, s.cfg.Chunk))
	}
	if n := s.decode.sequences.Count(); s.cfg.MaxBatch > n {
		list = append(list, fmt.Sprintf("the masks of up to %d requests come from %d recorded "+
			"sequences: those of one sequence have more in common than independent requests, "+
			"and unions may be too small", s.cfg.MaxBatch, n))
	}
	return list
}

// Compute returns how arithmetic is charged. It never returns Auto.
func (s *Server) Compute() Compute { return s.cfg.Compute }
