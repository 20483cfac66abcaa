package sweep

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/whatif"
)

const (
	// auditPercent is the largest error of a table on the audited batches. A configuration above it
	// is timed as events.
	auditPercent = 0.7
	// passMemory bounds the state of one pass. A sweep that needs more reads the trace again.
	passMemory = 512 << 20
	// passWork bounds the configurations times cells of a pass, so that an interruption loses about
	// a minute. A configuration timed as events counts as eventWork configurations timed by table.
	// Reading or generating the trace costs as much as leastShared configurations: every pass may
	// have so many.
	passWork    = 1 << 26
	eventWork   = 100
	leastShared = 128
	// headroomMemory bounds what Headroom takes for one policy, which no second pass can divide.
	headroomMemory = 4 << 30
	// longestWindow bounds the history of masks.
	longestWindow = 4096
)

// Options are the settings of a Run.
type Options struct {
	Workers int // 0 = one for each processor
	// Base is the number in the whole sweep of the first of the configurations, for Result.Index.
	Base int
	// First is the index of the configuration to begin with. Those before it are done already.
	First int
	// Headroom adds the fewest loads of any policy to every result. It takes one more pass over the
	// trace, and 8 bytes for each token, layer and policy.
	Headroom bool
	// Progress, if not nil, is called with the number of results that were emitted, of all, and
	// with how far the pass is that makes the next ones: 0 to 1, 0 where none runs.
	Progress func(done, total int, pass float64)
}

// Config is one configuration of a sweep: the simulation, and the variant of the trace.
type Config struct {
	sim.Config
	Variant
}

// Variant changes a trace. The zero value leaves it as it is.
type Variant struct {
	WhatIf whatif.Options // see Trace.Under
	Batch  int            // sequences per step, see Trace.InStep; 0 = token by token
}

// Run simulates configurations on a trace and calls emit with the results in order. Errors about a
// configuration are of kind sim.ErrConfig, and come before the first result.
func Run(ctx context.Context, t *Trace, configs Configurations, opt Options,
	emit func(*Result) error) error {
	return newSweeper(t, configs, opt).run(ctx, emit)
}

func newSweeper(t *Trace, configs Configurations, opt Options) *sweeper {
	s := &sweeper{
		trace: t, memory: passMemory, variants: map[Variant]*Trace{{}: t}, configs: configs,
		opt:    opt,
		tables: map[tableKey]*Table{}, least: map[leastKey]int64{}, done: opt.First,
	}
	if s.opt.Workers <= 0 {
		s.opt.Workers = runtime.GOMAXPROCS(0)
	}
	return s
}

func (s *sweeper) run(ctx context.Context, emit func(*Result) error) error {
	if err := s.check(ctx); err != nil {
		return err
	}
	for from := s.opt.First; from < s.configs.Len(); {
		configs, err := s.fitting(from)
		if err != nil {
			return err
		}
		if err := s.segment(ctx, from, configs, emit); err != nil {
			return err
		}
		from += len(configs)
		s.forget(from)
	}
	return nil
}

// mostKept bounds the variants of the trace that a sweep keeps for later passes, and keptShare the
// tables, as a share of the memory of a pass. One that was dropped is made again.
const (
	mostKept  = 1024
	keptShare = 4
)

// forget drops what the passes before needed, so that the number of configurations takes no memory.
// next is the configuration that comes next.
func (s *sweeper) forget(next int) {
	kept := 0
	for _, t := range s.tables {
		kept += t.bytes()
	}
	if kept > s.memory/keptShare {
		clear(s.tables)
	}
	s.fewVariants()
	if next == s.configs.Len() {
		return
	}
	cfg := s.configs.At(next)
	for key := range s.least {
		if key.variant != cfg.Variant || key.set != (setKey{cfg.Predicted, cfg.Policy}) {
			delete(s.least, key)
		}
	}
}

// fewVariants drops the variants of the trace when there are many.
func (s *sweeper) fewVariants() {
	if len(s.variants) > mostKept {
		s.variants = map[Variant]*Trace{{}: s.trace}
	}
}

// sweeper is the state of one Run.
type sweeper struct {
	trace    *Trace
	variants map[Variant]*Trace
	configs  Configurations
	geometry layout.Geometry // of all of them
	opt      Options
	tables   map[tableKey]*Table
	least    map[leastKey]int64
	memory   int // bytes of a pass, as load estimates them
	done     int // results emitted
}

// tableKey holds everything that a table depends on. All configurations have one geometry.
type tableKey struct {
	device   *devicemodels.Device
	engine   string
	parallel int
	align    units.Bytes
}

// check checks the configurations that are not done yet, and makes their variants and tables.
func (s *sweeper) check(ctx context.Context) error {
	head := s.trace.Header()
	if head.Layers <= 0 || head.Units <= 0 {
		return fmt.Errorf("sweep: header: %d layers of %d units: nothing to simulate", head.Layers,
			head.Units)
	}
	least := headroomBytes(head, s.trace.Tokens())
	if s.opt.Headroom && least > headroomMemory {
		return fmt.Errorf("sweep: headroom of %d tokens of %d layers takes %v of memory for each "+
			"policy; at most %v: take fewer tokens (max_tokens), or no headroom: %w",
			s.trace.Tokens(), head.Layers, least, units.Bytes(headroomMemory), sim.ErrConfig)
	}
	for i := s.opt.First; i < s.configs.Len(); i++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		cfg := s.configs.At(i)
		if err := s.checkOne(&cfg); err != nil {
			return err
		}
		s.fewVariants()
	}
	return nil
}

// config returns a configuration with its defaults.
func (s *sweeper) config(i int) (*Config, error) {
	cfg := s.configs.At(i)
	t, err := s.complete(&cfg)
	if err == nil {
		err = cfg.Check(t.Header())
	}
	return &cfg, err
}

// complete fills in the geometry, which is the first configuration's, and returns the variant.
func (s *sweeper) complete(cfg *Config) (*Trace, error) {
	if cfg.Geometry.Units == 0 {
		cfg.Geometry = s.geometry
	}
	return s.variant(cfg.Variant)
}

// checkOne checks a configuration. Its image must be that of the first one.
func (s *sweeper) checkOne(cfg *Config) error {
	t, err := s.complete(cfg)
	if err != nil {
		return err
	}
	if err := cfg.Refuse("sweep", limits(cfg.Batch > 0)...); err != nil {
		return err
	}
	if err := cfg.Check(t.Header()); err != nil {
		return err
	}
	first := &s.geometry
	if first.Units == 0 {
		*first = cfg.Geometry
	}
	if !slices.Equal(cfg.Geometry.Base, first.Base) || cfg.Geometry.Stride != first.Stride ||
		cfg.Geometry.Size != first.Size {
		return fmt.Errorf("sweep: configurations of different images; sweep each of them: %w",
			sim.ErrConfig)
	}
	if _, err := sim.NewMachine(&cfg.Config, t.Header(), sim.MachineOptions{}); err != nil {
		return err
	}
	spec := cfg.Policy
	switch {
	case spec.Window > longestWindow:
		return fmt.Errorf("sweep: a window of %d tokens: at most %d: %w", spec.Window,
			longestWindow, sim.ErrConfig)
	case s.trace.Source == nil && (spec.Kind == policy.KindBelady || spec.Kind == policy.KindHot):
		return fmt.Errorf("sweep: policy %s reads the whole trace first; write the trace with "+
			"\"windrow synth trace\" and name the file: %w", spec, sim.ErrConfig)
	}
	return nil
}

// table returns the table of a configuration, nil if it has none.
func (s *sweeper) table(cfg *sim.Config) *Table {
	if !Tabular(cfg) {
		return nil
	}
	key := tableKey{cfg.Device, cfg.Engine, cfg.Parallel, cfg.Layout.Align}
	if s.tables[key] == nil {
		s.tables[key] = NewTable(*cfg)
	}
	return s.tables[key]
}

// limits are the settings of a Config that are refused, token by token or in batches.
func limits(batched bool) []sim.Limit {
	list := []sim.Limit{
		{Setting: sim.SettingMaxTokens, Why: "all configurations of a sweep take the same tokens " +
			"for " +
			"all; leave it out"},
		{Setting: sim.SettingSchedule, Why: "a sweep reads on demand; simulate a schedule alone " +
			"(windrow sim)"},
	}
	if batched {
		list = append(list, sim.Limit{Setting: sim.SettingBackend,
			Why: "several tokens in a step " +
				"are not modelled on a GPU; sweep token by token"})
	}
	return list
}

// variant makes a variant of the trace, once.
func (s *sweeper) variant(v Variant) (t *Trace, err error) {
	if t := s.variants[v]; t != nil {
		return t, nil
	}
	if v.Batch == 0 {
		t, err = s.trace.Under(v.WhatIf)
	} else if t, err = s.variant(Variant{WhatIf: v.WhatIf}); err == nil {
		// all batches of a what-if share one stream
		t, err = t.InStep(v.Batch)
	}
	if err != nil {
		return nil, err
	}
	s.variants[v] = t
	return t, nil
}

// fitting returns the configurations from one on that fit into one pass, at least one. They are of
// one variant.
func (s *sweeper) fitting(from int) (configs []*Config, err error) {
	var l *load
	for i := from; i < s.configs.Len(); i++ {
		cfg, err := s.config(i)
		if err != nil {
			return nil, err
		}
		if l == nil {
			l = s.newLoad(s.variants[cfg.Variant].Tokens())
		} else if cfg.Variant != configs[0].Variant {
			break
		}
		if l.overfull(cfg, true) {
			break
		}
		configs = append(configs, cfg)
	}
	return configs, nil
}

// fit returns how many of some simulations of one variant fit into one pass as events, at least
// one.
func (s *sweeper) fit(runs []*simulation) int {
	l := s.newLoad(s.variants[runs[0].variant].Tokens())
	for n, r := range runs {
		if l.overfull(&Config{*r.cfg, r.variant}, false) {
			return n
		}
	}
	return len(runs)
}

// setKey holds everything that decisions depend on.
type setKey struct {
	predicted bool
	spec      policy.Spec
}

// segment simulates configurations in one pass, from being the number of the first, and those whose
// tables are off in further passes. It emits a result as soon as all results before it are emitted.
func (s *sweeper) segment(ctx context.Context, from int, configs []*Config,
	emit func(*Result) error) error {
	runs, err := s.pass(ctx, configs, true)
	if err != nil {
		return err
	}
	if s.opt.Headroom {
		if err := s.bound(ctx, configs, runs); err != nil {
			return err
		}
	}
	var again []int // in runs
	for i, r := range runs {
		if r.table != nil && math.Abs(r.off()) > auditPercent {
			again = append(again, i)
		}
	}
	for next := 0; next < len(runs); {
		ready := len(runs)
		if len(again) > 0 {
			ready = again[0]
		}
		for ; next < ready; next++ {
			result := s.result(runs[next], from+next)
			if err := emit(&result); err != nil {
				return err
			}
			runs[next] = nil
			s.done++
			s.report(0)
		}
		if len(again) == 0 {
			return nil
		}
		var off []*simulation
		for _, i := range again {
			off = append(off, runs[i])
		}
		off = off[:s.fit(off)]
		var some []*Config
		for _, i := range again[:len(off)] {
			some = append(some, configs[i])
		}
		exact, err := s.pass(ctx, some, false)
		if err != nil {
			return err
		}
		for i, r := range exact {
			runs[again[i]] = r
		}
		again = again[len(exact):]
	}
	return nil
}

func (s *sweeper) result(r *simulation, at int) Result {
	v := r.variant
	result := r.result(s.opt.Base+at, s.variants[v])
	result.Batch = v.Batch
	if v.WhatIf.Share > 0 {
		result.Share = &v.WhatIf.Share
	}
	if v.WhatIf.Predictor {
		result.FalseNegatives, result.FalsePositives = &v.WhatIf.FalseNegatives,
			&v.WhatIf.FalsePositives
	}
	if s.opt.Headroom {
		least := s.least[leastKey{v, setKey{r.cfg.Predicted, r.decisions.spec}}]
		result.Least = &least
	}
	return result
}

// pass simulates some configurations of one variant in one pass.
func (s *sweeper) pass(ctx context.Context, configs []*Config, tables bool) ([]*simulation,
	error) {
	t := s.variants[configs[0].Variant]
	p := newPass(t, s.opt.Workers)
	for _, cfg := range configs {
		var table *Table
		if tables {
			table = s.table(&cfg.Config)
		}
		if err := p.add(t, &cfg.Config, table); err != nil {
			return nil, err
		}
		p.configs[len(p.configs)-1].variant = cfg.Variant
	}
	p.ready()
	report := func(tokens int) { s.report(float64(tokens) / float64(max(p.tokens, 1))) }
	report(0)
	err := p.run(ctx, t, report)
	p.release()
	return p.configs, err
}

func (s *sweeper) report(pass float64) {
	if s.opt.Progress != nil {
		s.opt.Progress(s.done, s.configs.Len(), pass)
	}
}

func newPass(t *Trace, workers int) *pass {
	head := t.Header()
	p := &pass{head: head, tokens: t.Tokens(), block: blockTokens, workers: workers,
		scratch: make([]worker, workers)}
	p.list = make([]traces.Token, p.block)
	p.starts, p.attended = make([]int, p.block+1), make([]int, p.block)
	p.stride = max(p.tokens*head.Layers/auditCells, 1)
	for common(p.stride, head.Layers) > 1 { // every layer is audited
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

// add puts a configuration into the pass. It shares decisions, host times and requests with others.
func (p *pass) add(t *Trace, cfg *sim.Config, table *Table) error {
	d, err := p.decisions(t, cfg)
	if err != nil {
		return err
	}
	cells := p.head.Layers * p.block
	r := &simulation{cfg: cfg, table: table, decisions: d, host: p.hostOf(d, cfg),
		audits: make([]audit, p.head.Layers)}
	r.io, r.sojourn = make([]units.Nanos, cells), make([]units.Nanos, cells)
	if r.requests, r.chunk, err = p.chunkOf(d, cfg); err != nil {
		return err
	}
	if table == nil || cfg.Backend != sim.OnHost {
		options := sim.MachineOptions{Seed: p.head.Seed}
		if table != nil {
			options.Table = table
		}
		if r.machine, err = sim.NewMachine(cfg, p.head, options); err != nil {
			return err
		}
	}
	if table != nil {
		r.chunk.tables = append(r.chunk.tables, r)
	} else {
		r.moved = make([]units.Bytes, cells)
		if d.loads == nil {
			d.loads = make(mask.Mask, cells*p.head.Words())
		}
	}
	p.configs = append(p.configs, r)
	return nil
}

// decisions finds or makes the decisions of a configuration.
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
	spec := cfg.Policy
	for _, list := range [][]*decisions{set.windows, set.others} {
		for _, d := range list {
			if d.spec == spec {
				return d, nil
			}
		}
	}
	d := &decisions{spec: spec, work: make([]sim.Work, p.head.Layers*p.block), kept: make([]int,
		p.head.Layers), most: make([]int, p.head.Layers)}
	if spec.PlainWindow() {
		d.k = spec.Window
		for range p.head.Layers {
			d.caches = append(d.caches, sim.NewCache(p.head.Units))
		}
		set.windows = append(set.windows, d)
		return d, nil
	}
	var err error
	if d.layers, err = p.layers(t, cfg); err != nil {
		return nil, err
	}
	set.others = append(set.others, d)
	return d, nil
}

// layers returns every layer with its policy. A synthetic trace cannot be read beforehand.
func (p *pass) layers(t *Trace, cfg *sim.Config) ([]*sim.Layer, error) {
	if t.Source != nil {
		limited := *cfg
		limited.MaxTokens = t.Tokens()
		return limited.Layers(t.Source)
	}
	return cfg.Layers(&traces.Memory{Head: t.head})
}

func (p *pass) hostOf(d *decisions, cfg *sim.Config) *hostTimes {
	for _, h := range d.hosts {
		if h.device == cfg.Device && h.rank == cfg.PredictorRank && h.backend == cfg.Backend &&
			h.observed == cfg.Observed {
			return h
		}
	}
	h := &hostTimes{device: cfg.Device, rank: cfg.PredictorRank, backend: cfg.Backend,
		observed: cfg.Observed, host: cfg.NewHost(p.head)}
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
		d.layouts = append(d.layouts, &requests{planner: planner, options: options,
			bytes: make([]units.Bytes, p.head.Layers*p.block)})
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

// ready makes the histories and sorts the windows. The longest window is known now.
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
