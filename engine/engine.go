package engine

import (
	"fmt"
	"runtime"
	"time"

	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/cpu"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// Config says how to run a model. The zero value is usable.
type Config struct {
	Threads  int      // compute threads; 0 = all cores
	Context  int      // positions to keep keys and values for; 0 = as many as the model has
	Observer Observer // may be nil
}

// Token is one input of the model.
type Token struct {
	Seq     int
	Pos     int    // position in the sequence, from 0
	ID      uint32 // vocabulary id
	Prefill bool   // part of the prompt
	// Masks are the active units by layer, needed by Flash rows; nil for Resident rows.
	Masks [][]uint64
}

// Engine holds the state of one sequence. It is not safe for concurrent use.
type Engine struct {
	w        *model.Weights
	shape    model.Shape
	rows     Rows
	masked   bool // rows are those of a mask, not all
	pool     *cpu.Pool
	observer Observer
	began    time.Time

	// One token's activations, all float32: x, h, out (d), qkv (3, d), logits (vocab), act (d_ffn).
	x, h, out, qkv, logits, act []float32
	values                      []float32 // values of the active units, ascending
	active                      []row     // their rows
	mask                        []uint64
	scores                      []float32 // (heads, context)
	keys, vals                  []float32 // (layer, context, d)
	context, next               int
}

// New returns an engine over the resident weights and the given rows. Close the engine, then the rows.
func New(w *model.Weights, rows Rows, cfg Config) (*Engine, error) {
	s := w.Shape
	if cfg.Context == 0 {
		cfg.Context = s.MaxPos
	}
	if cfg.Context < 1 || cfg.Context > s.MaxPos {
		return nil, fmt.Errorf("engine: context of %d positions: the model has 1 to %d", cfg.Context, s.MaxPos)
	}
	const mostThreads = 1024 // beyond that only the waking costs
	if cfg.Threads < 0 || cfg.Threads > mostThreads {
		return nil, fmt.Errorf("engine: %d threads: it must be 0 (all cores) to %d", cfg.Threads, mostThreads)
	}
	if cfg.Threads == 0 {
		cfg.Threads = runtime.GOMAXPROCS(0)
	}
	d := s.DModel
	floats := func(n int) []float32 { return make([]float32, n) }
	_, masked := rows.(*Flash)
	return &Engine{
		w: w, shape: s, rows: rows, masked: masked, pool: cpu.NewPool(cfg.Threads), observer: cfg.Observer, began: time.Now(),
		x: floats(d), h: floats(d), out: floats(d), qkv: floats(3 * d), logits: floats(s.Vocab), act: floats(s.DFFN),
		mask:   make([]uint64, (s.DFFN+63)/64),
		scores: floats(s.Heads * cfg.Context),
		keys:   floats(s.Layers * cfg.Context * d), vals: floats(s.Layers * cfg.Context * d),
		context: cfg.Context,
	}, nil
}

// Close stops the worker threads.
func (e *Engine) Close() { e.pool.Close() }

// Reset starts a new sequence: positions begin at 0 and the rows in memory are forgotten.
func (e *Engine) Reset() {
	e.next = 0
	e.rows.Reset()
}

// Observe replaces the observer.
func (e *Engine) Observe(o Observer) { e.observer = o }

// now is the monotonic time since the engine was made.
func (e *Engine) now() units.Nanos { return units.Nanos(time.Since(e.began)) }

// Forward runs one token through the model and returns the logits over the vocabulary, valid until the next call. Tokens of
// a sequence come in order of position. After an error the sequence must start again with Reset.
func (e *Engine) Forward(t Token) ([]float32, error) {
	switch {
	case t.Pos != e.next:
		return nil, fmt.Errorf("engine: token at position %d, but the sequence is at %d", t.Pos, e.next)
	case t.Pos >= e.context:
		return nil, fmt.Errorf("engine: position %d is beyond the context of %d; ask for fewer tokens or a larger context", t.Pos, e.context)
	case int(t.ID) >= e.shape.Vocab:
		return nil, fmt.Errorf("engine: token id %d is outside the vocabulary of %d; the prompt was made for another tokenizer", t.ID, e.shape.Vocab)
	}
	lap := e.now()
	e.embed(t.ID, t.Pos)
	for l := range e.w.Layers {
		layer := &e.w.Layers[l]
		ev := LayerEvent{Layer: l, Attention: Span{Start: lap}}

		layerNorm(e.h, e.x, &layer.AttnNorm)
		e.attention(l, t.Pos)
		add(e.x, e.out)
		lap = e.now()
		ev.Attention.Dur = lap - ev.Attention.Start

		rows, err := e.rows.Layer(l, t.Masks, e.now, &ev)
		if err != nil {
			return nil, fmt.Errorf("engine: sequence %d, position %d, layer %d: %w", t.Seq, t.Pos, l, err)
		}
		ev.FFN.Start = ev.Memory.Start + ev.Memory.Dur
		layerNorm(e.h, e.x, &layer.FFNNorm)
		e.ffn(rows, layer.DownBias)
		add(e.x, e.out)
		lap = e.now()
		ev.FFN.Dur = lap - ev.FFN.Start

		if e.observer != nil {
			ev.Active, ev.Values = e.mask, e.values
			if err := e.observer.Layer(&ev); err != nil {
				return nil, err
			}
			lap = e.now()
		}
	}
	layerNorm(e.h, e.x, &e.w.FinalNorm)
	e.pool.MatVec(e.w.Embed, e.shape.Vocab, e.shape.DModel, e.h, e.logits)
	e.next++
	if e.observer != nil {
		return e.logits, e.observer.Token(&TokenEvent{Token: t, Other: Span{lap, e.now() - lap}})
	}
	return e.logits, nil
}

// positionOffset is OPT's: row 2 of the position table is position 0.
const positionOffset = 2

func (e *Engine) embed(id uint32, pos int) {
	d := e.shape.DModel
	word := e.w.Embed[int(id)*d : (int(id)+1)*d]
	place := e.w.Pos[(pos+positionOffset)*d : (pos+positionOffset+1)*d]
	for i := range e.x {
		e.x[i] = ref.F16ToF32(word[i]) + ref.F16ToF32(place[i])
	}
}

// row is one unit to compute: its record is the up row then the down row, each d_model long.
type row struct {
	unit   uint32
	record []uint16
	bias   float32
}

// ffn computes out = downBias + Σ relu(up_i·h + bias_i)·down_i over the given rows, which ascend by unit, and sets mask to the
// units whose value is above zero. The sum over rows is in neuron order for every element of out, whatever the number
// of threads, which is what makes flash-resident and dense runs bit-equal.
//
// A flash-resident engine adds rows of value zero like the others, as the paper's does with every predicted row: what a mask
// costs does not depend on the weights. With true masks there is no such row.
func (e *Engine) ffn(rows []row, downBias []float32) {
	d := e.shape.DModel
	const grainBytes = 128 << 10 // less work than this is faster on one thread
	e.pool.Run(len(rows), max(1, grainBytes/(2*d)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			next := rows[min(i+1, len(rows)-1)].record // scattered rows: ask the cache for the next one early
			e.act[i] = cpu.DotNext(rows[i].record[:d], e.h, next[:d]) + rows[i].bias
		}
	})
	clear(e.mask)
	e.active, e.values = e.active[:0], e.values[:0]
	for i := range rows {
		v := max(e.act[i], 0)
		if v > 0 {
			e.mask[rows[i].unit/64] |= 1 << (rows[i].unit % 64)
		}
		if v > 0 || e.masked {
			e.active, e.values = append(e.active, rows[i]), append(e.values, v)
		}
	}
	copy(e.out, downBias)
	columns := max(64, grainBytes/(2*max(len(e.active), 1)))
	e.pool.Run(d, columns, func(lo, hi int) {
		for i := range e.active {
			next := e.active[min(i+1, len(e.active)-1)].record
			cpu.AxpyNext(e.values[i], e.active[i].record[d+lo:d+hi], e.out[lo:hi], next[d+lo:d+hi])
		}
	})
}
