package engine

import (
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/memory"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
)

// MemoryModel describes a model to the account of memory. g is the geometry of its image.
func MemoryModel(w *model.Weights, g layout.Geometry) memory.Model {
	s := w.Shape
	return memory.Model{DModel: s.DModel, Layers: s.Layers, Units: g.Units, Heads: s.Heads,
		KVHeads: s.KVHeads, HeadDim: s.HeadDim, Vocab: s.Vocab, Embed: w.Arch.Embed,
		Record: g.Record, Stride: g.Stride, Weights: w.Memory()}
}

// Memory returns the allocations of New for the account of memory, without rows and predictors.
// Zero values have the meaning of New. A feature other than FFNInput takes a vector per token.
func (c *Config) Memory(s model.Shape) memory.Config {
	m := memory.Config{Sequences: c.Sequences, Batch: c.Batch, Positions: c.Context,
		Prefetch: c.Schedule != schedule.Demand}
	if m.Positions == 0 {
		m.Positions = s.MaxPos
	}
	if c.FeatureKind != FFNInput {
		m.Features = 1
	}
	return m
}
