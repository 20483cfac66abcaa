package model

import (
	"fmt"

	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// Shape is the shape of a model. It has the fields of traces.Shape in the same order, so that one
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
	Rows      int `json:"rows_per_unit"` // P: 2 (up, down) or 3 (gate, up, down)
	DTypeSize int `json:"dtype_bytes"`   // bytes per resident weight
}

// RecordBytes returns the size of one neuron's record without padding, with rows in the given
// format.
func (s Shape) RecordBytes(bundles ref.Format) units.Bytes {
	return units.Bytes(s.Rows * bundles.Size(s.DModel))
}

// positionOffset is the number of rows of OPT's position table before that of position 0.
const positionOffset = 2

// Bounds far above every known model, so that the product of two dimensions and a layer count fits
// into an int64.
const (
	maxDim    = 1 << 20
	maxTable  = 1 << 24
	maxLayers = 1 << 12
)

// check demands a shape that the engine can run.
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
			return fmt.Errorf("%w: %s is %d; 1 to %d are possible", checkpoint.ErrFormat, d.name,
				d.value, d.max)
		}
	}
	switch {
	case s.KVHeads < 1 || s.KVHeads > s.Heads || s.Heads%s.KVHeads != 0:
		return fmt.Errorf("%w: kv_heads %d of %d heads; a divisor is wanted", checkpoint.ErrFormat,
			s.KVHeads, s.Heads)
	case s.Heads*s.HeadDim > maxDim:
		return fmt.Errorf("%w: %d heads of %d", checkpoint.ErrFormat, s.Heads, s.HeadDim)
	case s.Rows != 2 && s.Rows != 3:
		return fmt.Errorf("%w: %d rows per neuron; 2 (up, down) and 3 (gate, up, down) are known",
			checkpoint.ErrUnsupported, s.Rows)
	case s.DTypeSize != 2 && s.DTypeSize != 4:
		return fmt.Errorf("%w: weights of %d bytes; 2 and 4 are known", checkpoint.ErrUnsupported,
			s.DTypeSize)
	}
	return nil
}
