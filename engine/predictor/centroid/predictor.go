package centroid

import (
	"cmp"
	"fmt"

	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/cpu"
)

// Predictor maps the layer-0 feature of a token to its centroids, and these to active sets. It is
// immutable; a Runner makes the predictions.
type Predictor struct {
	book        *Codebook
	mean, scale []float32
	layers      []dense // the trunk, then all heads as one
	facts       Facts
}

// dense is y = w·x + b.
type dense struct {
	in, out int
	w       []uint16  // (out, in), float16
	b       []float32 // (out)
}

// Bit patterns of a float16.
const (
	signF16 = 0x8000
	infF16  = 0x7c00 // from here on without the sign: infinite or not a number
)

// Facts are the origin of a predictor.
type Facts struct {
	Model string `json:"model"` // identifies the model, normally by a hash; "" = unknown
	Trace string `json:"trace"` // and the samples
	// Feature is the kind of Samples.Feature, and of a Runner's input, as traces name it. "" = an
	// old file that does not say: the input of the feed-forward part.
	Feature  string   `json:"feature,omitempty"`
	Training Training `json:"training"`
}

// Training are the options that a predictor was trained with.
type Training struct {
	Tokens   int     `json:"tokens"`
	Held     int     `json:"held"` // held-out tokens
	Epochs   int     `json:"epochs"`
	Patience int     `json:"patience"`
	Batch    int     `json:"batch"`
	Rate     float64 `json:"rate"`
	Seed     uint64  `json:"seed"`
}

// Codebook returns the vocabularies.
func (p *Predictor) Codebook() *Codebook { return p.book }

// Facts returns the predictor's origin.
func (p *Predictor) Facts() Facts { return p.facts }

// Feature names what a Runner has to be given. Files of before there were kinds do not say: it was
// the input of the feed-forward part.
func (p *Predictor) Feature() string { return cmp.Or(p.facts.Feature, "ffn_input") }

// Fits returns nil if the predictor was made for a model, given by the same text as
// TrainOptions.Model, and for its shape. Otherwise the error is an ErrMismatch.
func (p *Predictor) Fits(model string, shape Shape) error {
	if p.facts.Model != model {
		return fmt.Errorf("centroid: %w: the predictor was trained for model %q, this is %q; "+
			"train one for it", ErrMismatch, p.facts.Model, model)
	}
	if p.book.shape != shape {
		return fmt.Errorf("centroid: %w: the predictor is for %+v, the model is %+v", ErrMismatch,
			p.book.shape, shape)
	}
	return nil
}

// Parameters returns the number of weights of the network, without the centroids.
func (p *Predictor) Parameters() int64 {
	n := int64(0)
	for _, d := range p.layers {
		n += int64(len(d.w) + len(d.b))
	}
	return n
}

// Bytes returns the predictor's memory, without a Runner's buffers: weights in float16, everything
// else in 4 bytes, centroid masks with one bit for each unit, and the ranking of the units.
func (p *Predictor) Bytes() units.Bytes {
	n := units.Bytes(4 * (len(p.mean) + len(p.scale)))
	for _, d := range p.layers {
		n += units.Bytes(2*len(d.w) + 4*len(d.b))
	}
	for _, v := range p.book.vocabs {
		n += units.Bytes(8*len(v.masks) + 4*len(v.weights))
	}
	for _, order := range p.book.order {
		n += units.Bytes(2 * 4 * len(order)) // and the counts that it is made from
	}
	return n
}

// FLOPs returns the floating-point operations of one prediction: a multiplication and an addition
// for each weight. The K_max rule is integer work and not counted.
func (p *Predictor) FLOPs() int64 {
	n := int64(2 * len(p.mean))
	for _, d := range p.layers {
		n += 2 * int64(len(d.w))
	}
	return n
}

// Runner predicts with one Predictor and one K_max. It is not safe for concurrent use; several
// Runners of a Predictor are.
type Runner struct {
	p    *Predictor
	kMax int
	pool *cpu.Pool
	x    [][]float32 // x[l] is the input of layer l; the last are the logits
	ids  []int       // by Shape.head
}

// NewRunner returns a Runner with active sets of exactly kMax units; 0 leaves the intersections
// unchanged. pool may be nil; the caller owns it.
func (p *Predictor) NewRunner(kMax int, pool *cpu.Pool) (*Runner, error) {
	if err := p.book.checkKMax(kMax); err != nil {
		return nil, err
	}
	r := &Runner{p: p, kMax: kMax, pool: pool, ids: make([]int, p.book.shape.heads())}
	for _, d := range p.layers {
		r.x = append(r.x, make([]float32, d.in))
	}
	r.x = append(r.x, make([]float32, p.layers[len(p.layers)-1].out))
	return r, nil
}

// IDs returns the centroids that the network names for a feature: gate and up of layer 1, then of
// layer 2 and so on. The result is valid until the next call.
func (r *Runner) IDs(feature []float32) ([]int, error) {
	if len(feature) != r.p.book.shape.Width {
		return nil, fmt.Errorf("centroid: %w: a feature of %d elements, the predictor takes %d",
			ErrMismatch, len(feature), r.p.book.shape.Width)
	}
	copy(r.x[0], feature)
	scaled(r.x[0], r.p.mean, r.p.scale)
	for l := range r.p.layers {
		d := &r.p.layers[l]
		y := r.x[l+1]
		if r.pool != nil {
			r.pool.MatVec(d.w, d.out, d.in, r.x[l], y)
		} else {
			cpu.MatVec(d.w, d.out, d.in, r.x[l], y)
		}
		for i, b := range d.b {
			y[i] += b
			if l < len(r.p.layers)-1 && y[i] < 0 {
				y[i] = 0
			}
		}
	}
	logits := r.x[len(r.p.layers)]
	for h, v := range r.p.book.vocabs {
		r.ids[h] = argmax(logits[:v.Count()])
		logits = logits[v.Count():]
	}
	return r.ids, nil
}

// Predict writes the active set of every layer into masks, which has an entry for every layer of
// the model, each with a word for every 64 units. masks[0] is left alone, and so is a nil entry:
// that layer is dense. The counts are sums over the others.
func (r *Runner) Predict(feature []float32, masks []mask.Mask) (Filled, error) {
	shape := r.p.book.shape
	if len(masks) != shape.Layers {
		return Filled{}, fmt.Errorf("centroid: %w: masks of %d layers, the predictor is for %d",
			ErrMismatch, len(masks), shape.Layers)
	}
	ids, err := r.IDs(feature)
	if err != nil {
		return Filled{}, err
	}
	var sum Filled
	for layer := 1; layer < shape.Layers; layer++ {
		if masks[layer] == nil {
			continue
		}
		if len(masks[layer]) != shape.words() {
			return Filled{}, fmt.Errorf("centroid: %w: the mask of layer %d has %d words, want %d",
				ErrMismatch, layer, len(masks[layer]), shape.words())
		}
		h := shape.head(layer, 0)
		f := r.p.book.active(layer, ids[h:h+shape.Projections], r.kMax, masks[layer])
		sum.Agreed += f.Agreed
		sum.Padded += f.Padded
		sum.Truncated += f.Truncated
	}
	return sum, nil
}
