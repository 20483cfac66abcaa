package predictor

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/windrow-sim/windrow/internal/bounds"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// ErrMismatch: a predictor, or the state of a training, was made for something else.
var ErrMismatch = errors.New("made for something else")

// Kind is the function between the two matrices. Files of weights do not say it, so it is recorded.
type Kind string

const (
	ReLU   Kind = "relu"   // LLM in a flash, PowerInfer, TurboSparse
	Linear Kind = "linear" // Deja Vu
)

// Feature names a predictor's input: a kind of feature, as traces and the engine name it, of the
// predicted layer or of the layer before.
type Feature string

const (
	// the input of the feed-forward part, behind its norm
	FFNInput Feature = "ffn_input"
	// of the same layer, before it is added to the residual (LLM in a flash, section 3.1)
	AttentionOutput Feature = "attention_output"
	// in front of the norm of the feed-forward part (PowerInfer, Deja Vu)
	Residual       Feature = "residual"
	UnknownFeature Feature = "" // an import does not say
)

// forNext ends the names of features that look ahead.
const forNext = "_for_next_layer"

// ForNextLayer is the feature of a predictor that looks ahead: entry l takes the kind of layer l
// and names the units of layer l+1. The last entry has rank 0, since no layer follows, and the
// units of layer 0 have no entry.
func (f Feature) ForNextLayer() Feature { return f + forNext }

// Kind returns the feature's kind without its layer. ahead reports that it is of the layer before
// the predicted one.
func (f Feature) Kind() (kind Feature, ahead bool) {
	name, ahead := strings.CutSuffix(string(f), forNext)
	return Feature(name), ahead
}

// Layer is the predictor of one layer. Matrices are row-major float16 bit patterns.
type Layer struct {
	Rank int       // 0: no predictor, every unit is predicted
	W1   []uint16  // (rank, width)
	B1   []float32 // (rank), or nil
	W2   []uint16  // (units, rank)
	B2   []float32 // (units), or nil
	// MinLogit is the least value before the sigmoid for which a unit is predicted: 0 is the
	// threshold 0.5.
	MinLogit float32
}

// Facts are the origin of a predictor. Its file keeps them.
type Facts struct {
	Origin   string  // "windrow train", "powerinfer", "dejavu", "checkpoint"
	Feature  Feature // the input
	Model    string  // identity of the model's weights (SHA-256, hex); empty = not known
	Trace    string  // identity of the trace it was trained on; empty = none or not known
	Settings string  // Settings as JSON; empty if it was not trained here
}

// Predictor predicts the active units of every layer of one model. It is immutable.
type Predictor struct {
	kind         Kind
	width, units int
	layers       []Layer
	facts        Facts
}

// Limits of a shape, far above any model, that keep sums of sizes from overflowing.
const (
	maxLayers    = 1 << 12
	maxDimension = 1 << 24
)

var (
	layerRange     = bounds.Range[int]{Least: 1, Most: maxLayers, Why: "no model has more"}
	dimensionRange = bounds.Range[int]{Least: 1, Most: maxDimension, Why: "no model has more"}
)

// New returns a predictor with the given layers, which it owns from now on. Width is the length of
// a feature, units the number of feed-forward units of each layer.
func New(kind Kind, width, unitsPerLayer int, layers []Layer, facts Facts) (*Predictor, error) {
	p := &Predictor{kind: kind, width: width, units: unitsPerLayer, layers: layers, facts: facts}
	if kind != ReLU && kind != Linear {
		return nil, fmt.Errorf("predictor: kind %.100q: it is %q or %q", kind, ReLU, Linear)
	}
	if err := checkShape(len(layers), width, unitsPerLayer); err != nil {
		return nil, err
	}
	for l := range layers {
		if err := p.checkLayer(&layers[l]); err != nil {
			return nil, fmt.Errorf("predictor: layer %d: %w", l, err)
		}
	}
	return p, nil
}

func checkShape(layers, width, unitsPerLayer int) error {
	var f bounds.First
	bounds.Want(&f, "layers", layers, layerRange)
	bounds.Want(&f, "width", width, dimensionRange)
	bounds.Want(&f, "units", unitsPerLayer, dimensionRange)
	if f.Path != "" {
		return fmt.Errorf("predictor: %s: %v %s", f.Path, f.Value, f.Why)
	}
	return nil
}

func (p *Predictor) checkLayer(l *Layer) error {
	if l.Rank < 0 || l.Rank > maxDimension {
		return fmt.Errorf("rank %d: it must be 0 to %d", l.Rank, maxDimension)
	}
	if l.Rank == 0 {
		if l.W1 != nil || l.B1 != nil || l.W2 != nil || l.B2 != nil {
			return errors.New("rank 0 and yet weights")
		}
		return nil
	}
	if len(l.W1) != l.Rank*p.width || len(l.W2) != p.units*l.Rank || l.B1 != nil &&
		len(l.B1) != l.Rank || l.B2 != nil && len(l.B2) != p.units {
		return fmt.Errorf("%d, %d weights and %d, %d biases do not make rank %d between %d and %d",
			len(l.W1), len(l.W2), len(l.B1), len(l.B2), l.Rank, p.width, p.units)
	}
	for _, w := range [][]uint16{l.W1, l.W2} {
		for i, h := range w {
			const exponent = 0x7c00
			if h&exponent == exponent {
				return fmt.Errorf("weight %d is %g in float16: every weight must be finite", i,
					ref.F16ToF32(h))
			}
		}
	}
	for _, b := range [][]float32{l.B1, l.B2, {l.MinLogit}} {
		for i, v := range b {
			if !finite(v) {
				return fmt.Errorf("bias or cut %d is %g: all must be finite", i, v)
			}
		}
	}
	return nil
}

func finite(v float32) bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }

// Kind returns the function between the two matrices.
func (p *Predictor) Kind() Kind { return p.kind }

// Facts returns the predictor's origin.
func (p *Predictor) Facts() Facts { return p.facts }

// Layers is the number of layers.
func (p *Predictor) Layers() int { return len(p.layers) }

// Width is the length of a feature.
func (p *Predictor) Width() int { return p.width }

// Units is the number of units of each layer.
func (p *Predictor) Units() int { return p.units }

// Rank is the rank of a layer's predictor; 0 means that the layer has none.
func (p *Predictor) Rank(layer int) int { return p.layers[layer].Rank }

// Threshold is the least probability with which a unit of the layer is predicted.
func (p *Predictor) Threshold(layer int) float64 {
	return sigmoid(float64(p.layers[layer].MinLogit))
}

// Bytes is the memory of all weights and biases, which stay resident.
func (p *Predictor) Bytes() units.Bytes {
	var sum int
	for l := range p.layers {
		sum += p.layers[l].bytes()
	}
	return units.Bytes(sum)
}

func (l *Layer) bytes() int { return 2*(len(l.W1)+len(l.W2)) + 4*(len(l.B1)+len(l.B2)) }

// FLOPs returns the multiplications and additions in one token's predictions of a layer.
func (p *Predictor) FLOPs(layer int) int64 {
	return 2 * int64(p.layers[layer].Rank) * int64(p.width+p.units)
}

// WithThresholds returns the same predictor with other thresholds, probabilities between 0 and 1,
// exclusive: one for all layers, or one for each. It shares the weights.
func (p *Predictor) WithThresholds(thresholds ...float64) (*Predictor, error) {
	if len(thresholds) != 1 && len(thresholds) != len(p.layers) {
		return nil, fmt.Errorf("predictor: %d thresholds for %d layers: give one, or one for "+
			"each layer", len(thresholds), len(p.layers))
	}
	q := *p
	q.layers = append([]Layer(nil), p.layers...)
	for l := range q.layers {
		t := thresholds[min(l, len(thresholds)-1)]
		if err := checkThreshold(t); err != nil {
			return nil, err
		}
		q.layers[l].MinLogit = logit(t)
	}
	return &q, nil
}

func checkThreshold(t float64) error {
	if !(t > 0 && t < 1) {
		return fmt.Errorf("predictor: threshold %g: it is a probability between 0 and 1, exclusive",
			t)
	}
	return nil
}

// logit is the value before the sigmoid that stands for a probability.
func logit(probability float64) float32 {
	return float32(math.Log(probability / (1 - probability)))
}

func sigmoid(z float64) float64 { return 1 / (1 + math.Exp(-z)) }

// For returns nil if the predictor can serve a model of the given shape and identity. An identity
// that one side lacks is not compared. The error is an ErrMismatch that names the difference.
func (p *Predictor) For(layers, width, unitsPerLayer int, model string) error {
	for _, c := range []struct {
		what      string
		have, has int
	}{{"layers", len(p.layers), layers}, {"d_model", p.width, width}, {"units per layer", p.units,
		unitsPerLayer}} {
		if c.have != c.has {
			return fmt.Errorf("predictor: %w: it has %d %s, the model %d; use a predictor of "+
				"this model", ErrMismatch, c.have, c.what, c.has)
		}
	}
	if p.facts.Model != "" && model != "" && p.facts.Model != model {
		return fmt.Errorf("predictor: %w: it was trained for the model %s, this is %s; train "+
			"one for this model", ErrMismatch, p.facts.Model, model)
	}
	return nil
}
