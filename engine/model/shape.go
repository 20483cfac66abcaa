package model

import (
	"fmt"

	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/internal/units"
)

// Shape is the shape of a model. It has the same fields as the Shape of package traces, in the same order, so that one
// converts to the other; the engine does not import traces.
type Shape struct {
	DModel    int `json:"d_model"`
	Layers    int `json:"layers"`
	DFFN      int `json:"d_ffn"` // neurons per layer
	Heads     int `json:"heads"`
	KVHeads   int `json:"kv_heads"`
	HeadDim   int `json:"head_dim"`
	Vocab     int `json:"vocab"`
	MaxPos    int `json:"max_positions"`
	Rows      int `json:"rows_per_unit"` // P: 2 for OPT (up, down)
	DTypeSize int `json:"dtype_bytes"`   // bytes per weight
}

// RecordBytes is the size of one neuron's record without padding: P·d_model·bytes.
func (s Shape) RecordBytes() units.Bytes { return units.Bytes(s.Rows * s.DModel * s.DTypeSize) }

// positionOffset is how many rows OPT's position table has before that of position 0.
const positionOffset = 2

// Bounds far above every known model, so that products of two dimensions and a layer count stay in an int64.
const (
	maxDim    = 1 << 20
	maxTable  = 1 << 24
	maxLayers = 1 << 12
)

// check demands a shape that the OPT engine can run.
func (s Shape) check() error {
	for _, d := range []struct {
		name       string
		value, max int
	}{
		{"d_model", s.DModel, maxDim}, {"d_ffn", s.DFFN, maxDim}, {"layers", s.Layers, maxLayers},
		{"heads", s.Heads, maxDim}, {"head_dim", s.HeadDim, maxDim},
		{"vocab", s.Vocab, maxTable}, {"max_positions", s.MaxPos, maxTable},
	} {
		if d.value < 1 || d.value > d.max {
			return fmt.Errorf("%w: %s is %d; 1 to %d are possible", checkpoint.ErrFormat, d.name, d.value, d.max)
		}
	}
	switch {
	case s.Heads*s.HeadDim != s.DModel:
		return fmt.Errorf("%w: %d heads of %d do not make d_model %d", checkpoint.ErrFormat, s.Heads, s.HeadDim, s.DModel)
	case s.KVHeads != s.Heads:
		return fmt.Errorf("%w: kv_heads %d of %d heads; OPT has as many", checkpoint.ErrUnsupported, s.KVHeads, s.Heads)
	case s.Rows != 2 || s.DTypeSize != 2:
		return fmt.Errorf("%w: %d rows of %d-byte weights per neuron; OPT has 2 rows of F16", checkpoint.ErrUnsupported, s.Rows, s.DTypeSize)
	}
	return nil
}
