package sim

import (
	"cmp"
	"slices"

	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

// resolution is the shortest compute that is followed through contention. What is left of a part
// below it runs at full speed.
const resolution = units.Microsecond

// prefetching simulates tokens under a schedule that prefetches. Compute goes from one part to the
// next. Before it submits reads, the prefetcher and the station catch up with it
// (prefetcher.advance).
type prefetching struct {
	r       *runner
	plan    Schedule
	limit   int64          // bytes of a prefetch batch (layout.Planner.BatchLimit)
	batches []layout.Batch // of one layer, reused
	fetcher prefetcher
	layers  []layerReads
	dense   LayerTimes // of a layer of the prefix, at the token's position
	facts   traces.Prefetches
	exposed units.Nanos // with reads in flight while compute waited
}

// layerReads is the work and the reads of one sparse layer of one token.
type layerReads struct {
	work     Work
	times    LayerTimes // without scattering in the background
	reads    readSplit
	bytes    units.Bytes // of the prefetches
	requests int         // of the prefetches
	resident mask.Mask   // before the token
}

func newPrefetching(r *runner) (*prefetching, error) {
	p := &prefetching{r: r, plan: r.cfg.Schedule, layers: make([]layerReads, r.head.Layers)}
	for l := range p.layers {
		p.layers[l].resident = mask.New(r.head.Units)
	}
	p.fetcher = prefetcher{station: r.station, host: r.host, staging: p.plan.Staging,
		room: layout.Staging{Room: int64(p.plan.Staging)}}
	var err error
	if p.limit, err = r.planner.BatchLimit(int64(p.plan.Staging)); err != nil {
		return nil, configError{err}
	}
	p.facts.Schedule = string(p.plan.Kind)
	return p, nil
}

func (p *prefetching) reset() {
	for l := range p.layers {
		clear(p.layers[l].resident)
	}
}

// token simulates one token, top to bottom.
func (p *prefetching) token(index uint32, t *traces.Token) error {
	r, firstSparse := p.r, p.plan.Dense
	row := traces.RunRow{Token: index, Seq: t.Seq, Pos: t.Pos, Phase: t.Phase}
	resident := p.decide(t)
	if err := p.fetcher.reset(); err != nil {
		return err
	}
	for l := range p.layers {
		row.Layer = uint16(l)
		begin := len(r.run.Rows)
		simulate := p.sparse
		if l < firstSparse {
			simulate = p.prefix
		}
		if err := simulate(row); err != nil {
			return err
		}
		// The rows of a layer stand in the order of parts, whatever the order in time.
		slices.SortStableFunc(r.run.Rows[begin:], func(x, y traces.RunRow) int {
			return cmp.Compare(x.Part, y.Part)
		})
	}
	row.Layer = traces.NoLayer
	last := r.host.Token(resident)
	r.summary.Bounded += last.Bounded
	return p.compute(row, traces.PartOther, last.Other, last.Traffic, last.Other)
}

// decide asks the policies of all sparse layers what the token loads, and splits the loads into
// prefetches and demand reads. It returns the number of resident rows.
func (p *prefetching) decide(t *traces.Token) (resident int) {
	r, masks := p.r, p.r.cfg.needed(t)
	p.dense = r.host.Dense(int(t.Pos))
	for l := range p.layers {
		n := &p.layers[l]
		if l < p.plan.Dense {
			n.work.Hits = masks[l].Count()
			continue
		}
		var load []uint32
		n.work, load = r.Decide(l, masks[l])
		resident += n.work.Resident
		if l == 0 { // nothing predicts it
			n.reads = readSplit{prefetched: n.reads.prefetched[:0],
				missed: append(n.reads.missed[:0], load...)}
		} else {
			var traced mask.Mask
			if p.plan.Traced {
				traced = t.Predicted[l]
			}
			g := p.plan.guess(r.head.Seed, t.Seq, t.Pos, l, traced)
			n.reads.split(&g, masks[l], n.resident, load, r.head.Units)
			p.facts.Missed += int64(len(n.reads.missed))
			p.facts.Named += int64(len(load) - len(n.reads.missed))
		}
		n.resident.SetList(load)
		for _, u := range r.layers[l].dec.Evict {
			n.resident.Clear(u)
		}
		rest := n.work // the prefetcher scatters the prefetched rows
		rest.Loads = len(n.reads.missed)
		rest.Copies -= len(load) - rest.Loads
		n.times = r.Charge(int(t.Pos), &rest)
		n.bytes, n.requests = 0, 0
	}
	return resident
}

// prefetch gives the prefetcher what is predicted for the layers from first to end (exclusive).
func (p *prefetching) prefetch(first, end int) {
	p.fetcher.begin()
	for l := first; l < end; l++ {
		n := &p.layers[l]
		p.batches = p.r.planner.Batches(l, n.reads.prefetched, p.limit, p.batches[:0])
		for i := range p.batches {
			b := &p.batches[i]
			n.bytes += b.Plan.Bytes
			n.requests += len(b.Plan.Requests)
			p.fetcher.add(l, p.r.now, b)
		}
		p.facts.Bytes += n.bytes
		p.facts.Wasted += units.Bytes(n.reads.wasted) * p.r.head.UnitBytes
	}
	p.fetcher.group()
}

// lookAhead prefetches for the layer behind one whose attention is done, if the schedule looks
// ahead. The prediction uses the input of the layer's feed-forward part.
func (p *prefetching) lookAhead(layer int) {
	if next := layer + 1; p.plan.Kind == schedule.LookAhead && next >= p.plan.Dense &&
		next < len(p.layers) {
		p.prefetch(next, next+1)
	}
}

// prefix simulates a dense layer. After layer 0 the whole token is predicted, decided and
// prefetched, if the schedule is of whole tokens.
func (p *prefetching) prefix(row traces.RunRow) error {
	r, d := p.r, &p.dense
	if err := p.compute(row, traces.PartAttention, d.Attention, d.Traffic, d.Sum()); err != nil {
		return err
	}
	p.lookAhead(int(row.Layer))
	if err := p.compute(row, traces.PartFFN, d.FFN, d.Traffic, d.Sum()); err != nil {
		return err
	}
	r.summary.Bounded += d.Bounded
	predict := units.Nanos(0)
	whole := p.plan.Kind == schedule.Token && row.Layer == 0
	if whole {
		for l := p.plan.Dense; l < len(p.layers); l++ {
			predict += p.layers[l].times.Predict
		}
	}
	r.spend(row, traces.PartPredict, predict)
	if whole {
		p.prefetch(p.plan.Dense, len(p.layers))
	}
	io := row
	io.Hits = uint32(p.layers[row.Layer].work.Hits)
	r.spend(io, traces.PartIO, 0)
	r.spend(row, traces.PartMemory, 0)
	return nil
}

// sparse simulates a layer with rows on flash.
func (p *prefetching) sparse(row traces.RunRow) error {
	r, n, whole := p.r, &p.layers[row.Layer], p.plan.Kind == schedule.Token
	if whole && p.plan.Wait == WaitToken && int(row.Layer) == p.plan.Dense {
		if err := p.wait(row, len(p.layers), nil); err != nil {
			return err
		}
	}
	if err := p.compute(row, traces.PartAttention, n.times.Attention, n.times.Traffic,
		n.times.Sum()); err != nil {
		return err
	}
	predict := n.times.Predict
	if whole {
		predict = 0 // charged after layer 0
	}
	if err := p.compute(row, traces.PartPredict, predict, n.times.Traffic,
		n.times.Sum()); err != nil {
		return err
	}
	if err := p.demand(row, n); err != nil {
		return err
	}
	mem := row
	mem.Bytes = units.Bytes(n.work.Copies) * r.head.UnitBytes
	mem.Evictions = uint32(n.work.Evictions)
	if err := p.compute(mem, traces.PartMemory, n.times.Memory, n.times.Traffic,
		n.times.Sum()); err != nil {
		return err
	}
	if row.Layer == 0 {
		p.lookAhead(0)
	}
	r.summary.Bounded += n.times.Bounded
	return p.compute(row, traces.PartFFN, n.times.FFN, n.times.Traffic, n.times.Sum())
}

// demand submits the demand reads of a layer, then the prefetches of the next one, and waits for
// the layer's demand reads and prefetches. Layer 0 reads on demand alone: its reads, which nothing
// hides, have the drive for themselves, and the prefetches follow them.
func (p *prefetching) demand(row traces.RunRow, n *layerReads) error {
	r := p.r
	if err := p.fetcher.advance(r.now); err != nil {
		return err
	}
	plan, group, err := r.submit(int(row.Layer), n.reads.missed)
	if err != nil {
		return err
	}
	row.Bytes, row.Requests = n.bytes+plan.Bytes, uint32(n.requests+len(plan.Requests))
	row.Hits, row.Misses = uint32(n.work.Hits), uint32(n.work.Loads)
	if row.Layer > 0 {
		p.lookAhead(int(row.Layer))
	}
	return p.wait(row, int(row.Layer), group)
}

// wait spends the time until the prefetches for the layers up to one are scattered and a group of
// demand reads, nil for none, is complete.
func (p *prefetching) wait(row traces.RunRow, layer int, demand *flash.Group) error {
	r := p.r
	if err := p.fetcher.advance(r.now); err != nil {
		return err
	}
	before := r.station.Progress()
	ready, err := p.fetcher.wait(layer, demand)
	if err != nil {
		return err
	}
	took := max(ready-r.now, 0)
	if err := p.fetcher.advance(r.now + took); err != nil {
		return err
	}
	after := r.station.Progress()
	p.exposed += after.Busy - before.Busy
	if took > 0 {
		row.Depth = float32(float64(after.Area-before.Area) / float64(took))
	}
	r.spend(row, traces.PartIO, took)
	return nil
}

// compute spends a part of a token. Reads in flight and scattering beside it make it longer. Of the
// traffic, which arises within the time in, the part has the share that it has of that time.
func (p *prefetching) compute(row traces.RunRow, part traces.Part, took units.Nanos,
	traffic units.Bytes, in units.Nanos) error {
	r, end := p.r, p.r.now
	before, scattered := r.station.Progress(), p.fetcher.scattering
	for left := took; left > 0; {
		end += left
		if err := p.fetcher.advance(end); err != nil {
			return err
		}
		if left < resolution {
			break
		}
		after := r.station.Progress()
		wanted := units.Bytes(float64(traffic) * float64(left) / float64(in))
		// Compute makes up for lost time at the part's own rate, and may lose time again.
		left = r.host.lost(left, wanted, after.Since(before), p.fetcher.scattering-scattered)
		before, scattered = after, p.fetcher.scattering
	}
	p.facts.Slowed += end - r.now - took
	r.spend(row, part, end-r.now)
	return nil
}

// finish adds up a run.
func (p *prefetching) finish() error {
	if err := p.r.station.Drained(); err != nil {
		return err
	}
	total := p.r.station.Progress()
	p.facts.Hidden = total.Busy - p.exposed
	p.facts.Submissions = p.fetcher.submitted
	p.r.run.Meta.Prefetches = &p.facts
	p.r.summary.Hidden = p.facts.Hidden
	if total.Busy > 0 {
		p.r.summary.Depth = float64(total.Area) / float64(total.Busy)
	}
	return nil
}
