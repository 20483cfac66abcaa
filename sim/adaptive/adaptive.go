package adaptive

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/windrow-sim/windrow/internal/decisions/memory"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/sim/answers"
	"github.com/windrow-sim/windrow/traces"
)

// ErrConfig marks a configuration that cannot be simulated.
var ErrConfig = refusal.Kind(refusal.ErrConfig, "adaptive: the configuration cannot be simulated")

// configError is an error of kind ErrConfig that reads as the error it wraps.
type configError struct{ error }

func (configError) Is(target error) bool { return errors.Is(ErrConfig, target) }
func (e configError) Unwrap() error      { return e.error }

// Config describes the simulation.
type Config struct {
	Sim       sim.Config // device, engine, layout and masks; no window and no policy
	Model     answers.Model
	Positions int // reserved for the KV cache; 0 lets it grow with the context
	Budget    *Schedule
	Bounds    policy.Bounds
	Fraction  float64 // of the room, of the strategy "fraction"; in (0, 1]
	// the number of tokens at the start of every sequence that are left out of speeds and
	// percentiles: they fill the window
	Skip int
	// Progress, if not nil, is called with the number of tokens done and the number of all tokens,
	// over all strategies.
	Progress func(done, total int)
}

// The strategies, in the order of a Result.
const (
	Adaptive = "adaptive"
	Fraction = "fraction"
	Static   = "static"
	Oracle   = "oracle"
)

// Phase is one budget of the schedule.
type Phase struct {
	Change
	Tokens int         `json:"tokens_count"` // that begin in it, with the strategy "adaptive"
	Floor  units.Bytes `json:"floor_bytes"`  // at its last token
	Oracle int         `json:"oracle_window_tokens"`
}

// Result compares the strategies.
type Result struct {
	Model    string         `json:"model"`
	Device   string         `json:"device"`
	Budget   *Schedule      `json:"budget"`
	Min      int            `json:"min_window_tokens"`
	Max      int            `json:"max_window_tokens"`
	Calm     int            `json:"hysteresis_tokens"`
	Fraction float64        `json:"fraction"`
	Skip     int            `json:"skip_tokens"`
	Floor    answers.Memory `json:"floor"` // of the longest context
	Phases   []Phase        `json:"phases"`
	Outcomes []Outcome      `json:"strategies"`
	Warnings []string       `json:"warnings"`
	// Below is the first budget that not even the shortest window fits into; nil = all do. Then no
	// strategy is simulated.
	Below *Below `json:"below_floor,omitempty"`
}

// Below is a budget below the floor of a token.
type Below struct {
	Budget units.Bytes    `json:"budget_bytes"`
	Floor  answers.Memory `json:"floor"`
}

// study is the state that all strategies share.
type study struct {
	cfg   *Config
	src   traces.Source
	rows  *memory.Windows
	use   [][]int       // by token and window: rows in use, as Elastic.Use
	pos   []uint32      // by token: its position
	floor []units.Bytes // by position: memory of the shortest window
	cache units.Bytes   // the row cache, a part of it
}

// Run simulates all strategies on a trace. It is deterministic. A budget below the floor is an
// answer, see Result.Below. Errors about the configuration are of kind ErrConfig, answers.ErrInput
// or sim.ErrConfig.
func Run(ctx context.Context, src traces.Source, cfg Config) (*Result, error) {
	s, err := newStudy(ctx, src, &cfg)
	if err != nil {
		return nil, err
	}
	controller, err := policy.NewController(cfg.Bounds)
	if err != nil {
		return nil, err
	}
	r := &Result{Model: cfg.Model.Name, Device: cfg.Sim.Device.Name, Budget: cfg.Budget,
		Min: cfg.Bounds.Min, Max: cfg.Bounds.Max, Calm: cfg.Bounds.Calm, Fraction: cfg.Fraction,
		Skip: cfg.Skip, Phases: []Phase{}, Outcomes: []Outcome{}, Warnings: []string{}}
	if r.Floor, err = s.memory(s.rows.Positions); err != nil {
		return nil, err
	}
	static, err := s.static()
	if below, ok := errors.AsType[*memory.BudgetError](err); ok {
		r.Below = &Below{below.Budget, answers.Memory{Memory: below.Floor,
			Weights: cfg.Model.Bytes()}}
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	oracle, err := s.oracle()
	if err != nil {
		return nil, err
	}
	done, total := 0, 4*src.Tokens()
	for _, strategy := range []strategy{
		{Adaptive, controller.Reset, func(m moment) int {
			return controller.Next(m.room, m.last,
				m.use)
		}},
		{Fraction, nil, func(m moment) int { return s.fraction(m) }},
		{Static, nil, func(moment) int { return static }},
		{Oracle, nil, func(m moment) int { return oracle[m.phase] }},
	} {
		steps, summary, err := s.simulate(ctx, strategy, func() {
			if done++; cfg.Progress != nil {
				cfg.Progress(done, total)
			}
		})
		if err != nil {
			return nil, err
		}
		o, err := s.outcome(strategy.name, steps)
		if err != nil {
			return nil, err
		}
		prediction, warnings := cfg.Sim.Predict(cfg.Sim.NewHost(src.Header()), summary)
		o.Basis, o.Prediction = prediction.Basis, prediction
		o.Estimate = prediction.Estimate(o.TokensPerS, summary.Totals.TokensPerS)
		for _, w := range warnings {
			r.Warnings = append(r.Warnings, strategy.name+": "+w)
		}
		r.Outcomes = append(r.Outcomes, o)
	}
	r.compare()
	r.Phases = s.phases(r.Outcomes[0].Steps, oracle)
	return r, nil
}

// limits are the settings of Config.Sim that are refused.
func limits() []sim.Limit {
	return []sim.Limit{
		{Setting: sim.SettingWindow, Why: "the strategies choose the window; leave it out"},
		{Setting: sim.SettingPolicy, Why: "the strategies are windows; leave the policy out"},
		{Setting: sim.SettingMaxTokens, Why: "the strategies are compared on the whole trace; " +
			"cut the trace"},
		{Setting: sim.SettingSchedule, Why: "prefetches for a window that may shrink before " +
			"they are used are not modelled; read on demand"},
		{Setting: sim.SettingBackend, Why: "the budget is of the host's memory, not of a GPU's; " +
			"compute on the host"},
	}
}

func newStudy(ctx context.Context, src traces.Source, cfg *Config) (*study, error) {
	switch {
	case cfg.Budget == nil || len(cfg.Budget.Changes) == 0:
		return nil, fmt.Errorf("adaptive: no budget given: %w", ErrConfig)
	case cfg.Bounds.Max > memory.LongestWindow:
		return nil, fmt.Errorf("adaptive: a window of up to %d tokens: at most %d are possible: %w",
			cfg.Bounds.Max, memory.LongestWindow, ErrConfig)
	case !(cfg.Fraction > 0 && cfg.Fraction <= 1):
		return nil, fmt.Errorf("adaptive: a fraction of %g of the room: give one above 0, at "+
			"most 1: %w",
			cfg.Fraction, ErrConfig)
	case cfg.Skip < 0 || cfg.Positions < 0:
		return nil, fmt.Errorf("adaptive: %d tokens to leave out and %d positions: 0 or more "+
			"are possible: %w", cfg.Skip, cfg.Positions, ErrConfig)
	}
	if err := cfg.Bounds.Check(); err != nil {
		return nil, configError{err}
	}
	if err := cfg.Sim.Refuse("adaptive", limits()...); err != nil {
		return nil, err
	}
	if err := cfg.Sim.Check(src.Header()); err != nil {
		return nil, err
	}
	reads := memory.Reads{Geometry: cfg.Sim.Geometry, Layout: cfg.Sim.Layout}
	rows, err := answers.WindowsOf(ctx, src, reads, cfg.Sim.Predicted, nil)
	if err != nil {
		return nil, err
	}
	s := &study{cfg: cfg, src: src, rows: rows}
	for n := range rows.Positions {
		m, err := s.memory(n + 1)
		if err != nil {
			return nil, err
		}
		s.floor, s.cache = append(s.floor, m.Total), m.Of(memory.PartRowCache)
	}
	return s, s.measure(ctx)
}

// memory accounts for the shortest window with a number of positions in the context. Bookkeeping is
// that of the longest window, because it does not change with the window.
func (s *study) memory(positions int) (answers.Memory, error) {
	h := answers.Holding{PredictorRank: s.cfg.Sim.PredictorRank, Positions: max(positions,
		s.cfg.Positions)}
	m, err := s.cfg.Model.Account(s.rows, s.cfg.Bounds.Min, h)
	if err != nil {
		return m, err
	}
	longest, err := s.cfg.Model.Account(s.rows, s.cfg.Bounds.Max, h)
	m.Memory = m.Replace(memory.PartBookkeeping, longest.Of(memory.PartBookkeeping))
	return m, err
}

// room is the number of rows that a budget has room for at a position; an error of kind
// memory.ErrBudget says that the shortest window does not fit.
func (s *study) room(budget units.Bytes, pos uint32) (int, error) {
	floor := s.floor[pos]
	if floor > budget {
		m, err := s.memory(int(pos) + 1)
		if err == nil {
			err = m.Check(budget)
		}
		return 0, fmt.Errorf("adaptive: at position %d: %w", pos, err)
	}
	return int((budget - floor + s.cache) / s.cfg.Model.CachedRow()), nil
}

// measure finds the rows that every window uses with every token.
func (s *study) measure(ctx context.Context) error {
	head := s.src.Header()
	e := policy.NewElastic(head.Layers, head.Units, s.cfg.Bounds.Max)
	all := head.Layers * head.Units
	var d policy.Decision
	var t traces.Token
	var sequences traces.Sequences
	for i := range s.src.Tokens() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.src.Token(i, &t); err != nil {
			return err
		}
		if sequences.Changes(t.Seq) {
			e.Reset()
		}
		e.Begin(s.cfg.Bounds.Max)
		for l, need := range t.Masks(s.cfg.Sim.Predicted) {
			e.Step(l, need, all, &d)
		}
		s.use, s.pos = append(s.use, e.Use(nil)), append(s.pos, t.Pos)
	}
	return nil
}

// budgeted calls f with the room of every token under every budget that may be in force. If budgets
// change by token, that is one budget. If they change by time, a token may begin under any of them,
// and the context is taken as the longest.
func (s *study) budgeted(f func(phase, token, room int)) error {
	b := s.cfg.Budget
	for i, pos := range s.pos {
		if !b.ByTime {
			p := b.phase(i, 0)
			room, err := s.room(b.Changes[p].Budget, pos)
			if err != nil {
				return err
			}
			f(p, i, room)
			continue
		}
		for p, c := range b.Changes {
			room, err := s.room(c.Budget, uint32(s.rows.Positions-1))
			if err != nil {
				return err
			}
			f(p, i, room)
		}
	}
	return nil
}

// static is the longest window that always fits, with room reserved for the largest row cache of
// every layer.
func (s *study) static() (int, error) {
	least := math.MaxInt
	if err := s.budgeted(func(_, _, room int) { least = min(least, room) }); err != nil {
		return 0, err
	}
	for k := s.cfg.Bounds.Max; k > s.cfg.Bounds.Min; k-- {
		rows := 0
		for l := range s.rows.Layers {
			rows += s.rows.Layers[l].Max[k]
		}
		if rows <= least {
			return k, nil
		}
	}
	return s.cfg.Bounds.Min, nil
}

// oracle returns, for every budget, the longest window that fits all tokens that may begin under
// it.
func (s *study) oracle() ([]int, error) {
	windows := make([]int, len(s.cfg.Budget.Changes))
	for p := range windows {
		windows[p] = s.cfg.Bounds.Max
	}
	err := s.budgeted(func(p, token, room int) {
		windows[p] = longest(s.use[token], room, windows[p], s.cfg.Bounds.Min)
	})
	return windows, err
}

// fraction is the longest window whose rows with the previous token are within the fraction of the
// room.
func (s *study) fraction(m moment) int {
	if len(m.use) == 0 {
		return s.cfg.Bounds.Max
	}
	return longest(m.use, int(s.cfg.Fraction*float64(m.room)), s.cfg.Bounds.Max, s.cfg.Bounds.Min)
}

// longest is the longest window from least to most whose rows fit the room; least if none does. A
// window longer than the sequence so far uses as many rows as the longest window in use.
func longest(use []int, room, most, least int) int {
	for k := most; k > least; k-- {
		if use[min(k, len(use)-1)] <= room {
			return k
		}
	}
	return least
}
