package engine

import (
	"errors"
	"sync"
	"time"

	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
)

// ahead reads what was announced, in the background, group by group: one goroutine reads a group
// into the staging buffer, another moves the rows of the group before to their caches meanwhile.
// The caches of announced layers belong to them until they are taken.
//
// Reads of both sides share the reader; one on demand waits for the group that is being read.
type ahead struct {
	f       *Flash
	staging []byte
	reading sync.Mutex  // whoever uses the reader
	read    chan *group // groups whose rows are to be moved

	mu      sync.Mutex
	changed *sync.Cond
	queue   []piece
	layers  []announced // by layer
	room    layout.Staging
	busy    int // groups that are read or moved
	closed  bool
	failed  error
	stopped chan struct{}
}

// group is pieces that are read together.
type group struct {
	pieces  []piece
	staging []byte
	took    units.Nanos // to read
	err     error
}

// announced is what was decided for a layer ahead of its turn.
type announced struct {
	active   bool
	left     int // pieces
	decision policy.Decision
	requests int
	bytes    units.Bytes
	copied   int
	took     units.Nanos // to read it in the background
}

// piece is a prefetch batch of a layer.
type piece struct {
	layer int
	first bool // of its layer
	layout.Batch
	offset int64 // in the staging buffer
}

// readAhead starts the background, with a staging buffer as large as that of reads on demand, which
// is made for the largest layer, or as its limit: so that no token waits for memory. It may be
// called again.
func (f *Flash) readAhead() error {
	if f.prefetcher != nil {
		return nil
	}
	a := &ahead{f: f, layers: make([]announced, len(f.layers)), read: make(chan *group, 1),
		stopped: make(chan struct{})}
	a.changed = sync.NewCond(&a.mu)
	room := f.bound
	if room == 0 {
		room = layout.Rounded(int64(len(f.staging)))
	}
	if err := a.grow(room); err != nil {
		return err
	}
	f.prefetcher = a
	go a.readGroups()
	go a.moveGroups()
	return nil
}

// grow replaces the staging buffer, which nothing is read into, by one of size bytes if it is
// smaller.
func (a *ahead) grow(size int64) error {
	if size <= a.room.Room {
		return nil
	}
	if err := replaceStaging(a.f.store, &a.staging, size); err != nil {
		return err
	}
	a.room = layout.Staging{Room: size}
	return nil
}

// Announce decides what layers from first on need, as their masks say, and starts reading it in the
// background. Each must be taken by Layer, in order, before the next Announce of it. masks are by
// layer of the model.
func (f *Flash) Announce(first, end int, masks []mask.Mask) error {
	if err := f.readAhead(); err != nil {
		return err
	}
	var pieces []piece
	for l := max(first, len(f.dense)); l < end; l++ {
		pieces = append(pieces, f.prefetcher.decide(l, masks[l])...)
	}
	return f.prefetcher.submit(pieces)
}

// announced says whether a layer was announced and not taken.
func (f *Flash) announced(layer int) bool {
	return f.prefetcher != nil && f.prefetcher.layers[layer].active
}

// decide asks the policy, and cuts the loads into pieces.
func (a *ahead) decide(l int, need mask.Mask) (pieces []piece) {
	f, s, n := a.f, &a.f.layers[l], &a.layers[l]
	s.policy.Step(need, &n.decision)
	*n = announced{active: true, decision: n.decision}
	for i, batch := range f.planner.Batches(l, n.decision.Load, f.limit, nil) {
		n.requests += len(batch.Plan.Requests)
		n.bytes += batch.Plan.Bytes
		pieces = append(pieces, piece{layer: l, first: i == 0, Batch: batch})
	}
	n.left = len(pieces)
	if n.left == 0 { // nothing to read: what the last token evicted leaves now
		n.copied = s.cache.Delete(s.pending)
		s.pending = append(s.pending[:0], n.decision.Evict...)
	}
	return pieces
}

// submit hands pieces to the background, several layers' together where they fit into the staging
// buffer.
func (a *ahead) submit(pieces []piece) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	largest := int64(0)
	for i := range pieces {
		largest = max(largest, layout.Rounded(pieces[i].Plan.Staging))
	}
	if largest > a.room.Room {
		for a.busy > 0 || len(a.queue) > 0 {
			a.changed.Wait()
		}
		if err := a.grow(largest); err != nil {
			return err
		}
	}
	a.queue = append(a.queue, pieces...)
	a.changed.Broadcast()
	return nil
}

// readGroups is the part of the background that reads.
func (a *ahead) readGroups() {
	defer close(a.read)
	var groups [2]group // as many are under way
	var requests []flashio.Request
	for turn := 0; ; turn = 1 - turn {
		g := &groups[turn]
		if !a.next(g) {
			return
		}
		start := time.Now()
		requests = requests[:0]
		for i := range g.pieces {
			p := &g.pieces[i]
			for _, r := range p.Plan.Requests {
				at := p.offset + r.Buf
				requests = append(requests, flashio.Request{Offset: r.Offset,
					Buf: g.staging[at : at+r.Length]})
			}
		}
		a.reading.Lock()
		g.err = a.f.reader.ReadBatch(requests)
		a.reading.Unlock()
		g.took = units.Nanos(time.Since(start))
		a.read <- g
	}
}

// next waits for pieces and for room, and takes those that go together; false when the background
// ends.
func (a *ahead) next(g *group) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for {
		n, size := a.room.Together(len(a.queue), func(i int) (int64, int) {
			return a.queue[i].Plan.Staging, len(a.queue[i].Plan.Requests)
		})
		at, ok := int64(0), false
		if n > 0 {
			at, ok = a.room.Place(size)
		}
		if ok {
			g.pieces, g.staging = append(g.pieces[:0], a.queue[:n]...), a.staging
			for i := range g.pieces {
				g.pieces[i].offset = at
				at += layout.Rounded(g.pieces[i].Plan.Staging)
			}
			a.queue = a.queue[n:]
			a.busy++
			return true
		}
		if n == 0 && a.closed {
			return false
		}
		a.changed.Wait()
	}
}

// moveGroups is the part of the background that brings rows to their caches.
func (a *ahead) moveGroups() {
	defer close(a.stopped)
	for g := range a.read {
		err := a.finish(g)
		if settled := a.f.store.Synchronise(); err == nil {
			err = settled
		}
		a.mu.Lock()
		if err != nil && a.failed == nil {
			a.failed = err
		}
		a.room.Moved()
		a.busy--
		a.changed.Broadcast()
		a.mu.Unlock()
	}
}

// finish copies the rows of a group to their caches and says so.
func (a *ahead) finish(g *group) error {
	total := 0
	for i := range g.pieces {
		total += len(g.pieces[i].Units)
	}
	err := g.err
	for i := range g.pieces {
		p := &g.pieces[i]
		s, n := &a.f.layers[p.layer], &a.layers[p.layer]
		if err == nil && p.first {
			n.copied = s.cache.Delete(s.pending)
			s.pending = append(s.pending[:0], n.decision.Evict...)
		}
		if err == nil {
			err = s.cache.Insert(p.Units, g.staging[p.offset:], p.Plan.Records)
		}
		a.mu.Lock()
		n.took += g.took * units.Nanos(len(p.Units)) / units.Nanos(total)
		n.left--
		if err != nil && a.failed == nil {
			a.failed = err
		}
		a.changed.Broadcast()
		a.mu.Unlock()
	}
	return err
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
	ev.Requests, ev.Bytes, ev.Prefetch = n.requests, n.bytes, n.took
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
	for a.busy > 0 || len(a.queue) > 0 {
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
	err := errors.Join(a.f.store.Synchronise(), a.f.store.FreeStaging(a.staging))
	a.staging = nil
	return err
}
