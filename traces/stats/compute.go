package stats

import (
	"fmt"
	"math"
	"runtime"
	"sync"

	"github.com/windrow-sim/windrow/traces"
)

// batchTokens is the number of tokens that are read before the layers are stepped. A layer's state
// then stays in the cache of its core for some tokens, and the masks of the batch still fit.
const batchTokens = 32

// Options of Compute.
type Options struct {
	// Workers is the number of goroutines that share the layers; 0 means one per processor. The
	// result does not depend on it.
	Workers int
	// Predicted measures the predicted masks, not the true ones.
	Predicted bool
	// Progress, if not nil, is called now and then with the number of tokens done and the total.
	Progress func(done, total int)
}

// Compute measures a trace in one pass. The tokens must come in the order of (sequence, position).
// Each sequence starts with an empty window.
func Compute(src traces.Source, opt Options) (*Stats, error) {
	c, err := newCollector(src, opt)
	if err != nil {
		return nil, err
	}
	total := src.Tokens()
	for from := 0; from < total; from += batchTokens {
		n := min(batchTokens, total-from)
		for i := range n {
			if err := src.Token(from+i, &c.batch[i]); err != nil {
				return nil, fmt.Errorf("stats: token %d: %w", from+i, err)
			}
			if err := c.accept(i, from+i); err != nil {
				return nil, fmt.Errorf("stats: token %d: %w", from+i, err)
			}
		}
		c.stepLayers(n)
		if opt.Progress != nil {
			opt.Progress(from+n, total)
		}
	}
	return c.result(), nil
}

// collector holds the state of a Compute.
type collector struct {
	head    traces.Header
	opt     Options
	compare bool // predicted masks exist
	layers  []*layerPass
	batch   [batchTokens]traces.Token
	starts  [batchTokens]bool // the token begins a sequence

	sequences traces.Sequences

	out  Stats
	seq  uint32
	pos  uint32
	tail int                  // tokens of the current sequence
	full [MaxWindow + 2]int64 // full windows of k tokens, by k
}

func newCollector(src traces.Source, opt Options) (*collector, error) {
	h := src.Header()
	switch {
	case h.Layers <= 0 || h.Units <= 0:
		return nil, fmt.Errorf("stats: header: %d layers of %d units: nothing to measure", h.Layers,
			h.Units)
	case opt.Predicted && !h.HasPredicted:
		return nil, fmt.Errorf("stats: predicted masks: the trace has none; measure the true " +
			"masks, or record with a predictor")
	case src.Tokens() > math.MaxInt32:
		return nil, fmt.Errorf("stats: %d tokens: more than 2³¹; split the trace", src.Tokens())
	}
	c := &collector{head: *h, opt: opt, compare: h.HasPredicted, layers: make([]*layerPass,
		h.Layers)}
	for l := range c.layers {
		c.layers[l] = newLayerPass(h.Units)
	}
	for i := range c.batch {
		c.batch[i].Reuse = &traces.Buffer{} // no layer keeps a mask
	}
	return c, nil
}

// accept checks token i of the batch, token index of the trace, and counts what does not depend on
// layers.
func (c *collector) accept(i, index int) error {
	t := &c.batch[i]
	c.starts[i] = c.sequences.Begins(t.Seq)
	if !c.starts[i] && t.Pos <= c.pos || index > 0 && t.Seq < c.seq {
		return fmt.Errorf("sequence %d position %d comes after sequence %d position %d; sort "+
			"the trace", t.Seq, t.Pos, c.seq, c.pos)
	}
	// A step must not reach outside its layer's state.
	if err := c.head.CheckMasks("active", t.Active); err != nil {
		return err
	}
	if c.compare {
		if err := c.head.CheckMasks("predicted", t.Predicted); err != nil {
			return err
		}
	}
	c.seq, c.pos = t.Seq, t.Pos
	if c.starts[i] {
		c.endSequence()
	}
	c.tail++
	c.out.Tokens++
	if t.Phase == traces.Prefill {
		c.out.Prefill++
	} else {
		c.out.Decode++
	}
	return nil
}

// endSequence adds the windows of the finished sequence of c.tail tokens, if there is one.
func (c *collector) endSequence() {
	if c.tail == 0 {
		return
	}
	for k := range c.full {
		c.full[k] += int64(max(0, c.tail-max(k, 1)+1)) // k = 0: the number of tokens
	}
	c.out.Sequences++
	c.out.LongestSeq = max(c.out.LongestSeq, c.tail)
	if c.out.ShortestSeq == 0 || c.tail < c.out.ShortestSeq {
		c.out.ShortestSeq = c.tail
	}
	c.tail = 0
}

// stepLayers advances all layers by the first n tokens of the batch. Layers share no state, so the
// split between workers cannot change the result.
func (c *collector) stepLayers(n int) {
	workers := c.opt.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	if workers = min(workers, len(c.layers)); workers == 1 {
		c.stepRange(0, len(c.layers), n)
		return
	}
	c.stepParallel(workers, n)
}

func (c *collector) stepParallel(workers, n int) {
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() {
			c.stepRange(w*len(c.layers)/workers, (w+1)*len(c.layers)/workers, n)
		})
	}
	wait.Wait()
}

func (c *collector) stepRange(from, to, n int) {
	for l := from; l < to; l++ {
		p := c.layers[l]
		for i := range n {
			t := &c.batch[i]
			p.step(t.Masks(c.opt.Predicted)[l], c.starts[i])
			if c.compare {
				p.compare(t.Active[l], t.Predicted[l])
			}
		}
	}
}

// result ends the last sequence and turns the sums into Stats.
func (c *collector) result() *Stats {
	c.endSequence()
	s := &c.out
	s.Mask, s.MaxWindow, s.HasPredicted = "true", MaxWindow, c.compare
	if c.opt.Predicted {
		s.Mask = "predicted"
	}
	s.Layers, s.Units = c.head.Layers, c.head.Units
	var active, predicted, both int64
	for _, p := range c.layers {
		s.PerLayer = append(s.PerLayer, p.part(s.Units, s.Tokens, &c.full, c.compare))
		active, predicted, both = active+p.trueActive, predicted+p.predicted, both+p.both
	}
	s.Total = totalOf(s.PerLayer)
	s.Accesses = s.Total.Accesses
	if c.compare {
		s.Total.Predictor = predictorOf(active, predicted, both,
			int64(s.Units)*int64(s.Tokens)*int64(s.Layers))
	}
	return s
}

// totalOf adds the counts of all layers and averages their means. Full is the same in all layers.
func totalOf(layers []Part) Part {
	n := float64(len(layers))
	total := Part{Window: newWindows(), Reuse: Reuse{Exact: make([]int64, MaxWindow),
		Above64: []int64{}}}
	total.Active.Min, total.Active.Max = layers[0].Active.Min, layers[0].Active.Max
	for i := range layers {
		part := &layers[i]
		total.Accesses += part.Accesses
		total.NeverActive += part.NeverActive / n
		total.Active.Mean += part.Active.Mean / n
		total.Active.Min = min(total.Active.Min, part.Active.Min)
		total.Active.Max = max(total.Active.Max, part.Active.Max)
		total.Reuse.add(&part.Reuse)
		for k := range MaxWindow + 1 {
			total.Window.SAgg[k] += part.Window.SAgg[k] / n
			total.Window.Delta[k] += part.Window.Delta[k] / n
			total.Window.Full[k] = part.Window.Full[k]
			total.Window.Hits[k] += part.Window.Hits[k]
			total.Window.Misses[k] += part.Window.Misses[k]
		}
	}
	return total
}

func (r *Reuse) add(other *Reuse) {
	for i, n := range other.Exact {
		r.Exact[i] += n
	}
	for i, n := range other.Above64 {
		if i == len(r.Above64) {
			r.Above64 = append(r.Above64, 0)
		}
		r.Above64[i] += n
	}
	r.FirstUse += other.FirstUse
}
