package engine

import (
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/kernels/cpu"
)

// processor is the Backend of the CPU. Its operations are complete when they return. attention.go,
// ffn.go and ends.go have the arithmetic.
type processor struct {
	w          *model.Weights
	arch       *model.Arch
	shape      model.Shape
	pool       *cpu.Pool // the engine's
	thresholds []float32
	// RoPE angles per position, of Arch.Rotary and of Arch.LocalRotary
	frequencies, local []float64
	check              [][]Row

	all, entries []activations // for the largest step, and for the current one
	sequences    []kvCache     // the KV cache, by sequence
	context      int
	scores       []float32 // (heads, context)
}

// activations are the vectors of one token of a step, all float32.
type activations struct {
	x, h, out  []float32               // (d_model)
	q, att     []float32               // (heads, head_dim)
	k, v       []float32               // (kv_heads, head_dim)
	act        []float32               // (d_ffn), by row of the step
	wide, head []float32               // embedding and logits
	kept       [FeatureKinds][]float32 // (d_model); nil for kinds that are not kept
}

// kvCache holds the keys and values of one sequence.
type kvCache struct {
	keys, vals []float32 // (layer, context, kv_heads, head_dim)
}

// Prepare implements Backend, like the methods that follow.
func (p *processor) Prepare(s *Setup) error {
	w := s.Weights
	*p = processor{
		w: w, arch: &w.Arch, shape: w.Shape, pool: p.pool, thresholds: s.Thresholds,
		frequencies: w.Arch.Rotary.Frequencies(s.Context),
		local:       w.Arch.LocalRotary.Frequencies(s.Context), check: s.Check,
		all: make([]activations, s.Batch), sequences: make([]kvCache, s.Sequences),
		context: s.Context,
		scores:  make([]float32, w.Shape.Heads*s.Context),
	}
	d, qDim, kvDim := w.Shape.DModel, w.Shape.Heads*w.Shape.HeadDim, w.Shape.KVHeads*w.Shape.HeadDim
	floats := func(n int) []float32 { return make([]float32, n) }
	for i := range p.all {
		p.all[i] = activations{
			x: floats(d), h: floats(d), out: floats(d), q: floats(qDim), att: floats(qDim),
			k: floats(kvDim), v: floats(kvDim),
			act: floats(w.Shape.DFFN), wide: floats(w.Arch.Embed), head: floats(w.Shape.Vocab),
		}
		for k, kept := range s.Kept {
			if kept {
				p.all[i].kept[k] = floats(d)
			}
		}
	}
	for i := range p.sequences {
		n := w.Shape.Layers * s.Context * kvDim
		p.sequences[i] = kvCache{floats(n), floats(n)}
	}
	return nil
}

// Release leaves the memory to the garbage collector.
func (p *processor) Release() error { return nil }

// Reset has no operation to wait for.
func (p *processor) Reset() {}

// Wait returns at once: operations are complete when they return.
func (p *processor) Wait() error { return nil }

// Clock has no device clock to switch.
func (p *processor) Clock(bool) {}

// Times returns zeros: there is no device clock.
func (p *processor) Times() DeviceTimes { return DeviceTimes{} }

// Keep copies the token's vectors.
func (p *processor) Keep(_ *Step, k FeatureKind) {
	for i := range p.entries {
		a := &p.entries[i]
		if k == AttentionOutput {
			copy(a.kept[k], a.out)
		} else {
			copy(a.kept[k], a.x)
		}
	}
}

// Feature returns the token's own vector.
func (p *processor) Feature(_ *Step, i int, k FeatureKind) ([]float32, error) {
	if k == FFNInput {
		return p.entries[i].h, nil
	}
	return p.entries[i].kept[k], nil
}

// Collect does nothing: FFN has called Step.Collect.
func (p *processor) Collect(*Step) error { return nil }

// Logits returns the token's own vector.
func (p *processor) Logits(_ *Step, i int) ([]float32, error) { return p.entries[i].head, nil }
