package centroid

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/windrow-sim/windrow/internal/mask"
)

// Shape is the shape that a predictor is made for.
type Shape struct {
	// of the model, layer 0 included; layers 1 to Layers−1 are predicted
	Layers int `json:"layers"`
	// 2 (gate, up) for gated feed-forward layers, 1 for the others
	Projections int `json:"projections"`
	Units       int `json:"units"` // neurons in a layer
	Width       int `json:"width"` // elements of a feature
}

// The largest shapes: a larger one is a broken file, not a model.
const (
	maxLayers = 1 << 12
	maxUnits  = 1 << 20
	maxWidth  = 1 << 20
)

func (s Shape) check() error {
	switch {
	case s.Layers < 2 || s.Layers > maxLayers:
		return fmt.Errorf("layers %d: it must be 2 to %d, because layer 0 predicts the others",
			s.Layers, maxLayers)
	case s.Projections < 1 || s.Projections > 2:
		return fmt.Errorf("projections %d: it must be 2 (gate and up) or 1", s.Projections)
	case s.Units < 1 || s.Units > maxUnits:
		return fmt.Errorf("units %d: it must be 1 to %d", s.Units, maxUnits)
	case s.Width < 1 || s.Width > maxWidth:
		return fmt.Errorf("width %d: it must be 1 to %d", s.Width, maxWidth)
	}
	return nil
}

// heads is the number of centroids that are predicted for a token: 2·(L−1), or L−1 without a gate.
func (s Shape) heads() int { return (s.Layers - 1) * s.Projections }

// head returns the index of the head of a layer's projection.
func (s Shape) head(layer, projection int) int { return (layer-1)*s.Projections + projection }

// words is the number of 64-bit words of a mask.
func (s Shape) words() int { return mask.Words(s.Units) }

// Samples are tokens with their observations: the feature, which the predictor gets, and the masks,
// which it should find. Consecutive tokens of a document should be consecutive here, because the
// held-out part is the end.
//
// Feature and Mask must be safe for concurrent use.
type Samples interface {
	// Len is the number of tokens.
	Len() int
	Shape() Shape
	// Feature writes the layer-0 feature of token i (Shape.Width elements, all finite).
	Feature(i int, dst []float32) error
	// Mask writes which units of a layer (1 to Layers−1) passed the threshold for token i: in
	// projection 0 (gate, or the only one) or 1 (up). Bit u of the words stands for unit u; bits
	// beyond the last unit are 0.
	Mask(i, layer, projection int, dst mask.Mask) error
}

// Split divides samples in two: the last share of them (0 to 1, rounded down, at least one token if
// share is above 0) is held out. It does not split at random: neighbouring tokens resemble each
// other, so training would know the held-out part already.
func Split(s Samples, share float64) (train, held Samples, err error) {
	if !(share >= 0 && share < 1) {
		return nil, nil, fmt.Errorf("centroid: %w: held-out share %v: it must be 0 or more and "+
			"below 1", ErrOptions, share)
	}
	n := int(float64(s.Len()) * share)
	if share > 0 {
		n = max(n, 1)
	}
	if n >= s.Len() {
		return nil, nil, fmt.Errorf("centroid: %w: %d tokens are too few to hold some out; "+
			"record more", ErrSamples, s.Len())
	}
	return part{s, 0, s.Len() - n}, part{s, s.Len() - n, s.Len()}, nil
}

// part is the tokens [lo, hi) of its samples.
type part struct {
	Samples
	lo, hi int
}

func (p part) Len() int                           { return p.hi - p.lo }
func (p part) Feature(i int, dst []float32) error { return p.Samples.Feature(p.lo+i, dst) }
func (p part) Mask(i, layer, pr int, d mask.Mask) error {
	return p.Samples.Mask(p.lo+i, layer, pr, d)
}

// readFeature reads and checks a feature.
func readFeature(s Samples, i int, dst []float32) error {
	if err := s.Feature(i, dst); err != nil {
		return fmt.Errorf("centroid: feature of token %d: %w", i, err)
	}
	for j, v := range dst {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return fmt.Errorf("centroid: %w: feature of token %d: element %d is %v", ErrSamples, i,
				j, v)
		}
	}
	return nil
}

// readMask reads and checks a mask.
func readMask(s Samples, i, layer, projection int, dst mask.Mask) error {
	if err := s.Mask(i, layer, projection, dst); err != nil {
		return fmt.Errorf("centroid: mask of token %d, layer %d, projection %d: %w", i, layer,
			projection, err)
	}
	if !dst.Padded(s.Shape().Units) {
		return fmt.Errorf("centroid: %w: mask of token %d, layer %d, projection %d: a bit "+
			"beyond unit %d is set",
			ErrSamples, i, layer, projection, s.Shape().Units-1)
	}
	return nil
}

// readTruth writes the true units of a token: those that pass the threshold in every projection.
// scratch is a second mask.
func readTruth(s Samples, i, layer int, dst, scratch mask.Mask) error {
	if err := readMask(s, i, layer, 0, dst); err != nil {
		return err
	}
	if s.Shape().Projections == 1 {
		return nil
	}
	if err := readMask(s, i, layer, 1, scratch); err != nil {
		return err
	}
	dst.And(scratch)
	return nil
}

// Threshold sets dst to the units with values of a magnitude above at, which is 0 or more. dst is a
// mask of as many units as there are values. For a ReLU at is 0; a SiLU has no zeros and needs a
// Cutoff.
func Threshold(values []float32, at float32, dst mask.Mask) {
	dst = dst[:mask.Words(len(values)):len(dst)]
	clear(dst)
	for u, v := range values {
		if v > at || -v > at {
			dst.Set(uint32(u))
		}
	}
}

// MaskFeature writes 1 for every unit of a mask and 0 for the others. Layer 0's mask is a feature
// too, and the only one that an activation trace holds. len(dst) is the number of units.
func MaskFeature(active mask.Mask, dst []float32) {
	for u := range dst {
		dst[u] = 0
		if active.Has(uint32(u)) {
			dst[u] = 1
		}
	}
}

// Cutoff returns the threshold with a share (0 to 1) of the magnitudes of values above it, as
// nearly as ties allow and never more. It turns a wanted sparsity into a threshold. The values
// should be those of one layer and projection over many tokens.
func Cutoff(values []float32, share float64) (float32, error) {
	if len(values) == 0 || !(share >= 0 && share <= 1) {
		return 0, fmt.Errorf("centroid: %w: a share of %v of %d values: the share must be 0 to "+
			"1, of at least one value", ErrOptions, share, len(values))
	}
	sizes := make([]float32, len(values))
	for i, v := range values {
		if v != v {
			return 0, fmt.Errorf("centroid: %w: value %d is not a number", ErrSamples, i)
		}
		sizes[i] = max(v, -v)
	}
	slices.Sort(sizes)
	above := int(share * float64(len(sizes)))
	if above == len(sizes) {
		return 0, nil // zeros stay inactive
	}
	return sizes[len(sizes)-above-1], nil
}

// checkEvery is how many tokens pass between two looks at the context.
const checkEvery = 1024

// inBlocks calls f for blocks that cover [0, n), in order, and ends early when ctx does.
func inBlocks(ctx context.Context, n int, f func(lo, hi int) error) error {
	for lo := 0; lo < n; lo += checkEvery {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("centroid: %w", err)
		}
		if err := f(lo, min(lo+checkEvery, n)); err != nil {
			return err
		}
	}
	return nil
}
