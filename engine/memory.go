package engine

import (
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/units"
)

// Part is one part of the memory that a run needs.
type Part struct {
	Name  string      `json:"name"`
	Bytes units.Bytes `json:"bytes"`
}

// Sum is the size of all parts.
func Sum(parts []Part) (total units.Bytes) {
	for _, p := range parts {
		total += p.Bytes
	}
	return total
}

// Memory is what an engine with a configuration needs besides rows: the resident weights, keys and
// values, and the activations of a step. Zero values of the configuration count as New takes them;
// predictors count as an observer of the kind that they take.
func Memory(w *model.Weights, cfg Config) []Part {
	s := w.Shape
	sequences := max(cfg.Sequences, 1)
	batch, context := max(cfg.Batch, sequences), cfg.Context
	if context == 0 {
		context = s.MaxPos
	}
	qDim, kvDim := s.Heads*s.HeadDim, s.KVHeads*s.HeadDim
	lane := 3*s.DModel + 2*qDim + 2*kvDim + s.DFFN + w.Arch.Embed + s.Vocab
	if cfg.FeatureKind != FFNInput {
		lane += s.DModel
	}
	const number = 4 // bytes of a float32
	return []Part{
		{"resident weights", w.Bytes()},
		{"keys and values", units.Bytes(sequences) * units.Bytes(2*number*s.Layers) *
			units.Bytes(context*kvDim)},
		// Of the rows of a step also their values, and which of them are added up.
		{"activations", units.Bytes(number) * units.Bytes(batch*(lane+2*s.DFFN)+s.Heads*context)},
	}
}

// FlashMemory is what flash-resident rows need: the row caches with so many rows per layer, and the
// staging buffer.
func FlashMemory(g layout.Geometry, capacity []int, staging int64) []Part {
	const bias, slots = 4, 8 // of a row; of a unit: where its row is, and the other way round
	rows := units.Bytes(0)
	for _, n := range capacity {
		rows += units.Bytes(n)*(g.Record+bias) + units.Bytes(g.Units)*slots
	}
	return []Part{{"row caches", rows}, {"staging buffer", units.Bytes(staging)}}
}
