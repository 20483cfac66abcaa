package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
)

// A reference cell near the middle of the grid is repeated before the first cell, after every
// referenceEvery cells, and after the last.
const (
	referenceChunk = 16 * units.KiB
	referenceDepth = 16
	referenceEvery = 4
	// firstShare of the flash's time is for the first reference cell.
	firstShare = 1.0 / 40
	// costShare of the flash's time is for what a batch costs.
	costShare = 0.04
	costDepth = 32
	// provingReads are the first reads of all.
	provingReads = 32
)

// grid is what measureFlash found.
type grid struct {
	modes     []flashio.Mode // in order of Config.Engines
	cells     []result       // in order of time, later sorted
	reference []units.Rate   // of the reference cell, in order of time
	limit     *flash.Limit
	extra     units.Nanos // of a read that is spread over the file
	costs     map[flashio.Engine]units.Nanos
	mapped    *mappedFound // nil = not asked for
	uncounted bool         // nobody counts the bytes that storage served
	skipped   int          // cells left out because the budget was used up
	held      int          // cells left out because a limit makes them too slow
	note      string       // target.note
	path      string
	emulated  bool
}

// measureFlash measures what cfg asks for on t until end. A cell that does not get its turn before
// end is left out.
func measureFlash(ctx context.Context, cfg Config, m *machine, t *target, end units.Nanos) (g *grid,
	err error) {
	if cfg.Open != nil {
		own := *m
		own.open = func(_ string, opt flashio.Options) (flashio.Reader, error) {
			return cfg.Open(opt.Parallel, opt.Engine)
		}
		m = &own
	}
	g = &grid{note: t.note, path: cfg.Path, emulated: cfg.Open != nil,
		costs: map[flashio.Engine]units.Nanos{}}
	if g.modes, err = inspect(cfg, m, t); err != nil {
		return nil, err
	}
	s, err := openSamples(cfg, g.header(cfg, m, t))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	p := newProber(cfg, m, t, alignment(g.modes), s)
	if p.slab == nil {
		return nil, fmt.Errorf("probe: no memory for a buffer of %v: %w", slabSize,
			flashio.ErrEnvironment)
	}
	// fails only for memory that is not a whole buffer
	defer func() { _ = flashio.FreeBuffer(p.slab) }()
	return g, g.measure(ctx, cfg, p, end)
}

// header describes the measurement for the samples.
func (g *grid) header(cfg Config, m *machine, t *target) sampleHeader {
	h := sampleHeader{
		Version: samplesVersion, Host: m.hostname, Path: cfg.Path, Size: t.size,
		Mode: modeText(g.modes), Engines: cfg.Engines,
		Chunks: cfg.Chunks, Depths: cfg.Depths, Span: cfg.Span, Seed: cfg.Seed,
	}
	if info, err := os.Stat(t.path); err == nil && t.temporary == nil {
		h.Changed = info.ModTime().UnixNano()
	}
	return h
}

// measure is the whole probe of the flash, in order: is it flash, is it limited, does it matter how
// far reads are spread, then the cells, what a batch costs, and the path of mapped files.
func (g *grid) measure(ctx context.Context, cfg Config, p *prober, end units.Nanos) error {
	plan := newPlan(cfg, p, alignment(g.modes))
	now := p.m.now()
	total := end - now
	share := func(part float64, most units.Nanos) units.Nanos {
		return min(units.Nanos(part*float64(total)), most)
	}

	if err := g.prove(p, plan); err != nil {
		return err
	}
	last := end
	if cfg.Mapped {
		end -= share(mappedShare, mappedMost)
	}
	fastest := plan.engines[len(plan.engines)-1]
	large := plan.chunks[0]
	for _, c := range plan.chunks {
		if c <= largeLook {
			large = c
		}
	}
	var err error
	if g.limit, err = p.findLimit(ctx, fastest, plan.chunks[0], large, share(limitShare,
		limitMost)); err != nil {
		return err
	}
	p.limit = g.limit
	if first := share(firstShare, units.Second); p.holds(plan.reference, first) {
		plan.reference.Chunk, plan.reference.Depth = plan.chunks[0], plan.depths[0]
	}
	if err := g.refer(ctx, p, plan, p.m.now()+share(firstShare, units.Second)); err != nil {
		return err
	}
	if g.extra, err = p.spanEffect(ctx, fastest, plan.chunks[0], share(spanShare,
		spanMost)); err != nil {
		return err
	}
	if g.extra > 0 {
		p.span = 0
	}
	costs := share(costShare, units.Second) * units.Nanos(len(plan.engines))
	step := progress(cfg, "flash")
	if plan.exact {
		err = g.all(ctx, p, plan, end-costs, step)
	} else {
		err = g.adapt(ctx, p, plan, end-costs, total, step)
	}
	if err != nil {
		return err
	}
	if err := g.batchCosts(ctx, p, plan, end); err != nil || !cfg.Mapped {
		return err
	}
	return g.mappedFile(ctx, p, cfg.Seed, last)
}

// plan says what may be measured.
type plan struct {
	engines   []flashio.Engine
	chunks    []units.Bytes
	depths    []int
	exact     bool // every combination, and no other
	reference loop
	seed      uint64
}

// Bounds of what is searched: reads in flight beyond mostInFlight bytes tell nothing that fewer do
// not.
const (
	leastSearched, mostSearched = 4 * units.KiB, units.MiB
	deepest                     = 256
	mostInFlight                = 16 * units.MiB
)

func newPlan(cfg Config, p *prober, align units.Bytes) *plan {
	pl := &plan{engines: cfg.Engines, chunks: cfg.Chunks, depths: cfg.Depths, seed: cfg.Seed}
	pl.exact = len(pl.chunks) > 0 && len(pl.depths) > 0
	if len(pl.chunks) == 0 {
		for c := leastSearched; c <= mostSearched; c *= 2 {
			if c%align == 0 && 8*c <= p.t.size {
				pl.chunks = append(pl.chunks, c)
			}
		}
	}
	if len(pl.chunks) == 0 { // a tiny file, or blocks larger than all of them
		pl.chunks = []units.Bytes{align}
	}
	if len(pl.depths) == 0 {
		for d := 1; d <= deepest; d *= 2 {
			pl.depths = append(pl.depths, d)
		}
	}
	pl.reference = loop{Kind: kindReference, Engine: pl.engines[0], Chunk: nearest(pl.chunks,
		referenceChunk), Depth: nearest(pl.depths, referenceDepth)}
	return pl
}

// cells returns every combination.
func (pl *plan) cells() []loop {
	var cells []loop
	for _, engine := range pl.engines {
		for _, chunk := range pl.chunks {
			for _, depth := range pl.depths {
				if pl.exact || chunk*units.Bytes(depth) <= mostInFlight {
					cells = append(cells, loop{Kind: kindCell, Engine: engine, Chunk: chunk,
						Depth: depth})
				}
			}
		}
	}
	return cells
}

// schedule returns the loops of an exact grid in the order of measuring: in a random order, so that
// a drift does not look like an effect of size or depth, with the reference cell between. The first
// reference cell was measured before.
func (pl *plan) schedule() []loop {
	cells := pl.cells()
	rng.Stream(pl.seed, "probe/order").Shuffle(len(cells), func(i, j int) {
		cells[i],
			cells[j] = cells[j], cells[i]
	})
	var order []loop
	for i, c := range cells {
		order = append(order, c)
		if (i+1)%referenceEvery == 0 && i+1 < len(cells) {
			order = append(order, pl.reference)
		}
	}
	return append(order, pl.reference)
}

// all measures an exact grid.
func (g *grid) all(ctx context.Context, p *prober, pl *plan, end units.Nanos, step func(done,
	total int)) error {
	loops := pl.schedule()
	for i, l := range loops {
		now := p.m.now()
		if now >= end {
			g.skipped += len(loops) - i
			break
		}
		// What one loop does not use is for the others.
		share := (end - now) / units.Nanos(len(loops)-i)
		switch {
		case p.holds(l, share):
			g.held++
		case l.Kind == kindReference:
			if err := g.refer(ctx, p, pl, now+share); err != nil {
				return err
			}
		default:
			if err := g.cell(ctx, p, l, min(now+share, end)); err != nil {
				return err
			}
		}
		step(i+1, len(loops))
	}
	return nil
}

// prove reads a little and refuses a file that a cache serves: nothing after it can be trusted
// more.
func (g *grid) prove(p *prober, pl *plan) (err error) {
	l := loop{Engine: pl.engines[0], Chunk: pl.chunks[0], Depth: pl.depths[0]}
	r, err := p.open(l.Engine, l.Depth)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	served, counted := p.m.readBytes()
	n := min(provingReads, p.most(l.Chunk))
	if _, err := p.batch(r, l, n); err != nil {
		return err
	}
	after, _ := p.m.readBytes()
	if why := judge(units.Bytes(after-served), units.Bytes(n)*l.Chunk); counted && !g.emulated &&
		why != "" {
		return fmt.Errorf("probe: %s: %w: %s; %s", g.path, flashio.ErrEnvironment, why, cacheRemedy)
	}
	return nil
}

// refer measures the reference cell.
func (g *grid) refer(ctx context.Context, p *prober, pl *plan, end units.Nanos) error {
	r, err := p.measure(ctx, pl.reference, end)
	if err != nil {
		return err
	}
	g.uncounted = g.uncounted || !r.Counted
	g.reference = append(g.reference, r.Rate)
	return nil
}

// cell measures a cell.
func (g *grid) cell(ctx context.Context, p *prober, l loop, end units.Nanos) error {
	r, err := p.measure(ctx, l, end)
	if err != nil {
		return err
	}
	g.uncounted = g.uncounted || !r.Counted
	g.cells = append(g.cells, r)
	return nil
}

// batchCosts measures what a batch costs with every engine, in the time that is left.
func (g *grid) batchCosts(ctx context.Context, p *prober, pl *plan, end units.Nanos) error {
	depth := min(pl.depths[len(pl.depths)-1], costDepth)
	for i, engine := range pl.engines {
		if cost, ok := p.samples.cost(engine); ok {
			g.costs[engine] = cost
			continue
		}
		now := p.m.now()
		if now >= end {
			return nil
		}
		share := min((end-now)/units.Nanos(len(pl.engines)-i), units.Second)
		cost, err := p.batchCost(ctx, engine, pl.chunks[0], depth, now+share)
		if err != nil {
			return err
		}
		g.costs[engine] = cost
		if err := p.samples.batchCost(sampleCost{engine, cost}); err != nil {
			return err
		}
	}
	return nil
}

// nearest returns wish if it is in sorted, else the first larger value, else the last.
func nearest[T units.Bytes | int](sorted []T, wish T) T {
	for _, v := range sorted {
		if v >= wish {
			return v
		}
	}
	return sorted[len(sorted)-1]
}

func byEngineChunkDepth(a, b devicemodels.Cell) int {
	return cmp.Or(cmp.Compare(a.Engine, b.Engine), cmp.Compare(a.Chunk, b.Chunk),
		cmp.Compare(a.Depth, b.Depth))
}
