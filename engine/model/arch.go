package model

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/windrow-sim/windrow/engine/checkpoint"
)

// Arch holds everything that changes a model's computation, apart from its weights. Images store
// it.
type Arch struct {
	Family     string     `json:"family"` // of the tensor names: the engine does not need it
	Shape      Shape      `json:"shape"`
	Activation Activation `json:"activation"`
	Epsilon    float64    `json:"epsilon"`            // of all norms
	RMSNorm    bool       `json:"rms_norm,omitempty"` // norms without mean and bias
	// norms behind the residual additions (OPT-350M)
	PostNorm  bool `json:"post_norm,omitempty"`
	FinalNorm bool `json:"final_norm,omitempty"` // a norm in front of the output head
	// norms over the outputs of attention and FFN, before these are added (Gemma)
	OutNorms bool `json:"out_norms,omitempty"`
	// attention and FFN start from the same residual
	Parallel   bool `json:"parallel,omitempty"`
	SharedNorm bool `json:"shared_norm,omitempty"`
	QKNorm     bool `json:"qk_norm,omitempty"` // norms over each head's query and key
	// width of the embedding: d_model, except for OPT-350M, which projects
	Embed int `json:"embed_dim"`
	// EmbedScale multiplies the embeddings; 0 = 1 (Gemma: √d_model).
	EmbedScale float64 `json:"embed_scale,omitempty"`
	Positions  bool    `json:"positions,omitempty"` // learned positions, OPT's
	Rotary     Rotary  `json:"rotary,omitzero"`
	// LocalRotary is the Rotary of the layers with a window, if it is another (Gemma 3).
	LocalRotary Rotary `json:"local_rotary,omitzero"`
	// QueryScale multiplies the queries; 0 = 1/√head_dim.
	QueryScale float64 `json:"query_scale,omitempty"`
	// ScoreCap and LogitCap bound the scores of attention and the logits softly: cap·tanh(x/cap).
	// 0 = no bound.
	ScoreCap float64 `json:"score_cap,omitempty"`
	LogitCap float64 `json:"logit_cap,omitempty"`
	// Window is how many positions a query sees, its own included; 0 = all. FullLayers are the
	// layers, ascending, whose queries see all positions nevertheless.
	Window     int   `json:"sliding_window,omitempty"`
	FullLayers []int `json:"full_layers,omitempty"`
	Tied       bool  `json:"tied,omitempty"`      // the output head is the embedding
	AttnBias   bool  `json:"attn_bias,omitempty"` // of q, k and v
	OutBias    bool  `json:"out_bias,omitempty"`  // of the output projection
	FFNBias    bool  `json:"ffn_bias,omitempty"`
	HeadBias   bool  `json:"head_bias,omitempty"`
}

// Rotary holds rotary position embeddings (RoPE). The first Dim elements of each head are rotated
// in pairs (i, i + Dim/2) by pos·θ^(−2i/Dim).
type Rotary struct {
	Dim   int     `json:"dim,omitempty"` // 0 = none
	Theta float64 `json:"theta,omitempty"`
	// Factor divides the frequencies: all of them, or with Original as Llama 3.1 does, those with a
	// wave longer than Original/LowFactor positions, with a ramp down to Original/HighFactor. 0 =
	// none.
	Factor     float64 `json:"factor,omitempty"`
	LowFactor  float64 `json:"low_factor,omitempty"`
	HighFactor float64 `json:"high_factor,omitempty"`
	Original   int     `json:"original_positions,omitempty"`
	// Short and Long divide the frequencies one by one (LongRoPE): Long where a context has more
	// than Original positions, else Short. Both have Dim/2 numbers, or none.
	Short []float64 `json:"short_factors,omitempty"`
	Long  []float64 `json:"long_factors,omitempty"`
	// Scale multiplies what is rotated; 0 = 1.
	Scale float64 `json:"scale,omitempty"`
}

// Size returns Scale, or 1 if there is none.
func (r Rotary) Size() float64 {
	if r.Scale == 0 {
		return 1
	}
	return r.Scale
}

// check demands positions that the engine can compute for heads of so many elements.
func (r Rotary) check(headDim int) error {
	switch {
	case r.Dim < 0 || r.Dim > headDim || r.Dim%2 != 0:
		return fmt.Errorf("%w: rotary positions over %d of a head's %d elements; an even number "+
			"is wanted", checkpoint.ErrFormat, r.Dim, headDim)
	case r.Dim > 0 && !(r.Theta > 0 && r.Theta < math.Inf(1)):
		return fmt.Errorf("%w: rope_theta is %v", checkpoint.ErrFormat, r.Theta)
	case r.longRope():
		return r.checkLongRope()
	case r.Factor < 0 || math.IsNaN(r.Factor) || r.Original > 0 && !(r.Factor > 0 &&
		r.LowFactor > 0 && r.HighFactor > r.LowFactor):
		return fmt.Errorf("%w: rope_scaling by %v between %v and %v", checkpoint.ErrFormat,
			r.Factor, r.LowFactor, r.HighFactor)
	}
	return nil
}

// Frequencies returns the Dim/2 angles per position, in a context of so many positions.
func (r Rotary) Frequencies(context int) []float64 {
	list, factors := make([]float64, r.Dim/2), r.Short
	if context > r.Original {
		factors = r.Long
	}
	for i := range list {
		f := math.Pow(r.Theta, -2*float64(i)/float64(r.Dim))
		switch {
		case factors != nil:
			f /= factors[i]
		case r.Factor == 0:
		case r.Original == 0:
			f /= r.Factor
		default:
			wave, whole := 2*math.Pi/f, float64(r.Original)
			smooth := (whole/wave - r.LowFactor) / (r.HighFactor - r.LowFactor)
			switch {
			case wave > whole/r.LowFactor:
				f /= r.Factor
			case wave >= whole/r.HighFactor:
				f = (1-smooth)*f/r.Factor + smooth*f
			}
		}
		list[i] = f
	}
	return list
}

// Kind is a function of a neuron's pre-activation.
type Kind string

// The activation functions.
const (
	ReLU    Kind = "relu"
	ReLU2   Kind = "relu2"    // the square of ReLU (Persimmon)
	FATReLU Kind = "fatrelu"  // x where x > Threshold, else 0 (ProSparse)
	DReLU   Kind = "drelu"    // relu of the gate times relu of the up row (Bamboo, TurboSparse)
	SiLU    Kind = "silu"     // no zeros
	GELU    Kind = "gelu"     // exact, no zeros
	GELUNew Kind = "gelu_new" // GPT-2's tanh form, no zeros
)

// Activation is an activation function. A neuron is active when the function of its gate (of its up
// row without a gate) is not zero; with DReLU the up row counts too.
type Activation struct {
	Kind      Kind
	Threshold float64 // of FATReLU
}

// String is "relu" or "fatrelu:0.01".
func (a Activation) String() string {
	if a.Kind == FATReLU {
		return string(a.Kind) + ":" + strconv.FormatFloat(a.Threshold, 'g', -1, 64)
	}
	return string(a.Kind)
}

// Sparse reports whether the function has exact zeros.
func (a Activation) Sparse() bool { return !slices.Contains([]Kind{SiLU, GELU, GELUNew}, a.Kind) }

// MarshalText implements encoding.TextMarshaler.
func (a Activation) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *Activation) UnmarshalText(text []byte) error {
	kind, threshold, given := strings.Cut(string(text), ":")
	*a = Activation{Kind: Kind(kind)}
	if given {
		var err error
		if a.Threshold, err = strconv.ParseFloat(threshold, 64); err != nil {
			return fmt.Errorf("%w: activation %.100q", checkpoint.ErrFormat, text)
		}
	}
	return a.check()
}

func (a Activation) check() error {
	known := []Kind{ReLU, ReLU2, FATReLU, DReLU, SiLU, GELU, GELUNew}
	if !slices.Contains(known, a.Kind) || !(a.Threshold >= 0) || a.Threshold != 0 &&
		a.Kind != FATReLU {
		return fmt.Errorf("%w: activation %.100q", checkpoint.ErrUnsupported, a.String())
	}
	return nil
}

// ScaleOfQueries returns what queries are multiplied with.
func (a *Arch) ScaleOfQueries() float64 {
	if a.QueryScale != 0 {
		return a.QueryScale
	}
	return 1 / math.Sqrt(float64(a.Shape.HeadDim))
}

// gated reports whether a neuron has a gate row.
func (a *Arch) gated() bool { return a.Shape.Rows == 3 }

// check demands an architecture that the engine can run.
func (a *Arch) check() error {
	if err := a.Shape.check(); err != nil {
		return err
	}
	if err := a.Activation.check(); err != nil {
		return err
	}
	family := findFamily(func(f *family) bool { return f.name == a.Family })
	if family == nil {
		return fmt.Errorf("%w: family %.100q", checkpoint.ErrUnsupported, a.Family)
	}
	s := &a.Shape
	switch {
	case !(a.Epsilon > 0 && a.Epsilon < 1):
		return fmt.Errorf("%w: epsilon of the norms is %v", checkpoint.ErrFormat, a.Epsilon)
	case a.Embed < 1 || a.Embed > maxDim:
		return fmt.Errorf("%w: embeddings of %d for d_model %d", checkpoint.ErrUnsupported, a.Embed,
			s.DModel)
	}
	for _, r := range []Rotary{a.Rotary, a.LocalRotary} {
		if err := r.check(s.HeadDim); err != nil {
			return err
		}
	}
	for name, v := range map[string]float64{"embed_scale": a.EmbedScale,
		"query_scale": a.QueryScale, "score_cap": a.ScoreCap, "logit_cap": a.LogitCap} {
		if !(v >= 0 && v <= math.MaxFloat32) {
			return fmt.Errorf("%w: %s is %v", checkpoint.ErrFormat, name, v)
		}
	}
	if err := a.checkWindow(); err != nil {
		return err
	}
	if err := family.check(a); err != nil {
		return err
	}
	switch {
	case a.OutNorms && (a.PostNorm || a.Parallel):
		return fmt.Errorf("%w: norms over the outputs of attention and FFN, with norms behind the "+
			"residual additions or parallel attention and FFN", checkpoint.ErrUnsupported)
	case a.LocalRotary.Dim > 0 && (a.Window == 0 || a.Rotary.Dim == 0):
		return fmt.Errorf("%w: rotary positions of layers with a window, but no such layers, or "+
			"no others", checkpoint.ErrUnsupported)
	case a.PostNorm && (a.FinalNorm || a.Parallel):
		return fmt.Errorf("%w: norms behind the residual additions, with a final norm or parallel "+
			"attention and FFN", checkpoint.ErrUnsupported)
	case a.SharedNorm && !a.Parallel:
		return fmt.Errorf("%w: one norm for attention and FFN that are not parallel",
			checkpoint.ErrUnsupported)
	case a.Activation.Kind == DReLU && !a.gated():
		return fmt.Errorf("%w: activation %v without gate rows", checkpoint.ErrUnsupported,
			a.Activation)
	case a.Positions == (a.Rotary.Dim > 0):
		return fmt.Errorf("%w: learned positions %v and rotary positions %v; one of them is wanted",
			checkpoint.ErrUnsupported, a.Positions, a.Rotary.Dim > 0)
	}
	return nil
}

// encode returns the text for an image's metadata.
func (a *Arch) encode() string {
	text, err := json.Marshal(a)
	if err != nil {
		panic(err) // numbers, names and flags of a checked Arch
	}
	return string(text)
}

// maxArchText bounds the text of an architecture.
const maxArchText = 64 << 10

func decodeArch(text string) (a Arch, err error) {
	// An architecture has about a thousand bytes. Text that is not UTF-8 takes a multiple of its
	// own size.
	if len(text) > maxArchText {
		return a, fmt.Errorf("%w: architecture: %d bytes; at most %d are read",
			checkpoint.ErrFormat, len(text), maxArchText)
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&a); err != nil {
		return a, fmt.Errorf("%w: architecture: %.200v", checkpoint.ErrFormat, err)
	}
	if len(a.FullLayers) == 0 {
		a.FullLayers = nil // as encode writes it
	}
	return a, a.check()
}
