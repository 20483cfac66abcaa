package engine

import (
	"errors"
	"sync"
	"time"

	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/engine/layout"
	"github.com/windrow-sim/windrow/engine/policy"
	"github.com/windrow-sim/windrow/internal/units"
)

// ahead reads what was announced, in the background: one goroutine, piece by piece. A piece is read into the staging buffer and its rows are then
// copied to their caches, before the next is submitted (submit and scatter). The caches of announced layers belong to it until they are taken.
//
// Reads of both sides share the reader; one on demand waits for the piece that is being read.
type ahead struct {
	f       *Flash
	staging []byte
	reading sync.Mutex // whoever uses the reader

	mu      sync.Mutex
	changed *sync.Cond
	queue   []piece
	layers  []announced // by layer
	busy    bool        // a piece is being worked on
	closed  bool
	failed  error
	stopped chan struct{}
}

// announced is what was decided for a layer ahead of its turn.
type announced struct {
	active   bool
	left     int // pieces
	decision policy.Decision
	requests int
	bytes    units.Bytes
	copied   int
	took     units.Nanos // in the background
}

// piece is a part of one layer's loads that fits into the staging buffer.
type piece struct {
	layer  int
	first  bool // of its layer
	units  []uint32
	plan   layout.Plan
	offset int64 // in the staging buffer
}

// Announce decides what layers from first on need, as their masks say, and starts reading it in the background. Each must be taken by Layer, in order, before
// the next Announce of it. masks are by layer of the model.
func (f *Flash) Announce(first, end int, masks [][]uint64) error {
	if f.ahead == nil {
		a := &ahead{f: f, layers: make([]announced, len(f.layers)), stopped: make(chan struct{})}
		a.changed = sync.NewCond(&a.mu)
		f.ahead = a
		go a.work()
	}
	var pieces []piece
	for l := max(first, len(f.dense)); l < end; l++ {
		pieces = append(pieces, f.ahead.decide(l, masks[l])...)
	}
	return f.ahead.submit(pieces)
}

// announced says whether a layer was announced and not taken.
func (f *Flash) announced(layer int) bool { return f.ahead != nil && f.ahead.layers[layer].active }

// decide asks the policy, and cuts the loads into pieces.
func (a *ahead) decide(l int, need []uint64) (pieces []piece) {
	f, s, n := a.f, &a.f.layers[l], &a.layers[l]
	s.policy.Step(need, &n.decision)
	*n = announced{active: true, decision: n.decision}
	load := n.decision.Load
	// Of the pieces at least one record; the ends of a stretch are rounded outwards.
	perRecord := int64(f.planner.Geometry().Stride) + 2*int64(f.planner.Align())
	size := len(load)
	if f.limit > 0 {
		size = int(max(f.limit/perRecord, 1))
	}
	for from := 0; from < len(load); from += size {
		p := piece{layer: l, first: from == 0, units: load[from:min(from+size, len(load))]}
		f.planner.Plan(l, p.units, &p.plan)
		n.requests += len(p.plan.Requests)
		n.bytes += p.plan.Bytes
		pieces = append(pieces, p)
	}
	n.left = len(pieces)
	if n.left == 0 { // nothing to read: what the last token evicted leaves now
		n.copied = s.cache.Delete(s.pending)
		s.pending = append(s.pending[:0], n.decision.Evict...)
	}
	return pieces
}

// submit hands pieces to the background, several layers' together where they fit into the staging buffer.
func (a *ahead) submit(pieces []piece) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	largest := int64(0)
	for i := range pieces {
		largest = max(largest, pieces[i].plan.Staging)
	}
	if room := max(largest, a.f.limit); room > int64(len(a.staging)) {
		for a.busy || len(a.queue) > 0 {
			a.changed.Wait()
		}
		if err := replaceStaging(a.f.store, &a.staging, room); err != nil {
			return err
		}
	}
	a.queue = append(a.queue, pieces...)
	a.changed.Broadcast()
	return nil
}

// work is the background.
func (a *ahead) work() {
	defer close(a.stopped)
	var group []piece
	var requests []flashio.Request
	began := time.Now()
	clock := func() units.Nanos { return units.Nanos(time.Since(began)) }
	for {
		a.mu.Lock()
		for len(a.queue) == 0 && !a.closed {
			a.changed.Wait()
		}
		if len(a.queue) == 0 {
			a.mu.Unlock()
			return
		}
		group = a.next(group[:0])
		a.busy = true
		staging := a.staging
		a.mu.Unlock()

		start := clock()
		requests = requests[:0]
		for i := range group {
			p := &group[i]
			for _, r := range p.plan.Requests {
				at := p.offset + r.Buf
				requests = append(requests, flashio.Request{Offset: r.Offset, Buf: staging[at : at+r.Length]})
			}
		}
		a.reading.Lock()
		err := a.f.store.Settle()
		if err == nil {
			err = a.f.reader.ReadBatch(requests)
		}
		a.reading.Unlock()
		a.finish(group, staging, clock()-start, clock, err)
	}
}

// next takes the pieces that go together; the caller holds mu.
func (a *ahead) next(group []piece) []piece {
	offset, requests := int64(0), 0
	for len(a.queue) > 0 {
		p := a.queue[0]
		if len(group) > 0 && (offset+p.plan.Staging > int64(len(a.staging)) || requests+len(p.plan.Requests) > layout.MostAhead) {
			break
		}
		p.offset = offset
		offset += (p.plan.Staging + layout.StagingAlign - 1) / layout.StagingAlign * layout.StagingAlign
		requests += len(p.plan.Requests)
		group = append(group, p)
		a.queue = a.queue[1:]
	}
	return group
}

// finish copies the rows of a group to their caches and says so.
func (a *ahead) finish(group []piece, staging []byte, read units.Nanos, clock func() units.Nanos, err error) {
	total := 0
	for i := range group {
		total += len(group[i].units)
	}
	for i := range group {
		p := &group[i]
		s, n := &a.f.layers[p.layer], &a.layers[p.layer]
		start := clock()
		if err == nil && p.first {
			n.copied = s.cache.Delete(s.pending)
			s.pending = append(s.pending[:0], n.decision.Evict...)
		}
		if err == nil {
			err = s.cache.Insert(p.units, staging[p.offset:], p.plan.Records)
		}
		took := clock() - start + read*units.Nanos(len(p.units))/units.Nanos(total)
		a.mu.Lock()
		n.took += took
		n.left--
		if err != nil && a.failed == nil {
			a.failed = err
		}
		a.mu.Unlock()
	}
	a.mu.Lock()
	a.busy = false
	a.changed.Broadcast()
	a.mu.Unlock()
}

// take waits for what was announced of a layer; false when nothing was.
func (a *ahead) take(layer int, now func() units.Nanos, ev *LayerEvent) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := &a.layers[layer]
	if !n.active {
		return false, nil
	}
	start := now()
	for n.left > 0 && a.failed == nil {
		a.changed.Wait()
	}
	end := now()
	n.active = false
	ev.Predict, ev.IO, ev.Memory = Span{Start: start}, Span{start, end - start}, Span{Start: end}
	ev.Hits, ev.Misses, ev.Evictions = n.decision.Hits, len(n.decision.Load), len(n.decision.Evict)
	ev.Requests, ev.Bytes, ev.Ahead = n.requests, n.bytes, n.took
	ev.Copied = units.Bytes(n.copied+len(n.decision.Load)) * a.f.planner.Geometry().Record
	return true, a.failed
}

// demand reads on the caller's goroutine.
func (a *ahead) demand(requests []flashio.Request) error {
	a.reading.Lock()
	defer a.reading.Unlock()
	return a.f.reader.ReadBatch(requests)
}

// drain waits until nothing goes on, and forgets what was announced and not taken.
func (a *ahead) drain() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.busy || len(a.queue) > 0 {
		a.changed.Wait()
	}
	for l := range a.layers {
		a.layers[l].active = false
	}
	a.failed = nil
}

// close ends the background.
func (a *ahead) close() error {
	a.drain()
	a.mu.Lock()
	a.closed = true
	a.changed.Broadcast()
	a.mu.Unlock()
	<-a.stopped
	err := errors.Join(a.f.store.Settle(), a.f.store.FreeStaging(a.staging))
	a.staging = nil
	return err
}
