package engine

import (
	"fmt"
	"math/bits"

	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/engine/layout"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/engine/policy"
	"github.com/windrow-sim/windrow/engine/rowcache"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// Rows brings the feed-forward rows of a layer to memory. The two kinds are Resident and Flash.
type Rows interface {
	// Layer returns the rows of the needed units, ascending by unit and valid until the next call, and fills the Predict, IO and Memory spans
	// and the counters of ev. Resident rows are all of them, whatever is needed.
	Layer(layer int, need []uint64, now func() units.Nanos, ev *LayerEvent) ([]row, error)
	// Reset forgets what is in memory, at the start of a sequence.
	Reset()
	// Close frees the memory and the file.
	Close() error
}

// Resident holds every row in memory: the dense engine, which computes all units of each layer.
type Resident struct{ rows [][]row }

// NewResident takes each layer's bundles as bytes (units × stride) in g's geometry.
func NewResident(w *model.Weights, bundles [][]byte, g layout.Geometry) (*Resident, error) {
	if err := checkRecords(w, g); err != nil {
		return nil, err
	}
	r := &Resident{rows: make([][]row, len(bundles))}
	for l, data := range bundles {
		if len(data) < g.Units*int(g.Stride) {
			return nil, fmt.Errorf("engine: layer %d: bundles are %d bytes, want %d", l, len(data), g.Units*int(g.Stride))
		}
		r.rows[l] = make([]row, g.Units)
		for u := range r.rows[l] {
			at := u * int(g.Stride)
			r.rows[l][u] = row{uint32(u), data[at : at+int(g.Record)], upBias(&w.Layers[l], u)}
		}
	}
	return r, nil
}

// upBias is the bias of a unit's up row.
func upBias(l *model.Layer, unit int) float32 {
	if l.UpBias == nil {
		return 0
	}
	return l.UpBias[unit]
}

// checkRecords demands a geometry whose records are the model's, whole and in its order, and a host that can use them in place.
func checkRecords(w *model.Weights, g layout.Geometry) error {
	if g.Split > 1 || g.Order != nil {
		return fmt.Errorf("engine: a layout of %d parts per record, or of another order: the engine reads bundles in the model's order", g.Split)
	}
	if int(g.Record) != w.RecordBytes() || g.Units != w.Shape.DFFN {
		return fmt.Errorf("engine: %d units of %v per layer: the model has %d of %v", g.Units, g.Record, w.Shape.DFFN, units.Bytes(w.RecordBytes()))
	}
	_, err := ref.Bytes16(make([]byte, 2))
	return err
}

// Layer implements Rows.
func (r *Resident) Layer(layer int, _ []uint64, now func() units.Nanos, ev *LayerEvent) ([]row, error) {
	t := now()
	ev.Predict, ev.IO, ev.Memory = Span{Start: t}, Span{Start: t}, Span{Start: t}
	return r.rows[layer], nil
}

// Reset implements Rows.
func (r *Resident) Reset() {}

// Close implements Rows.
func (r *Resident) Close() error { return nil }

// FlashConfig says how rows are brought from flash.
type FlashConfig struct {
	Window int
	Layout layout.Options
	// Capacity is the number of rows that each layer's cache holds (the paper's Req_i); nil = room for every unit.
	Capacity []int
	// Staging is the size of the buffer that reads arrive in. It grows when a layer needs more, which takes time.
	Staging int64
}

// Flash keeps the rows of the last tokens in a row cache per layer and reads the others from flash.
type Flash struct {
	reader  flashio.Reader
	planner *layout.Planner
	layers  []flashLayer

	rows     []row
	requests []flashio.Request
	staging  []byte
	plan     layout.Plan
	decision policy.Decision
}

type flashLayer struct {
	policy  policy.Policy
	cache   *rowcache.Cache
	layer   *model.Layer
	pending []uint32 // evicted by the policy after the last token; deleted together with the next insertions
}

// NewFlash returns rows that are read by reader, which it owns from now on. Requests are aligned to the reader's needs.
//
// On an error the reader stays the caller's.
func NewFlash(w *model.Weights, g layout.Geometry, reader flashio.Reader, cfg FlashConfig) (*Flash, error) {
	cfg.Layout.Align = max(cfg.Layout.Align, reader.Mode().Align)
	planner, err := layout.NewPlanner(g, cfg.Layout)
	if err != nil {
		return nil, err
	}
	if err := checkRecords(w, g); err != nil {
		return nil, err
	}
	if cfg.Window < 0 || cfg.Capacity != nil && len(cfg.Capacity) != len(w.Layers) {
		return nil, fmt.Errorf("engine: window of %d tokens and row caches for %d layers: a window is 0 or more, the model has %d layers",
			cfg.Window, len(cfg.Capacity), len(w.Layers))
	}
	f := &Flash{reader: reader, planner: planner, layers: make([]flashLayer, len(w.Layers))}
	if err := f.grow(cfg.Staging); err != nil {
		return nil, err
	}
	for l := range f.layers {
		capacity := g.Units
		if cfg.Capacity != nil {
			capacity = cfg.Capacity[l]
		}
		cache, err := rowcache.New(g.Units, capacity, int(g.Record))
		if err != nil {
			return nil, fmt.Errorf("engine: layer %d: %w", l, err)
		}
		f.layers[l] = flashLayer{policy: policy.NewWindow(g.Units, cfg.Window), cache: cache, layer: &w.Layers[l]}
	}
	return f, nil
}

// Layer implements Rows: decide, read, copy.
func (f *Flash) Layer(layer int, need []uint64, now func() units.Nanos, ev *LayerEvent) ([]row, error) {
	s := &f.layers[layer]
	start := now()
	s.policy.Step(need, &f.decision)
	f.planner.Plan(layer, f.decision.Load, &f.plan)
	if err := f.prepare(); err != nil {
		return nil, err
	}
	decided := now()
	if err := f.reader.ReadBatch(f.requests); err != nil {
		return nil, err
	}
	read := now()
	copied := s.cache.Delete(s.pending)
	for i, u := range f.decision.Load {
		at, record := f.plan.Records[i], int64(f.planner.Geometry().Record)
		if err := s.cache.Insert(u, f.staging[at:at+record], upBias(s.layer, int(u))); err != nil {
			return nil, err
		}
	}
	s.pending = append(s.pending[:0], f.decision.Evict...)
	end := now()
	if err := f.collect(s, need); err != nil {
		return nil, err
	}

	ev.Predict, ev.IO, ev.Memory = Span{start, decided - start}, Span{decided, read - decided}, Span{read, end - read}
	ev.Hits, ev.Misses, ev.Evictions = f.decision.Hits, len(f.decision.Load), len(f.decision.Evict)
	ev.Requests, ev.Bytes = len(f.plan.Requests), f.plan.Bytes
	ev.Copied = units.Bytes(copied+len(f.decision.Load)) * f.planner.Geometry().Record
	return f.rows, nil
}

// prepare turns the plan into requests on the staging buffer.
func (f *Flash) prepare() error {
	if f.plan.Staging > int64(len(f.staging)) {
		if err := f.grow(f.plan.Staging + f.plan.Staging/4); err != nil {
			return err
		}
	}
	f.requests = f.requests[:0]
	for _, r := range f.plan.Requests {
		f.requests = append(f.requests, flashio.Request{Offset: r.Offset, Buf: f.staging[r.Buf : r.Buf+r.Length]})
	}
	return nil
}

// grow replaces the staging buffer by one of size bytes and touches it, so that no read pays for page faults.
func (f *Flash) grow(size int64) error {
	if size == 0 {
		return nil
	}
	flashio.FreeBuffer(f.staging)
	if f.staging = flashio.AlignedBuffer(int(size), stagingAlign); f.staging == nil {
		return fmt.Errorf("engine: no memory for a staging buffer of %v: %w; use a smaller window or --chunk", units.Bytes(size), flashio.ErrEnvironment)
	}
	clear(f.staging)
	return nil
}

// stagingAlign suits every direct reader: no file system asks for more than a page.
const stagingAlign = 4096

// collect lists the rows of the mask in neuron order.
func (f *Flash) collect(s *flashLayer, mask []uint64) error {
	f.rows = f.rows[:0]
	for i, word := range mask {
		for ; word != 0; word &= word - 1 {
			u := uint32(i*64 + bits.TrailingZeros64(word))
			record, bias, ok := s.cache.Row(u)
			if !ok {
				return fmt.Errorf("unit %d is needed but not in the row cache", u)
			}
			f.rows = append(f.rows, row{u, record, bias})
		}
	}
	return nil
}

// Reset implements Rows.
func (f *Flash) Reset() {
	for l := range f.layers {
		s := &f.layers[l]
		s.policy.Reset()
		s.cache.Reset()
		s.pending = s.pending[:0]
	}
}

// Close frees the staging buffer and closes the reader.
func (f *Flash) Close() error {
	flashio.FreeBuffer(f.staging)
	f.staging = nil
	return f.reader.Close()
}

// Mode says how the reads are really done.
func (f *Flash) Mode() flashio.Mode { return f.reader.Mode() }

// bring fetches the rows that the tokens of a step need of its layer, and notes the times.
func (e *Engine) bring(s *step) error {
	s.ev.Attention.Dur = e.now() - s.ev.Attention.Start
	if e.masked {
		clear(e.need)
		for i := range s.tokens {
			if len(s.tokens[i].Masks) <= s.l {
				return fmt.Errorf("no mask: a flash-resident engine needs the masks of a recorded trace of the same tokens")
			}
			for j, word := range s.tokens[i].Masks[s.l] {
				e.need[j] |= word
			}
		}
	}
	rows, err := e.rows.Layer(s.l, e.need, e.now, &s.ev)
	if err != nil {
		return err
	}
	s.rows = rows
	s.ev.FFN.Start = s.ev.Memory.Start + s.ev.Memory.Dur
	return nil
}
