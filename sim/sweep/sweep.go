package sweep

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/engine/layout"
	"github.com/windrow-sim/windrow/engine/policy"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/synth"
)

const (
	// auditPercent is how far a table may be off on the audited batches before a configuration is timed as events.
	auditPercent = 0.7
	// passMemory bounds the state of one pass; a sweep that needs more goes through the trace again.
	passMemory = 512 << 20
	// passWork bounds its configurations times cells, so that an interruption loses minutes at most.
	passWork = 1 << 29
	// longestWindow bounds the history of masks.
	longestWindow = 4096
)

// Trace is what a sweep runs on: a Source, or else a synthetic trace that is made anew for every pass.
type Trace struct {
	Source traces.Source
	Synth  synth.Options
	head   traces.Header
	tokens int
}

// FromSource returns the first most tokens of a trace; 0 = all.
func FromSource(src traces.Source, most int) *Trace {
	t := &Trace{Source: src, head: *src.Header(), tokens: src.Tokens()}
	if most > 0 {
		t.tokens = min(most, t.tokens)
	}
	return t
}

// FromSynth returns the trace that options describe.
func FromSynth(opt synth.Options, most int) (*Trace, error) {
	head, err := synth.HeaderOf(opt)
	if err != nil {
		return nil, err
	}
	t := &Trace{Synth: opt, head: head, tokens: opt.Tokens * max(opt.Sequences, 1)}
	if most > 0 {
		t.tokens = min(most, t.tokens)
	}
	return t, nil
}

// Header describes the trace.
func (t *Trace) Header() *traces.Header { return &t.head }

// Tokens is the number of tokens that are simulated.
func (t *Trace) Tokens() int { return t.tokens }

// errEnough ends a synthetic trace before its last token.
var errEnough = errors.New("sweep: enough tokens")

// each hands every token to emit, which may keep the masks.
func (t *Trace) each(ctx context.Context, predicted bool, emit func(*traces.Token) error) error {
	if t.Source != nil {
		var token traces.Token
		for i := range t.tokens {
			if err := t.Source.Token(i, &token); err != nil {
				return err
			}
			if err := emit(&token); err != nil {
				return err
			}
		}
		return nil
	}
	opt, done := t.Synth, 0
	opt.Predicted = predicted
	_, err := synth.Generate(opt, func(token *traces.Token) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := emit(token); err != nil {
			return err
		}
		if done++; done == t.tokens {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// Options say how to run.
type Options struct {
	Workers int // 0 = one for each processor
	// Base is the number of the first of the configurations in the whole sweep, for their results.
	Base int
	// First is the configuration to begin with, counted from the first; what comes before is done already.
	First int
	// Progress, if not nil, is called with the number of configurations done and of all; configurations that are timed twice count twice.
	Progress func(done, total int)
}

// Run simulates configurations on a trace and hands the results to emit in order. Checked configurations are changed in place: what
// their zero values stand for is filled in. Errors about a configuration are of kind sim.ErrConfig.
func Run(ctx context.Context, t *Trace, configs []sim.Config, opt Options, emit func(*Result) error) error {
	s := &sweeper{trace: t, configs: configs, opt: opt, tables: map[tableKey]*Table{}, done: opt.First, total: len(configs)}
	if s.opt.Workers <= 0 {
		s.opt.Workers = runtime.GOMAXPROCS(0)
	}
	if err := s.check(); err != nil {
		return err
	}
	for from := opt.First; from < len(configs); {
		to := s.fits(from)
		if err := s.segment(ctx, from, to, emit); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// sweeper is the state of one Run.
type sweeper struct {
	trace   *Trace
	configs []sim.Config
	opt     Options
	tables  map[tableKey]*Table
	done    int // configurations, for progress
	total   int
}

// tableKey is all that a table depends on; a trace has one geometry.
type tableKey struct {
	device   *devicemodels.Device
	engine   string
	parallel int
	align    units.Bytes
}

func (s *sweeper) check() error {
	head := s.trace.Header()
	if head.Layers <= 0 || head.Units <= 0 {
		return fmt.Errorf("sweep: header: %d layers of %d units: nothing to simulate", head.Layers, head.Units)
	}
	for i := range s.configs {
		cfg := &s.configs[i]
		if cfg.Geometry.Units == 0 {
			cfg.Geometry = s.configs[0].Geometry
		}
		if err := cfg.Check(head); err != nil {
			return err
		}
		if first := &s.configs[0].Geometry; !slices.Equal(cfg.Geometry.Base, first.Base) || cfg.Geometry.Stride != first.Stride || cfg.Geometry.Size != first.Size {
			return fmt.Errorf("sweep: configurations %d and 0 are of different images; sweep each of them: %w", i, sim.ErrConfig)
		}
		if _, err := layout.NewPlanner(cfg.Geometry, cfg.Layout); err != nil {
			return fmt.Errorf("sweep: %w: %w", err, sim.ErrConfig)
		}
		spec := cfg.Residency()
		switch {
		case spec.Window > longestWindow:
			return fmt.Errorf("sweep: a window of %d tokens: at most %d: %w", spec.Window, longestWindow, sim.ErrConfig)
		case s.trace.Source == nil && (spec.Kind == policy.KindBelady || spec.Kind == policy.KindHot):
			return fmt.Errorf("sweep: policy %s looks through the trace beforehand; write it with \"windrow synth trace\" and name the file: %w", spec, sim.ErrConfig)
		}
		if !Tabular(cfg) {
			continue
		}
		key := tableKey{cfg.Device, cfg.Engine, cfg.Parallel, cfg.Layout.Align}
		if s.tables[key] == nil {
			if _, err := cfg.NewStation(0); err != nil {
				return err
			}
			s.tables[key] = NewTable(*cfg)
		}
	}
	return nil
}

// fits returns the end of the configurations from one on that fit into one pass.
func (s *sweeper) fits(from int) int {
	head := s.trace.Header()
	cells := head.Layers * blockTokens
	perPolicy := head.Layers * head.Units * 8 // slots; what other policies keep is of the same order
	used := map[setKey]bool{}
	memory, work := 0, 0
	for i := from; i < len(s.configs); i++ {
		cfg := &s.configs[i]
		if key := (setKey{cfg.Predicted, cfg.Residency()}); !used[key] {
			used[key] = true
			memory += perPolicy + cells*100
			if !plainWindow(key.spec) {
				memory += perPolicy
			}
		}
		memory += cells * 24
		work += s.trace.Tokens() * head.Layers
		if (memory > passMemory || work > passWork) && i > from {
			return i
		}
	}
	return len(s.configs)
}

// setKey is what decisions depend on.
type setKey struct {
	predicted bool
	spec      policy.Spec
}

// plainWindow reports whether a policy's decisions follow from the history of masks.
func plainWindow(s policy.Spec) bool {
	return s.Kind == policy.KindNone || s.Kind == policy.KindWindow && s.Capacity == 0
}

// segment simulates configurations from one to another: in one pass, and in a second those whose tables are off.
func (s *sweeper) segment(ctx context.Context, from, to int, emit func(*Result) error) error {
	var all []int
	for i := from; i < to; i++ {
		all = append(all, i)
	}
	runs, err := s.pass(ctx, all, true)
	if err != nil {
		return err
	}
	var again []int
	for i, r := range runs {
		if r.table != nil && math.Abs(r.off()) > auditPercent {
			again = append(again, from+i)
		}
	}
	if len(again) > 0 {
		s.total += len(again)
		exact, err := s.pass(ctx, again, false)
		if err != nil {
			return err
		}
		for i, r := range exact {
			runs[again[i]-from] = r
		}
	}
	unit := s.trace.Header().UnitBytes
	for i, r := range runs {
		result := r.result(s.opt.Base+from+i, unit)
		if err := emit(&result); err != nil {
			return err
		}
	}
	return nil
}

// pass simulates some configurations in one pass.
func (s *sweeper) pass(ctx context.Context, indices []int, tables bool) ([]*running, error) {
	p := newPass(s.trace, s.opt.Workers)
	for _, i := range indices {
		cfg := &s.configs[i]
		var table *Table
		if tables && Tabular(cfg) {
			table = s.tables[tableKey{cfg.Device, cfg.Engine, cfg.Parallel, cfg.Layout.Align}]
		}
		if err := p.add(s.trace, cfg, table); err != nil {
			return nil, err
		}
	}
	p.ready()
	report := func(tokens int) {
		if s.opt.Progress != nil {
			s.opt.Progress(s.done+len(indices)*tokens/max(p.tokens, 1), s.total)
		}
	}
	report(0)
	err := p.run(ctx, s.trace, report)
	s.done += len(indices)
	return p.configs, err
}

func newPass(t *Trace, workers int) *pass {
	head := t.Header()
	p := &pass{head: head, tokens: t.Tokens(), block: blockTokens, workers: workers, nothing: make([]uint64, head.Words())}
	p.list = make([]traces.Token, p.block)
	p.starts = make([]int, p.block+1)
	p.stride = max(p.tokens*head.Layers/auditCells, 1)
	for common(p.stride, head.Layers) > 1 { // every layer has its turn
		p.stride++
	}
	return p
}

func common(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// add puts a configuration into the pass, sharing what others have.
func (p *pass) add(t *Trace, cfg *sim.Config, table *Table) error {
	d, err := p.decisions(t, cfg)
	if err != nil {
		return err
	}
	cells := p.head.Layers * p.block
	r := &running{cfg: cfg, table: table, decisions: d, host: p.hostOf(d, cfg), audits: make([]audit, p.head.Layers)}
	r.io, r.sojourn = make([]units.Nanos, cells), make([]units.Nanos, cells)
	if r.requests, r.chunk, err = p.chunkOf(d, cfg); err != nil {
		return err
	}
	if table != nil {
		r.chunk.tables = append(r.chunk.tables, r)
	} else {
		if r.station, err = cfg.NewStation(p.head.Seed); err != nil {
			return err
		}
		r.chunk.events, r.moved = true, make([]units.Bytes, cells)
		if r.chunk.reads == nil {
			r.chunk.reads = make([][]flash.Read, cells)
		}
	}
	p.configs = append(p.configs, r)
	return nil
}

// decisions finds or makes those of a configuration.
func (p *pass) decisions(t *Trace, cfg *sim.Config) (*decisions, error) {
	var set *masks
	for _, g := range p.sets {
		if g.predicted == cfg.Predicted {
			set = g
		}
	}
	if set == nil {
		set = &masks{predicted: cfg.Predicted, need: make([]int, p.head.Layers*p.block)}
		p.sets = append(p.sets, set)
	}
	spec := cfg.Residency()
	for _, list := range [][]*decisions{set.windows, set.others} {
		for _, d := range list {
			if d.spec == spec {
				return d, nil
			}
		}
	}
	d := &decisions{spec: spec, work: make([]sim.Work, p.head.Layers*p.block)}
	if plainWindow(spec) {
		d.k = spec.Window
		for range p.head.Layers {
			d.caches = append(d.caches, sim.NewCache(p.head.Units))
		}
		set.windows = append(set.windows, d)
		return d, nil
	}
	policies, err := p.policies(t, cfg)
	if err != nil {
		return nil, err
	}
	for _, each := range policies {
		d.layers = append(d.layers, sim.NewLayer(each, p.head.Units))
	}
	set.others = append(set.others, d)
	return d, nil
}

// policies builds those of every layer; a synthetic trace cannot be looked through beforehand.
func (p *pass) policies(t *Trace, cfg *sim.Config) ([]policy.Policy, error) {
	if t.Source != nil {
		limited := *cfg
		limited.MaxTokens = t.Tokens()
		return limited.Policies(t.Source)
	}
	return cfg.Policies(&traces.Memory{Head: t.head})
}

func (p *pass) hostOf(d *decisions, cfg *sim.Config) *hostTimes {
	for _, h := range d.hosts {
		if h.device == cfg.Device && h.rank == cfg.PredictorRank {
			return h
		}
	}
	h := &hostTimes{device: cfg.Device, rank: cfg.PredictorRank, host: sim.NewHost(cfg.Device, p.head, cfg.PredictorRank)}
	h.cells = make([]sim.LayerTimes, p.head.Layers*p.block)
	h.sums, h.last = make([]sim.LayerTimes, p.block), make([]sim.TokenTimes, p.block)
	d.hosts = append(d.hosts, h)
	return h
}

func (p *pass) chunkOf(d *decisions, cfg *sim.Config) (*requests, *chunk, error) {
	options := cfg.Layout
	options.MaxRequest = 0
	at := slices.IndexFunc(d.layouts, func(q *requests) bool { return q.options == options })
	if at < 0 {
		planner, err := layout.NewPlanner(cfg.Geometry, options)
		if err != nil {
			return nil, nil, err
		}
		at = len(d.layouts)
		d.layouts = append(d.layouts, &requests{planner: planner, options: options, bytes: make([]units.Bytes, p.head.Layers*p.block)})
	}
	q, most := d.layouts[at], int64(cfg.Layout.MaxRequest)
	for _, c := range q.chunks {
		if c.most == most {
			return q, c, nil
		}
	}
	c := &chunk{most: most, count: make([]int32, p.head.Layers*p.block)}
	q.chunks = append(q.chunks, c)
	return q, c, nil
}

// ready makes the histories, now that the longest window is known, and puts windows in order.
func (p *pass) ready() {
	for _, g := range p.sets {
		slices.SortFunc(g.windows, func(a, b *decisions) int { return a.k - b.k })
		longest := 0
		for _, d := range g.windows {
			longest = max(longest, d.k)
		}
		g.history = newHistory(p.head.Layers, p.head.Words(), longest, p.block)
	}
}
