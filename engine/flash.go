package engine

import (
	"errors"
	"fmt"

	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
)

// FlashConfig configures rows on flash.
type FlashConfig struct {
	Policy policy.Spec // which rows stay in memory from one token to the next
	Layout layout.Options
	// Capacity is the number of rows in each layer's cache (the paper's Req_i); nil = room for
	// every unit.
	Capacity []int
	// Room is the largest number of a layer's units that a step may need; the units beyond it are
	// left out and counted. 0 = no limit. With Room and a policy that keeps K units, caches of K +
	// Room rows never overflow.
	Room int
	// Staging is the size of the buffer for demand reads. It grows when a layer needs more, which
	// takes time.
	Staging int64
	// Prefetch is the size of the buffer for prefetches. Reads of a layer beyond half of it go in
	// batches: the rows of one batch are copied to the cache while the next is read
	// (layout.Planner.Batches). A size without room for one record is refused. 0 = the largest
	// layer's reads.
	Prefetch int64
	// Store keeps the rows; nil = main memory, for the CPU. The caller owns it.
	Store Store
	// Dense are the bundles of the first layers, whose rows are always resident (the dense prefix).
	Dense [][]byte
}

// Flash keeps recently needed rows in a row cache per layer and reads the others from flash: on
// demand, or as prefetches in the background (prefetch.go). The first layers may be dense.
type Flash struct {
	reader  flashio.Reader
	planner *layout.Planner
	layers  []flashLayer
	store   Store
	dense   [][]Row
	room    int   // units that a step may need of a layer; 0 = no limit
	bound   int64 // size of the prefetch buffer in bytes; 0 = the largest layer's reads
	limit   int64 // bytes of it for one prefetch batch (layout.Planner.BatchLimit)

	rows       []Row
	requests   []flashio.Request
	staging    []byte
	plan       layout.Plan
	decision   policy.Decision
	prefetcher *prefetcher // nil until the first prefetch
}

type flashLayer struct {
	policy policy.Policy
	cache  Cache
	// evicted by the policy after the last token; deleted together with the next insertions
	pending []uint32
}

// NewFlash returns rows that reader reads. It owns the reader from then on, but not after an error.
// Requests are aligned to the reader's needs.
func NewFlash(w *model.Weights, g layout.Geometry, reader flashio.Reader, cfg FlashConfig) (*Flash,
	error) {
	cfg.Layout.Align = max(cfg.Layout.Align, reader.Mode().Align)
	planner, err := layout.NewPlanner(g, cfg.Layout)
	if err != nil {
		return nil, err
	}
	if err := checkRecords(w, g); err != nil {
		return nil, err
	}
	limit, err := planner.BatchLimit(cfg.Prefetch)
	if err != nil {
		return nil, err
	}
	layers := len(w.Layers)
	if cfg.Capacity != nil && len(cfg.Capacity) != layers || len(cfg.Dense) > layers {
		return nil, fmt.Errorf("engine: row caches for %d layers, %d dense layers: the model has "+
			"%d layers", len(cfg.Capacity), len(cfg.Dense), layers)
	}
	if cfg.Store == nil {
		cfg.Store = &mainMemory{w, g.Record}
	}
	f := &Flash{reader: reader, planner: planner, layers: make([]flashLayer, layers),
		store: cfg.Store, bound: cfg.Prefetch, limit: limit, room: cfg.Room}
	for l, data := range cfg.Dense {
		rows, err := residentRows(w, l, data, g)
		if err != nil {
			return nil, err
		}
		f.dense = append(f.dense, rows)
	}
	for l := len(f.dense); l < layers; l++ {
		if err := f.addLayer(l, g, &cfg); err != nil {
			return nil, fmt.Errorf("engine: layer %d: %w", l, err)
		}
	}
	return f, f.grow(cfg.Staging)
}

// addLayer prepares the policy and the cache of a layer on flash.
func (f *Flash) addLayer(l int, g layout.Geometry, cfg *FlashConfig) error {
	capacity := g.Units
	if cfg.Capacity != nil {
		capacity = cfg.Capacity[l]
	}
	cache, err := cfg.Store.Cache(l, capacity)
	if err != nil {
		return err
	}
	p, err := policy.New(cfg.Policy, g.Units, policy.Options{Layer: l})
	if err != nil {
		return err
	}
	f.layers[l] = flashLayer{policy: p, cache: cache}
	return nil
}

// Masked implements Rows.
func (f *Flash) Masked(layer int) bool { return layer >= len(f.dense) }

// Layer implements Rows: decide, read, copy. A prefetched layer is waited for instead.
func (f *Flash) Layer(layer int, need mask.Mask, now func() units.Nanos, ev *LayerEvent) ([]Row,
	error) {
	start := now()
	ev.Predict, ev.IO, ev.Memory = Span{Start: start}, Span{Start: start}, Span{Start: start}
	if layer < len(f.dense) {
		ev.Hits += need.Count()
		return f.dense[layer], nil
	}
	s := &f.layers[layer]
	if f.prefetcher != nil {
		prefetched, err := f.prefetcher.await(layer, now, ev)
		if err != nil {
			return nil, err
		}
		if prefetched {
			err := f.collect(s, need)
			return f.rows, err
		}
	}
	s.policy.Step(need, &f.decision)
	f.planner.Plan(layer, f.decision.Load, &f.plan)
	if err := f.prepare(); err != nil {
		return nil, err
	}
	decided := now()
	if err := f.read(f.requests); err != nil {
		return nil, err
	}
	read := now()
	copied, err := s.update(&f.decision, f.plan.Records, f.staging)
	if err != nil {
		return nil, err
	}
	end := now()
	ev.Predict, ev.IO, ev.Memory = Span{start, decided - start}, Span{decided, read - decided},
		Span{read, end - read}
	ev.count(&f.decision, &f.plan)
	ev.Copied = units.Bytes(copied+len(f.decision.Load)) * f.planner.Geometry().Record
	err = f.collect(s, need)
	return f.rows, err
}

// read reads on the caller's goroutine. It waits for the prefetch batch that is being read.
func (f *Flash) read(requests []flashio.Request) error {
	if err := f.store.Synchronise(); err != nil {
		return err
	}
	if f.prefetcher == nil {
		return f.reader.ReadBatch(requests)
	}
	return f.prefetcher.readBatch(requests)
}

// count sets the counters of a layer's decisions.
func (ev *LayerEvent) count(d *policy.Decision, plan *layout.Plan) {
	ev.Hits, ev.Misses, ev.Evictions = d.Hits, len(d.Load), len(d.Evict)
	ev.Requests, ev.Bytes = len(plan.Requests), plan.Bytes
}

// update deletes the units that were evicted after the last token, inserts the records that were
// read, and keeps this token's evictions for the next update.
func (s *flashLayer) update(d *policy.Decision, records []int64, staging []byte) (copied int,
	err error) {
	copied = s.cache.Delete(s.pending)
	if err := s.cache.Insert(d.Load, staging, records); err != nil {
		return copied, err
	}
	s.pending = append(s.pending[:0], d.Evict...)
	return copied, nil
}

// prepare makes the plan's requests into the staging buffer.
func (f *Flash) prepare() error {
	if f.plan.Staging > int64(len(f.staging)) {
		if err := f.grow(f.plan.Staging + f.plan.Staging/4); err != nil {
			return err
		}
	}
	f.requests = f.requests[:0]
	for _, r := range f.plan.Requests {
		f.requests = append(f.requests, flashio.Request{Offset: r.Offset,
			Buf: f.staging[r.Buf : r.Buf+r.Length]})
	}
	return nil
}

// grow replaces the staging buffer by one of size bytes.
func (f *Flash) grow(size int64) error {
	if size == 0 {
		return nil
	}
	return replaceStaging(f.store, &f.staging, size)
}

// replaceStaging frees a buffer, once no copy uses it, and allocates a larger one.
func replaceStaging(s Store, buf *[]byte, size int64) error {
	err := errors.Join(s.Synchronise(), s.FreeStaging(*buf))
	if *buf = nil; err != nil {
		return err
	}
	*buf, err = s.Staging(size)
	return err
}

// collect lists the rows of the mask in neuron order.
func (f *Flash) collect(s *flashLayer, need mask.Mask) error {
	var err error
	f.rows, err = s.cache.Rows(f.rows[:0], need)
	return err
}

// resident implements Rows.
func (f *Flash) resident() [][]Row {
	all := make([][]Row, len(f.layers))
	copy(all, f.dense)
	return all
}

// elsewhere reports whether the backend cannot compute with the store's rows.
func (f *Flash) elsewhere(b Backend) bool {
	_, here := f.store.(*mainMemory)
	return here != (b == nil) || !here && any(f.store) != any(b)
}

// Reset implements Rows.
func (f *Flash) Reset() {
	if f.prefetcher != nil {
		f.prefetcher.drain()
	}
	for l := len(f.dense); l < len(f.layers); l++ {
		s := &f.layers[l]
		s.policy.Reset()
		s.cache.Reset()
		s.pending = s.pending[:0]
	}
}

// Close stops the prefetches, frees the staging buffers and closes the reader.
func (f *Flash) Close() error {
	var err error
	if f.prefetcher != nil {
		err = f.prefetcher.close()
	}
	err = errors.Join(err, f.store.Synchronise(), f.store.FreeStaging(f.staging))
	f.staging = nil
	for l := len(f.dense); l < len(f.layers); l++ {
		err = errors.Join(err, f.layers[l].cache.Close())
	}
	return errors.Join(err, f.reader.Close())
}

// Mode returns the reader's mode.
func (f *Flash) Mode() flashio.Mode { return f.reader.Mode() }
