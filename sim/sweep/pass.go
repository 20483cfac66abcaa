package sweep

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
)

const (
	// blockTokens is the number of tokens that one layer is stepped through before the next layer.
	// The layer's row cache stays in the processor's cache meanwhile.
	blockTokens = 16
	// auditCells is the number of batches of a trace that audit a table.
	auditCells = 128
)

// pass simulates configurations in one pass over the trace, block of tokens by block. A cell is one
// layer of one token of a block, with the number layer*block+token. Workers compute the cells. The
// sums are then added up in order, so that the number of workers cannot change a result.
type pass struct {
	ctx     context.Context // of the run
	head    *traces.Header
	tokens  int // of the trace
	block   int
	workers int
	scratch []worker
	sets    []*masks
	configs []*simulation

	first    int // token of the block
	count    int // tokens in it
	list     []traces.Token
	starts   []int // of token first−1+i, the first token of its sequence
	attended []int // by token, the positions it attends to
	stride   int   // of the audit

	sequences traces.Sequences
}

// masks is one kind of masks, true or predicted, with all decisions on them.
type masks struct {
	predicted bool
	history   *history
	need      []int // by cell
	windows   []*decisions
	others    []*decisions // by other policies
}

// decisions are the decisions of one policy.
type decisions struct {
	spec     policy.Spec
	windowed              // of a window
	layers   []*sim.Layer // of another policy
	work     []sim.Work   // by cell
	// by cell, the mask of the units to read; only if a configuration is timed as events
	loads   mask.Mask
	layouts []*requests
	hosts   []*hostTimes

	hits, misses, evictions int64
	mostResident            int
	kept, most              []int // by layer, units kept between two tokens: now, and at most
}

// requests are the requests of one layout for the decisions of one policy.
type requests struct {
	planner *layout.Planner // of whole extents
	options layout.Options  // without the largest request
	bytes   []units.Bytes   // by cell
	sum     units.Bytes
	chunks  []*chunk
}

// chunk splits extents into reads.
type chunk struct {
	most   int64   // bytes of a read; 0 = no limit
	count  []int32 // reads by cell
	sum    int64
	tables []*simulation
}

// hostTimes are the times of one device's host for the decisions of one policy.
type hostTimes struct {
	device   *devicemodels.Device
	rank     int
	backend  sim.Backend
	observed bool
	host     *sim.Host
	cells    []sim.LayerTimes
	sums     []sim.LayerTimes // by token
	last     []sim.TokenTimes // by token
}

// simulation is one configuration in a pass.
type simulation struct {
	cfg       *sim.Config
	variant   Variant
	table     *Table       // nil if reads are events
	machine   *sim.Machine // of events, and of a GPU; nil if table and host times are enough
	decisions *decisions
	requests  *requests
	chunk     *chunk
	host      *hostTimes
	audits    []audit // by layer

	io, sojourn []units.Nanos // by cell
	moved       []units.Bytes // by cell, of events
	total       totals
}

// worker is the scratch memory of a goroutine.
type worker struct {
	covers covers
	dec    policy.Decision
	plan   layout.Plan
	reads  []flash.Read
}

// run simulates the trace and calls progress with the number of tokens done.
func (p *pass) run(ctx context.Context, t *Trace, progress func(done int)) error {
	p.ctx = ctx
	err := t.each(ctx, p.predicted(), func(token *traces.Token) error {
		start := p.starts[p.count]
		if p.sequences.Begins(token.Seq) {
			start = p.first + p.count
		}
		take(&p.list[p.count], token)
		p.attended[p.count] = t.positions(p.first+p.count, token)
		p.count++
		p.starts[p.count] = start
		if p.count < p.block && p.first+p.count < p.tokens {
			return nil
		}
		if err := p.step(ctx); err != nil {
			return err
		}
		p.first += p.count
		p.starts[0] = p.starts[p.count]
		p.count = 0
		progress(p.first)
		return nil
	})
	return err
}

// release frees all that a result is not made of. Results wait for those before them, some of which
// take another pass.
func (p *pass) release() {
	for _, r := range p.configs {
		r.machine, r.io, r.sojourn, r.moved, r.chunk.tables = nil, nil, nil, nil, nil
	}
	for _, g := range p.sets {
		for _, d := range slices.Concat(g.windows, g.others) {
			d.windowed, d.layers, d.work, d.loads = windowed{k: d.k}, nil, nil, nil
			for _, h := range d.hosts {
				h.cells, h.sums, h.last = nil, nil, nil
			}
			for _, q := range d.layouts {
				q.bytes = nil
				for _, c := range q.chunks {
					c.count = nil
				}
			}
		}
	}
}

// take copies a token. The masks are shared.
func take(to, from *traces.Token) {
	active, predicted := append(to.Active[:0], from.Active...), append(to.Predicted[:0],
		from.Predicted...)
	*to = *from
	to.Active, to.Predicted = active, predicted
}

// predicted reports whether the pass looks at predicted masks.
func (p *pass) predicted() bool {
	for _, g := range p.sets {
		if g.predicted {
			return true
		}
	}
	return false
}

// step simulates the block.
func (p *pass) step(ctx context.Context) error {
	if err := parallel(ctx, p.workers, p.head.Layers, func(w, layer int) error {
		return p.layer(layer, &p.scratch[w])
	}); err != nil {
		return err
	}
	for _, g := range p.sets {
		for _, list := range [][]*decisions{g.windows, g.others} {
			if err := parallel(ctx, p.workers, len(list), func(_, i int) error {
				p.addUp(list[i])
				return nil
			}); err != nil {
				return err
			}
		}
	}
	return parallel(ctx, p.workers, len(p.configs), func(w, i int) error {
		r := p.configs[i]
		if r.cfg.Backend != sim.OnHost {
			return p.onGPU(r, &p.scratch[w])
		}
		if r.table == nil {
			if err := p.events(r, &p.scratch[w]); err != nil {
				return err
			}
		}
		p.finish(r)
		return nil
	})
}

// parallel calls do for 0 … n−1 on a number of workers and returns the first error in that order.
func parallel(ctx context.Context, workers, n int, do func(worker, i int) error) error {
	var next atomic.Int64
	var wait sync.WaitGroup
	failed := make([]error, n)
	for w := range min(workers, n) {
		wait.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				failed[i] = do(w, i)
			}
		})
	}
	wait.Wait()
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// layer steps one layer through the block: all windows, the shortest first, then all other
// policies.
func (p *pass) layer(l int, w *worker) error {
	for _, g := range p.sets {
		for i := range p.count {
			need := p.list[i].Masks(g.predicted)[l]
			g.need[l*p.block+i] = need.Count()
			copy(g.history.at(l, p.first+i), need)
		}
		w.covers.begin(p.first, p.block, p.head.Words())
		for _, d := range g.windows {
			w.covers.widen(d.k, g.history, l, p.starts[:p.count+1])
			for i := range p.count {
				work := d.step(p, g, l, i, &w.covers, &w.dec)
				if err := p.account(d, l, i, work, w.dec.Load, w); err != nil {
					return err
				}
			}
		}
		for _, d := range g.others {
			for i := range p.count {
				if token := p.first + i; token > 0 && token == p.starts[i+1] {
					d.layers[l].Reset()
				}
				work, load := d.layers[l].Step(g.history.at(l, p.first+i))
				if err := p.account(d, l, i, work, load, w); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// read is the mask of the units that a cell reads.
func (d *decisions) read(cell, words int) mask.Mask { return d.loads[cell*words : (cell+1)*words] }

// account stores the decisions of a cell, and the times of host and tables for them.
func (p *pass) account(d *decisions, l, i int, work sim.Work, load []uint32, w *worker) error {
	if err := p.ctx.Err(); err != nil {
		return err
	}
	cell := l*p.block + i
	d.work[cell] = work
	d.keep(l, p.first+i == p.starts[i+1], work.Loads, work.Evictions)
	if d.loads != nil {
		read := d.read(cell, p.head.Words())
		clear(read)
		read.SetList(load)
	}
	for _, h := range d.hosts {
		h.cells[cell] = h.host.Layer(int(p.list[i].Pos), &work)
	}
	audited := ((p.first+i)*p.head.Layers+l)%p.stride == p.stride/2
	for _, q := range d.layouts {
		q.planner.Plan(l, load, &w.plan)
		q.bytes[cell] = w.plan.Bytes
		for _, c := range q.chunks {
			n := c.countReads(w.plan.Requests)
			c.count[cell] = n
			if audited && len(c.tables) > 0 {
				w.reads = c.split(w.reads[:0], w.plan.Requests)
			}
			for _, r := range c.tables {
				if err := r.lookUp(p, cell, int(n), w.plan.Bytes); err != nil {
					return err
				}
				if audited && n > 0 {
					if err := r.audit(p, cell, w.reads); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// countReads counts the reads of a list of extents.
func (c *chunk) countReads(extents []layout.Request) (n int32) {
	if c.most == 0 {
		return int32(len(extents))
	}
	for i := range extents {
		n += int32((extents[i].Length + c.most - 1) / c.most)
	}
	return n
}

// split appends the reads of a list of extents, split as layout.Planner does.
func (c *chunk) split(reads []flash.Read, extents []layout.Request) []flash.Read {
	for _, s := range extents {
		for at, end := s.Offset, s.Offset+s.Length; at < end; {
			n := end - at
			if c.most > 0 {
				n = min(n, c.most)
			}
			reads = append(reads, flash.Read{Offset: units.Bytes(at), Length: units.Bytes(n)})
			at += n
		}
	}
	return reads
}

// lookUp takes the time of a cell's reads from the table.
func (r *simulation) lookUp(p *pass, cell, n int, bytes units.Bytes) (err error) {
	r.io[cell], r.sojourn[cell] = 0, 0
	if n > 0 {
		r.io[cell], r.sojourn[cell], err = r.table.Time(n, bytes)
	}
	return err
}

// addUp adds up the counts of a block and the times of the hosts, token by token.
func (p *pass) addUp(d *decisions) {
	for i := range p.count {
		resident := 0
		for l := range p.head.Layers {
			w := &d.work[l*p.block+i]
			resident += w.Resident
			d.hits += int64(w.Hits)
			d.misses += int64(w.Loads)
			d.evictions += int64(w.Evictions)
			for _, q := range d.layouts {
				q.sum += q.bytes[l*p.block+i]
				for _, c := range q.chunks {
					c.sum += int64(c.count[l*p.block+i])
				}
			}
		}
		d.mostResident = max(d.mostResident, resident)
		for _, h := range d.hosts {
			h.last[i] = h.host.Token(resident)
			h.sums[i] = sim.LayerTimes{}
			for l := range p.head.Layers {
				h.sums[i] = h.sums[i].Add(h.cells[l*p.block+i])
			}
			h.attend(p, i)
		}
	}
}

// attend adds the time of the keys and values of a batch step beyond those of one sequence at the
// step's position. It is added to the sums only: the reads of a step start when sim.Run starts
// them, and sim.Run charges one sequence.
func (h *hostTimes) attend(p *pass, i int) {
	if p.attended[i] == int(p.list[i].Pos)+1 {
		return
	}
	all, one := h.host.Layer(p.attended[i]-1, &sim.Work{}), h.host.Layer(int(p.list[i].Pos),
		&sim.Work{})
	sum, layers := &h.sums[i], p.head.Layers
	sum.Attention += units.Nanos(layers) * (all.Attention - one.Attention)
	sum.Bounded += units.Nanos(layers) * (all.Bounded - one.Bounded)
	sum.Traffic += units.Bytes(layers) * (all.Traffic - one.Traffic)
}

// events simulates a block of a configuration as events, in the order of sim.Run.
func (p *pass) events(r *simulation, w *worker) error {
	for i := range p.count {
		if err := p.ctx.Err(); err != nil {
			return err
		}
		for l := range p.head.Layers {
			cell := l*p.block + i
			step, err := p.execute(r, w, l, cell)
			if err != nil {
				return err
			}
			r.io[cell], r.sojourn[cell], r.moved[cell] = step.Parts[traces.PartIO].Took,
				step.InFlight, step.Moved
		}
		r.machine.EndToken(&r.host.last[i])
	}
	return nil
}

// execute simulates a cell with the decisions of account.
func (p *pass) execute(r *simulation, w *worker, l, cell int) (sim.Step, error) {
	d := r.decisions
	w.dec.Load = d.read(cell, p.head.Words()).AppendUnits(w.dec.Load[:0])
	return r.machine.Execute(l, &d.work[cell], w.dec.Load, &r.host.cells[cell])
}

// onGPU simulates a block of a configuration on a GPU, in the order of sim.Run, and adds it to the
// totals.
func (p *pass) onGPU(r *simulation, w *worker) error {
	for i := range p.count {
		if err := p.ctx.Err(); err != nil {
			return err
		}
		start := r.machine.Now()
		var sum sim.Tally
		for l := range p.head.Layers {
			cell := l*p.block + i
			if r.table != nil {
				step := r.machine.ExecuteTimed(&r.decisions.work[cell], &r.host.cells[cell],
					r.io[cell], r.sojourn[cell])
				sum.Step(&step)
				continue
			}
			step, err := p.execute(r, w, l, cell)
			if err != nil {
				return err
			}
			sum.Step(&step)
		}
		sum.Token(&r.host.last[i], r.machine.EndToken(&r.host.last[i]).Took)
		for part, took := range sum.Parts {
			r.total.summary.Totals.PartNanos[part] += took
		}
		r.total.whole(r.machine.Now()-start, units.Nanos(sum.InFlight))
	}
	return nil
}

// finish adds a block to the totals of a configuration.
func (p *pass) finish(r *simulation) {
	moved := r.moved
	if r.table != nil {
		moved = r.requests.bytes
	}
	for i := range p.count {
		var io, sojourn units.Nanos
		var bytes units.Bytes
		for l := range p.head.Layers {
			cell := l*p.block + i
			io, sojourn, bytes = io+r.io[cell], sojourn+r.sojourn[cell], bytes+moved[cell]
		}
		r.total.add(r.host, i, io, sojourn, bytes)
	}
}
