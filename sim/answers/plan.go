package answers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/memory"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/tell"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
)

// PlanConfig asks for the best configuration of a trace on a device.
//
// Speed is tokens per second without the first Warm tokens of each sequence, which fill the window.
// If no sequence has more, all tokens count. The grid, needed values and elasticities are simulated
// on the first Prefix tokens, the winners on MaxTokens.
type PlanConfig struct {
	Trace         traces.Source
	Model         Model // ModelOf the trace's header, or a better description
	Device        *devicemodels.Device
	Backend       sim.Backend // the processor that computes
	Budget        units.Bytes // of all memory, see Memory
	Target        float64     // tokens/s; 0 = none
	Predicted     bool
	PredictorRank int
	Positions     int // of the KV cache; 0 = those of the trace

	// to choose from; empty = all engines of the device that bypass the page cache, in alphabetical
	// order
	Engines  []string
	Parallel []int // to choose from; empty = 8, 32, 128
	Chunks   []units.Bytes
	Prefix   int // 0 = 48, or twice the longest window that fits
	Winners  int // 0 = 3
	// MaxTokens limits the tokens of the winners' simulations; 0 = the whole trace.
	MaxTokens int
	// Others are devices whose flash is tried in place of the device's own.
	Others []*devicemodels.Device
	// Energy returns the joules per token of a simulated run, if they are known. nil = the Pareto
	// front has memory and speed only.
	Energy func(*traces.Run) (float64, bool)
	Tell   tell.Tell
}

// Setting is one configuration of the grid.
type Setting struct {
	Window   int         `json:"window_tokens"`
	Engine   string      `json:"engine"`
	Parallel int         `json:"parallel"`
	Chunk    units.Bytes `json:"chunk_bytes"` // largest request; 0 = no limit
}

// Point is a Setting with its memory and its speed.
type Point struct {
	Setting
	Memory     units.Bytes `json:"memory_bytes"`
	Fits       bool        `json:"fits_budget"`
	TokensPerS float64     `json:"tokens_per_s"`
	// Estimate is TokensPerS with its interval.
	Estimate document.Estimate `json:"tokens_per_s_estimate"`
	// Joules are a bound from below: those of flash and memory alone.
	Joules *float64 `json:"joules_per_token,omitempty"`
}

// Winner is a Point simulated on the whole trace.
type Winner struct {
	Point
	// Prediction says how well the speed of the whole run is known, with the first tokens of its
	// sequences. Run is the rate of that run.
	Prediction *traces.Prediction `json:"prediction"`
	Run        float64            `json:"tokens_per_s_whole_run"`
}

// Plan is the result of MakePlan.
type Plan struct {
	Model  string      `json:"model"`
	Device string      `json:"device"`
	Budget units.Bytes `json:"budget_bytes"`
	Target float64     `json:"target_tokens_per_s,omitempty"`
	Tokens int         `json:"prefix_tokens"`
	Warm   int         `json:"warm_tokens"`
	Fits   bool        `json:"fits_budget"`
	Memory Memory      `json:"memory"` // of Best; where nothing fits, the floor
	Best   *Winner     `json:"best"`   // the fastest that fits; nil = nothing does
	Meets  bool        `json:"meets_target"`
	// Leanest is the Point with the least memory that reaches the target, even if it does not fit;
	// nil if no Point reaches it, or there is no target.
	Leanest       *Point        `json:"leanest,omitempty"`
	Winners       []Winner      `json:"winners"`
	Pareto        []Point       `json:"pareto"` // by memory
	Needs         []Need        `json:"needs"`
	Sensitivities []Sensitivity `json:"sensitivities"` // by magnitude
	Purchases     []Purchase    `json:"purchases"`     // by speed
	Warnings      []string      `json:"warnings"`
}

// negligible is a difference in speed, as a share. The simpler of two settings is preferred if they
// differ by less.
const negligible = 1e-3

// MakePlan answers a PlanConfig. A budget that nothing fits into is an answer: a Plan without a
// Best, whose Memory is the floor. Errors are of kind ErrInput, or those of package sim.
func MakePlan(ctx context.Context, cfg PlanConfig) (*Plan, error) {
	p, err := newPlanner(ctx, cfg)
	if err != nil {
		return nil, err
	}
	out := &Plan{
		Model: p.Model.Name, Device: p.Device.Name, Budget: p.Budget, Target: p.Target,
		Winners: []Winner{}, Pareto: []Point{}, Needs: []Need{}, Sensitivities: []Sensitivity{},
		Purchases: []Purchase{}, Warnings: []string{},
	}
	if p.floor != nil {
		out.Memory = *p.floor
		return out, nil
	}
	out.Fits, out.Tokens, out.Warm = true, p.prefix.Tokens(), p.warm
	points, err := p.grid()
	if err != nil {
		return nil, err
	}
	out.Pareto = pareto(points)
	if out.Winners, err = p.winners(points); err != nil {
		return nil, err
	}
	out.Best = &out.Winners[0]
	if out.Memory, err = p.account(out.Best.Window); err != nil {
		return nil, err
	}
	out.Meets = p.Target > 0 && out.Best.TokensPerS >= p.Target
	for i := range points {
		if pt := &points[i]; p.Target > 0 && pt.TokensPerS >= p.Target && (out.Leanest == nil ||
			better(pt, out.Leanest, true)) {
			out.Leanest = pt
		}
	}
	p.best = out.Best.Setting
	if p.Target > 0 {
		if out.Needs, err = p.needs(); err != nil {
			return nil, err
		}
	}
	if out.Sensitivities, err = p.sensitivities(); err != nil {
		return nil, err
	}
	if out.Purchases, err = p.purchases(); err != nil {
		return nil, err
	}
	out.Warnings = append(out.Warnings, p.warnings...)
	return out, nil
}

// planner is a checked PlanConfig.
type planner struct {
	PlanConfig
	ctx      context.Context
	prefix   *traces.Memory
	rows     *memory.Windows
	hold     Holding
	floor    *Memory // of a window of 0 tokens, where that does not fit; nil = it does
	windows  []int
	fits     int // the longest of the windows that fits
	warm     int
	best     Setting
	warnings []string
}

func newPlanner(ctx context.Context, cfg PlanConfig) (*planner, error) {
	if err := cfg.Model.check(); err != nil {
		return nil, err
	}
	if cfg.Device == nil || cfg.Trace == nil || cfg.Budget < 0 || !(cfg.Target >= 0) ||
		cfg.Prefix < 0 || cfg.Winners < 0 || cfg.Positions < 0 || cfg.PredictorRank < 0 {
		return nil, fmt.Errorf("answers: plan: a trace, a device, a budget of 0 B or more and a "+
			"target of 0 tokens/s or more are wanted: %w", ErrInput)
	}
	if len(cfg.Engines) == 0 {
		cfg.Engines = enginesOf(cfg.Device)
	}
	if len(cfg.Engines) == 0 {
		return nil, fmt.Errorf("answers: plan: the device %s names no I/O engine that reads "+
			"past the page cache: %w", cfg.Device.Name, ErrInput)
	}
	if len(cfg.Parallel) == 0 {
		cfg.Parallel = []int{8, 32, 128}
	}
	if len(cfg.Chunks) == 0 {
		cfg.Chunks = []units.Bytes{0, 64 * units.KiB}
	}
	if cfg.Winners == 0 {
		cfg.Winners = 3
	}
	p := &planner{PlanConfig: cfg, ctx: ctx}
	p.hold = Holding{PredictorRank: cfg.PredictorRank, Positions: cfg.Positions}
	reads := memory.Reads{Layout: layout.Options{Coalesce: true, Align: cfg.Device.Flash.Align}}
	var err error
	if p.rows, err = WindowsOf(ctx, cfg.Trace, reads, cfg.Predicted,
		p.Tell.Stage("rows of the trace")); err != nil {
		return nil, err
	}
	mem, err := cfg.Model.LargestWindow(p.rows, p.hold, cfg.Budget)
	if errors.Is(err, memory.ErrBudget) {
		p.floor = &mem
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	if cfg.Prefix == 0 {
		cfg.Prefix = max(48, 2*min(mem.Window, longestTried))
	}
	if p.prefix, err = prefixOf(cfg.Trace, cfg.Prefix); err != nil {
		return nil, err
	}
	// Windows longer than the first half of the prefix have the same speed on its second half.
	longest := max(longestRun(p.prefix)/2, 1)
	p.fits = min(mem.Window, longest)
	for _, k := range []int{0, 1, 2, 4, 8, 16, 32, longestTried, p.fits} {
		if k <= longest {
			p.windows = append(p.windows, k)
		}
	}
	slices.Sort(p.windows)
	p.windows = slices.Compact(p.windows)
	p.warm = p.windows[len(p.windows)-1]
	if longestRun(p.prefix) <= p.warm {
		p.warm = 0
	}
	return p, nil
}

// longestTried is the longest window of the grid, unless a longer prefix is asked for: beyond it a
// token costs more to simulate than it tells.
const longestTried = 64

// account is the memory of a window of k tokens.
func (p *planner) account(k int) (Memory, error) { return p.Model.Account(p.rows, k, p.hold) }

// enginesOf lists the engines of a device that bypass the page cache, in alphabetical order.
func enginesOf(d *devicemodels.Device) []string {
	var list []string
	for name, c := range d.Flash.Engines {
		if !c.Cached {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// prefixOf copies the first tokens of a trace into memory.
func prefixOf(src traces.Source, tokens int) (*traces.Memory, error) {
	m := &traces.Memory{Head: *src.Header()}
	for i := range min(tokens, src.Tokens()) {
		var t traces.Token
		if err := src.Token(i, &t); err != nil {
			return nil, fmt.Errorf("answers: token %d: %w", i, err)
		}
		m.List = append(m.List, t)
	}
	return m, nil
}

// longestRun is the largest number of tokens of one sequence.
func longestRun(m *traces.Memory) int {
	var sequences traces.Sequences
	longest, n := 0, 0
	for i := range m.List {
		if n++; sequences.Begins(m.List[i].Seq) {
			n = 1
		}
		longest = max(longest, n)
	}
	return longest
}

// simulate runs a setting and returns its speed.
func (p *planner) simulate(src traces.Source, d *devicemodels.Device, s Setting,
	tokens int) (document.Estimate, *traces.Run, error) {
	if err := p.ctx.Err(); err != nil {
		return document.Estimate{}, nil, err
	}
	run, err := sim.Run(p.ctx, src, sim.Config{
		Policy: policy.SlidingWindow(s.Window), Engine: s.Engine, Parallel: s.Parallel,
		Predicted:     p.Predicted,
		PredictorRank: p.PredictorRank, MaxTokens: tokens,
		Layout: layout.Options{Coalesce: true, MaxRequest: s.Chunk}, Device: d, Backend: p.Backend,
	})
	if err != nil {
		return document.Estimate{}, nil, err
	}
	rate := run.Meta.Prediction.Estimate(speed(run, p.warm), run.Meta.Totals.TokensPerS)
	return rate, run, nil
}

// speed is the rate of the tokens after the first warm of each sequence, or of all tokens if no
// sequence has more.
func speed(run *traces.Run, warm int) float64 {
	var sequences traces.Sequences
	tokens, wall, index := 0, units.Nanos(0), 0
	for i := range run.Rows {
		r := &run.Rows[i]
		switch {
		case sequences.Begins(r.Seq):
			index = 0
		case r.Token != run.Rows[i-1].Token:
			index++
		}
		if index < warm {
			continue
		}
		if i == 0 || r.Token != run.Rows[i-1].Token {
			tokens++
		}
		wall += r.Dur
	}
	if tokens == 0 || wall <= 0 {
		return run.Meta.Totals.TokensPerS
	}
	return float64(tokens) / wall.Seconds()
}

// grid simulates all settings whose window fits. Longer windows are simulated with the best reads
// of the longest window that fits.
func (p *planner) grid() ([]Point, error) {
	var reads []Setting
	for _, engine := range p.Engines {
		for _, parallel := range p.Parallel {
			for _, chunk := range p.Chunks {
				reads = append(reads, Setting{Engine: engine, Parallel: parallel, Chunk: chunk})
			}
		}
	}
	var points []Point
	total := 0
	for _, k := range p.windows {
		if total++; k <= p.fits {
			total += len(reads) - 1
		}
	}
	progress := p.Tell.Stage("grid")
	for _, k := range p.windows {
		tried := reads
		if k > p.fits {
			best := fastest(points)
			tried = []Setting{best.Setting}
		}
		for _, s := range tried {
			s.Window = k
			pt, err := p.point(s)
			if err != nil {
				return nil, err
			}
			points = append(points, pt)
			progress(len(points), total)
		}
	}
	return points, nil
}

// point simulates a setting on the prefix.
func (p *planner) point(s Setting) (Point, error) {
	rate, run, err := p.simulate(p.prefix, p.Device, s, 0)
	if err != nil {
		return Point{}, err
	}
	account, err := p.account(s.Window)
	if err != nil {
		return Point{}, err
	}
	pt := Point{Setting: s, Memory: account.Total, TokensPerS: rate.Value, Estimate: rate}
	pt.Fits = pt.Memory <= p.Budget
	if p.Energy != nil {
		if joules, ok := p.Energy(run); ok {
			pt.Joules = &joules
		}
	}
	return pt, nil
}

// better reports whether a is preferred to b: it is faster or, if lean, has less memory. If they
// are equal, the other of the two criteria decides, then fewer reads in flight, then the order of
// the grid.
func better(a, b *Point, lean bool) bool {
	faster, slower := a.TokensPerS > b.TokensPerS*(1+negligible),
		b.TokensPerS > a.TokensPerS*(1+negligible)
	if lean {
		return a.Memory < b.Memory || a.Memory == b.Memory && (faster || !slower &&
			a.Parallel < b.Parallel)
	}
	return faster || !slower && (a.Memory < b.Memory || a.Memory == b.Memory &&
		a.Parallel < b.Parallel)
}

// fastest returns the best of the points that fit.
func fastest(points []Point) *Point {
	var best *Point
	for i := range points {
		if pt := &points[i]; pt.Fits && (best == nil || better(pt, best, false)) {
			best = pt
		}
	}
	return best
}

// winners simulates the best setting of each of the fastest windows that fit, on the whole trace,
// and orders them by the result.
func (p *planner) winners(points []Point) ([]Winner, error) {
	left := slices.Clone(points)
	var list []Winner
	progress := p.Tell.Stage("winners")
	for len(list) < p.Winners {
		best := fastest(left)
		if best == nil {
			break
		}
		w := Winner{Point: *best}
		for i := range left {
			left[i].Fits = left[i].Fits && left[i].Window != w.Window // one of each window
		}
		rate, run, err := p.simulate(p.Trace, p.Device, w.Setting, p.MaxTokens)
		if err != nil {
			return nil, err
		}
		w.TokensPerS, w.Estimate = rate.Value, rate
		w.Run, w.Prediction = run.Meta.Totals.TokensPerS, run.Meta.Prediction
		if len(list) == 0 {
			p.warnings = append(p.warnings, run.Meta.Warnings...)
		}
		list = append(list, w)
		progress(len(list), p.Winners)
	}
	slices.SortStableFunc(list, func(a, b Winner) int {
		switch {
		case better(&a.Point, &b.Point, false):
			return -1
		case better(&b.Point, &a.Point, false):
			return 1
		}
		return 0
	})
	return list, nil
}

// pareto keeps the points that no other point dominates in memory, speed and, if all have them,
// joules. It keeps one of several equal points, and sorts by memory.
func pareto(points []Point) []Point {
	energy := !slices.ContainsFunc(points, func(p Point) bool { return p.Joules == nil })
	dominates := func(a, b *Point) bool {
		no := a.Memory > b.Memory || a.TokensPerS < b.TokensPerS || energy && *a.Joules > *b.Joules
		yes := a.Memory < b.Memory || a.TokensPerS > b.TokensPerS || energy && *a.Joules < *b.Joules
		return !no && yes
	}
	same := func(a, b *Point) bool {
		return a.Memory == b.Memory && a.TokensPerS == b.TokensPerS &&
			(!energy || *a.Joules == *b.Joules)
	}
	front := []Point{}
	for i := range points {
		beaten := false
		for j := range points {
			beaten = beaten || dominates(&points[j], &points[i]) || j < i &&
				same(&points[j], &points[i])
		}
		if !beaten {
			front = append(front, points[i])
		}
	}
	slices.SortStableFunc(front, func(a, b Point) int {
		return int(min(max(a.Memory-b.Memory, -1),
			1))
	})
	return front
}
