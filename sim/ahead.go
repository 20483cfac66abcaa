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

// resolution is the shortest compute that is followed through contention: what is left below it
// runs at full speed.
const resolution = units.Microsecond

// ahead simulates tokens under a schedule that reads ahead. Compute and the reader share the
// station; compute goes from one part to the next, and the reader and the station catch up with it
// (reader.advance) before anything is submitted.
type ahead struct {
	r       *runner
	plan    Schedule
	limit   int64          // bytes of a prefetch batch (layout.Planner.BatchLimit)
	batches []layout.Batch // of one layer, reused
	reader  reader
	layers  []layerAhead
	dense   LayerTimes // of a layer of the prefix, at the token's position
	facts   traces.Ahead
	exposed units.Nanos // with reads in flight while compute waited
}

// layerAhead is what one sparse layer of one token has to do.
type layerAhead struct {
	work     Work
	times    LayerTimes // without what the reader moves
	reads    speculation
	bytes    units.Bytes // read ahead
	requests int
	resident mask.Mask // before the token
}

func newAhead(r *runner) (*ahead, error) {
	a := &ahead{r: r, plan: r.cfg.Schedule, layers: make([]layerAhead, r.head.Layers)}
	for l := range a.layers {
		a.layers[l].resident = mask.New(r.head.Units)
	}
	a.reader = reader{station: r.station, host: r.host, staging: a.plan.Staging,
		room: layout.Staging{Room: int64(a.plan.Staging)}}
	var err error
	if a.limit, err = r.planner.BatchLimit(int64(a.plan.Staging)); err != nil {
		return nil, configError{err}
	}
	a.facts.Schedule = string(a.plan.Kind)
	return a, nil
}

func (a *ahead) reset() {
	for l := range a.layers {
		clear(a.layers[l].resident)
	}
}

// token simulates one token, top to bottom.
func (a *ahead) token(index uint32, t *traces.Token) error {
	r, first := a.r, a.plan.Dense // the first sparse layer
	row := traces.RunRow{Token: index, Seq: t.Seq, Pos: t.Pos, Phase: t.Phase}
	held := a.decide(t)
	if err := a.reader.reset(); err != nil {
		return err
	}
	for l := range a.layers {
		row.Layer = uint16(l)
		begin := len(r.run.Rows)
		simulate := a.sparse
		if l < first {
			simulate = a.prefix
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
	last := r.host.Token(held)
	r.summary.Bounded += last.Bounded
	return a.compute(row, traces.PartOther, last.Other, last.Traffic, last.Other)
}

// decide asks the policies of all sparse layers what the token reads, and shares it out. It returns
// the rows in memory.
func (a *ahead) decide(t *traces.Token) (held int) {
	r, masks := a.r, a.r.cfg.needed(t)
	a.dense = r.host.Dense(int(t.Pos))
	for l := range a.layers {
		p := &a.layers[l]
		if l < a.plan.Dense {
			p.work.Hits = masks[l].Count()
			continue
		}
		var load []uint32
		p.work, load = r.Decide(l, masks[l])
		held += p.work.Resident
		if l == 0 { // nothing is known of it before
			p.reads = speculation{named: p.reads.named[:0], missed: append(p.reads.missed[:0],
				load...)}
		} else {
			var traced mask.Mask
			if a.plan.Traced {
				traced = t.Predicted[l]
			}
			g := a.plan.guess(r.head.Seed, t.Seq, t.Pos, l, traced)
			p.reads.split(&g, masks[l], p.resident, load, r.head.Units)
			a.facts.Missed += int64(len(p.reads.missed))
			a.facts.Named += int64(len(load) - len(p.reads.missed))
		}
		p.resident.SetList(load)
		for _, u := range r.layers[l].dec.Evict {
			p.resident.Clear(u)
		}
		rest := p.work
		rest.Loads = len(p.reads.missed)
		rest.Copies -= len(load) - rest.Loads
		p.times = r.Charge(int(t.Pos), &rest)
		p.bytes, p.requests = 0, 0
	}
	return held
}

// read gives the reader what is read ahead of a layer.
func (a *ahead) read(layer int) {
	p := &a.layers[layer]
	a.batches = a.r.planner.Batches(layer, p.reads.named, a.limit, a.batches[:0])
	for i := range a.batches {
		batch := &a.batches[i]
		p.bytes += batch.Plan.Bytes
		p.requests += len(batch.Plan.Requests)
		a.reader.add(layer, a.r.now, batch)
	}
	a.facts.Bytes += p.bytes
	a.facts.Wasted += units.Bytes(p.reads.wasted) * a.r.head.UnitBytes
}

// lookAhead reads what a prediction names for the layer behind one whose attention is done: the
// prediction is made from what its feed-forward part is computed from.
func (a *ahead) lookAhead(layer int) {
	if next := layer + 1; a.plan.Kind == schedule.LookAhead && next >= a.plan.Dense &&
		next < len(a.layers) {
		a.reader.open()
		a.read(next)
		a.reader.share()
	}
}

// prefix simulates a dense layer. After layer 0 the whole token is predicted, decided and
// submitted.
func (a *ahead) prefix(row traces.RunRow) error {
	r, d := a.r, &a.dense
	if err := a.compute(row, traces.PartAttention, d.Attention, d.Traffic, d.Sum()); err != nil {
		return err
	}
	a.lookAhead(int(row.Layer))
	if err := a.compute(row, traces.PartFFN, d.FFN, d.Traffic, d.Sum()); err != nil {
		return err
	}
	r.summary.Bounded += d.Bounded
	predict := units.Nanos(0)
	whole := a.plan.Kind == schedule.Token && row.Layer == 0
	if whole {
		for l := a.plan.Dense; l < len(a.layers); l++ {
			predict += a.layers[l].times.Predict
		}
	}
	r.spend(row, traces.PartPredict, predict)
	if whole {
		a.reader.open()
		for l := a.plan.Dense; l < len(a.layers); l++ {
			a.read(l)
		}
		a.reader.share()
	}
	io := row
	io.Hits = uint32(a.layers[row.Layer].work.Hits)
	r.spend(io, traces.PartIO, 0)
	r.spend(row, traces.PartMemory, 0)
	return nil
}

// sparse simulates a layer that reads what it lacks.
func (a *ahead) sparse(row traces.RunRow) error {
	r, p, whole := a.r, &a.layers[row.Layer], a.plan.Kind == schedule.Token
	if whole && a.plan.Wait == WaitToken && int(row.Layer) == a.plan.Dense {
		if err := a.wait(row, len(a.layers), nil); err != nil {
			return err
		}
	}
	if err := a.compute(row, traces.PartAttention, p.times.Attention, p.times.Traffic,
		p.times.Sum()); err != nil {
		return err
	}
	predict := p.times.Predict
	if whole {
		predict = 0 // all layers' came after layer 0
	}
	if err := a.compute(row, traces.PartPredict, predict, p.times.Traffic,
		p.times.Sum()); err != nil {
		return err
	}
	if err := a.demand(row, p); err != nil {
		return err
	}
	mem := row
	mem.Bytes = units.Bytes(p.work.Copies) * r.head.UnitBytes
	mem.Evictions = uint32(p.work.Evictions)
	if err := a.compute(mem, traces.PartMemory, p.times.Memory, p.times.Traffic,
		p.times.Sum()); err != nil {
		return err
	}
	r.summary.Bounded += p.times.Bounded
	return a.compute(row, traces.PartFFN, p.times.FFN, p.times.Traffic, p.times.Sum())
}

// demand reads what a layer lacks and nobody foresaw, and waits for that and for what was read
// ahead.
func (a *ahead) demand(row traces.RunRow, p *layerAhead) error {
	r := a.r
	if err := a.reader.advance(r.now); err != nil {
		return err
	}
	plan, group, err := r.submit(int(row.Layer), p.reads.missed)
	if err != nil {
		return err
	}
	row.Bytes, row.Requests = p.bytes+plan.Bytes, uint32(p.requests+len(plan.Requests))
	row.Hits, row.Misses = uint32(p.work.Hits), uint32(p.work.Loads)
	a.lookAhead(int(row.Layer))
	return a.wait(row, int(row.Layer), group)
}

// wait spends the time until what was read ahead for the layers up to one is in its places, and a
// demand group is complete.
func (a *ahead) wait(row traces.RunRow, layer int, demand *flash.Group) error {
	r := a.r
	if err := a.reader.advance(r.now); err != nil {
		return err
	}
	before := r.station.Progress()
	ready, err := a.reader.wait(layer, demand)
	if err != nil {
		return err
	}
	took := max(ready-r.now, 0)
	if err := a.reader.advance(r.now + took); err != nil {
		return err
	}
	after := r.station.Progress()
	a.exposed += after.Busy - before.Busy
	if took > 0 {
		row.Depth = float32(float64(after.Area-before.Area) / float64(took))
	}
	r.spend(row, traces.PartIO, took)
	return nil
}

// compute spends a part of a token beside the reads that are under way, which stretch it. Of the
// traffic, the part has the share that it has of the time in which the traffic arises.
func (a *ahead) compute(row traces.RunRow, part traces.Part, took units.Nanos, traffic units.Bytes,
	in units.Nanos) error {
	r, end := a.r, a.r.now
	before, moved := r.station.Progress(), a.reader.moving
	for left := took; left > 0; {
		end += left
		if err := a.reader.advance(end); err != nil {
			return err
		}
		if left < resolution {
			break
		}
		after := r.station.Progress()
		wanted := units.Bytes(float64(traffic) * float64(left) / float64(in))
		// What was lost is made up for at the part's own rate, and may lose again.
		left = r.host.lost(left, wanted, after.Since(before), a.reader.moving-moved)
		before, moved = after, a.reader.moving
	}
	a.facts.Slowed += end - r.now - took
	r.spend(row, part, end-r.now)
	return nil
}

// finish adds up a run.
func (a *ahead) finish() error {
	if err := a.r.station.Drained(); err != nil {
		return err
	}
	total := a.r.station.Progress()
	a.facts.Hidden = total.Busy - a.exposed
	a.facts.Chunks = a.reader.chunks
	a.r.run.Meta.Ahead = &a.facts
	a.r.summary.Hidden = a.facts.Hidden
	if total.Busy > 0 {
		a.r.summary.Depth = float64(total.Area) / float64(total.Busy)
	}
	return nil
}
