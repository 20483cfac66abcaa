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

// prefetcher reads prefetch batches in the background. A submission is the batches that are read
// together. One goroutine reads a submission into the staging buffer. Meanwhile another scatters
// the rows of the submission before it to their caches. The cache of a layer belongs to the
// prefetcher from Flash.Prefetch until await.
//
// Prefetches and demand reads share the reader: a demand read waits for the submission that is
// being read.
type prefetcher struct {
	f       *Flash
	staging []byte
	reading chan struct{}    // full while the reader is used: a lock that a wait may hold
	read    chan *submission // complete, not scattered yet

	mu      sync.Mutex
	changed *sync.Cond
	queue   []batch    // not submitted yet
	count   int        // calls of Prefetch
	layers  []prefetch // by layer
	room    layout.Staging
	busy    int // submissions that are read or scattered
	closed  bool
	failed  error
	stopped chan struct{}
}

// submission is batches of one prefetch that are read together. Which ones does not depend on time.
type submission struct {
	batches []batch
	staging []byte
	took    units.Nanos // to read
	err     error
}

// batch is a prefetch batch of one layer.
type batch struct {
	layer    int
	prefetch int  // number of the call of Prefetch
	first    bool // of its layer
	layout.Batch
	offset int64 // in the staging buffer
}

// prefetch is what was decided for one layer of one token, and what came of it so far.
type prefetch struct {
	active   bool // not awaited yet
	left     int  // batches that are not scattered
	decision policy.Decision
	requests int
	bytes    units.Bytes
	copied   int
	took     units.Nanos // to read, in the background
}

// startPrefetcher starts the background. The staging buffer has the size that the configuration
// asks for, or that of the buffer of demand reads, which the largest layer's reads fit: no token
// waits for memory. It may be called again.
func (f *Flash) startPrefetcher() error {
	if f.prefetcher != nil {
		return nil
	}
	p := &prefetcher{f: f, layers: make([]prefetch, len(f.layers)),
		reading: make(chan struct{}, 1), read: make(chan *submission, 1),
		stopped: make(chan struct{}), room: layout.Staging{Room: f.bound}}
	p.changed = sync.NewCond(&p.mu)
	room := f.bound
	if room == 0 {
		room = layout.Rounded(int64(len(f.staging)))
	}
	if err := p.allocate(room); err != nil {
		return err
	}
	f.prefetcher = p
	go p.readSubmissions()
	go p.scatterSubmissions()
	return nil
}

// allocate replaces the staging buffer by one of size bytes, unless it is that large. Nothing may
// be reading into it.
func (p *prefetcher) allocate(size int64) error {
	if size <= int64(len(p.staging)) {
		return nil
	}
	return replaceStaging(p.f.store, &p.staging, size)
}

// Prefetch decides what the layers from first to end (exclusive) need by their masks, and starts to
// read it in the background. masks are by layer of the model. Layer must be called for each of
// these layers, in order, before the next Prefetch for it.
func (f *Flash) Prefetch(first, end int, masks []mask.Mask) error {
	if err := f.startPrefetcher(); err != nil {
		return err
	}
	var batches []batch
	for l := max(first, len(f.dense)); l < end; l++ {
		batches = append(batches, f.prefetcher.decide(l, masks[l])...)
	}
	return f.prefetcher.enqueue(batches)
}

// prefetching reports whether a layer has a prefetch that was not awaited.
func (f *Flash) prefetching(layer int) bool {
	return f.prefetcher != nil && f.prefetcher.layers[layer].active
}

// decide asks the policy, and cuts the loads into prefetch batches.
func (p *prefetcher) decide(l int, need mask.Mask) (batches []batch) {
	f, s, n := p.f, &p.f.layers[l], &p.layers[l]
	s.policy.Step(need, &n.decision)
	*n = prefetch{active: true, decision: n.decision}
	for i, b := range f.planner.Batches(l, n.decision.Load, f.limit, nil) {
		n.requests += len(b.Plan.Requests)
		n.bytes += b.Plan.Bytes
		batches = append(batches, batch{layer: l, first: i == 0, Batch: b})
	}
	n.left = len(batches)
	if n.left == 0 { // nothing to read: what the last token evicted leaves now
		n.copied = s.cache.Delete(s.pending)
		s.pending = append(s.pending[:0], n.decision.Evict...)
	}
	return batches
}

// enqueue hands the batches of a prefetch to the background. Without a configured size, the room in
// the staging buffer grows to the largest of them, however much is allocated.
func (p *prefetcher) enqueue(batches []batch) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
	largest := int64(0)
	for i := range batches {
		batches[i].prefetch = p.count
		largest = max(largest, layout.Rounded(batches[i].Plan.Staging))
	}
	if largest > int64(len(p.staging)) {
		for p.busy > 0 || len(p.queue) > 0 {
			p.changed.Wait()
		}
		if err := p.allocate(largest); err != nil {
			return err
		}
	}
	p.room.Room = max(p.room.Room, largest)
	p.queue = append(p.queue, batches...)
	p.changed.Broadcast()
	return nil
}

// readSubmissions is the goroutine that reads.
func (p *prefetcher) readSubmissions() {
	defer close(p.read)
	var submissions [2]submission // one is read, one is scattered
	var requests []flashio.Request
	for turn := 0; ; turn = 1 - turn {
		s := &submissions[turn]
		if !p.next(s) {
			return
		}
		start := time.Now()
		requests = requests[:0]
		for i := range s.batches {
			b := &s.batches[i]
			for _, r := range b.Plan.Requests {
				at := b.offset + r.Buf
				requests = append(requests, flashio.Request{Offset: r.Offset,
					Buf: s.staging[at : at+r.Length]})
			}
		}
		s.err = p.readBatch(requests)
		s.took = units.Nanos(time.Since(start))
		p.read <- s
	}
}

// next waits for batches and for room in the staging buffer, and fills a submission. It returns
// false when the background ends.
func (p *prefetcher) next(s *submission) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		waiting := 0
		for waiting < len(p.queue) && p.queue[waiting].prefetch == p.queue[0].prefetch {
			waiting++
		}
		n, size := p.room.Together(waiting, func(i int) (int64, int) {
			return p.queue[i].Plan.Staging, len(p.queue[i].Plan.Requests)
		})
		at, ok := int64(0), false
		if n > 0 {
			at, ok = p.room.Place(size)
		}
		if ok {
			s.batches, s.staging = append(s.batches[:0], p.queue[:n]...), p.staging
			for i := range s.batches {
				s.batches[i].offset = at
				at += layout.Rounded(s.batches[i].Plan.Staging)
			}
			p.queue = p.queue[n:]
			p.busy++
			return true
		}
		if n == 0 && p.closed {
			return false
		}
		p.changed.Wait()
	}
}

// scatterSubmissions is the goroutine that moves rows to their caches.
func (p *prefetcher) scatterSubmissions() {
	defer close(p.stopped)
	for s := range p.read {
		err := p.scatter(s)
		if failed := p.f.store.Synchronise(); err == nil {
			err = failed
		}
		p.mu.Lock()
		p.fail(err)
		p.room.Release()
		p.busy--
		p.changed.Broadcast()
		p.mu.Unlock()
	}
}

// scatter copies the rows of a submission to their caches and wakes those that await them.
func (p *prefetcher) scatter(s *submission) error {
	total := 0
	for i := range s.batches {
		total += len(s.batches[i].Units)
	}
	err := s.err
	for i := range s.batches {
		b := &s.batches[i]
		layer, n := &p.f.layers[b.layer], &p.layers[b.layer]
		if err == nil && b.first {
			n.copied = layer.cache.Delete(layer.pending)
			layer.pending = append(layer.pending[:0], n.decision.Evict...)
		}
		if err == nil {
			err = layer.cache.Insert(b.Units, s.staging[b.offset:], b.Plan.Records)
		}
		p.mu.Lock()
		n.took += s.took * units.Nanos(len(b.Units)) / units.Nanos(total)
		n.left--
		p.fail(err)
		p.changed.Broadcast()
		p.mu.Unlock()
	}
	return err
}

// fail keeps the first error. The mutex must be held.
func (p *prefetcher) fail(err error) {
	if p.failed == nil {
		p.failed = err
	}
}

// await waits until the rows of a layer's prefetch are in their cache, and notes its counters and
// times. It returns false when the layer has no prefetch.
func (p *prefetcher) await(layer int, now func() units.Nanos, ev *LayerEvent) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := &p.layers[layer]
	if !n.active {
		return false, nil
	}
	start := now()
	for n.left > 0 && p.failed == nil {
		p.changed.Wait()
	}
	end := now()
	n.active = false
	ev.Predict, ev.IO, ev.Memory = Span{Start: start}, Span{start, end - start}, Span{Start: end}
	ev.Hits, ev.Misses, ev.Evictions = n.decision.Hits, len(n.decision.Load), len(n.decision.Evict)
	ev.Requests, ev.Bytes, ev.Prefetch = n.requests, n.bytes, n.took
	ev.Copied = units.Bytes(n.copied+len(n.decision.Load)) * p.f.planner.Geometry().Record
	return true, p.failed
}

// readBatch reads on the caller's goroutine, once the reader is free.
func (p *prefetcher) readBatch(requests []flashio.Request) error {
	p.reading <- struct{}{}
	defer func() { <-p.reading }()
	return p.f.reader.ReadBatch(requests)
}

// drain drops the prefetches that were not awaited. It waits for what is being read and scattered.
func (p *prefetcher) drain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = nil
	for p.busy > 0 {
		p.changed.Wait()
	}
	for l := range p.layers {
		p.layers[l].active = false
	}
	p.failed = nil
}

// close ends the background and frees its staging buffer.
func (p *prefetcher) close() error {
	p.drain()
	p.mu.Lock()
	p.closed = true
	p.changed.Broadcast()
	p.mu.Unlock()
	<-p.stopped
	err := errors.Join(p.f.store.Synchronise(), p.f.store.FreeStaging(p.staging))
	p.staging = nil
	return err
}
