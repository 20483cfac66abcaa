package model

import (
	"fmt"

	"github.com/windrow-sim/windrow/engine/checkpoint"
)

// Linear is y = W·x + B.
type Linear struct {
	W []uint16  // (out, in) float16
	B []float32 // (out)
}

// Norm is a layer norm's weight and bias.
type Norm struct {
	W []float32 // (d_model)
	B []float32 // (d_model)
}

// Layer is the resident part of one decoder layer: everything but the FFN's two matrices.
type Layer struct {
	AttnNorm   Norm
	Q, K, V, O Linear // (d_model, d_model)
	FFNNorm    Norm
	UpBias     []float32 // (d_ffn), of fc1: decides with the up row whether a neuron is active
	DownBias   []float32 // (d_model), of fc2: added once per token
}

// Weights are the resident weights of an OPT model. The output head is Embed: OPT ties them. The slices are read only
// and shared by everyone who uses the Weights.
type Weights struct {
	Shape     Shape
	Embed     []uint16 // (vocab, d_model) float16
	Pos       []uint16 // (max_positions+2, d_model) float16: position p is row p+2
	Layers    []Layer
	FinalNorm Norm
}

// newWeights returns Weights without any data.
func newWeights(s Shape) *Weights { return &Weights{Shape: s, Layers: make([]Layer, s.Layers)} }

// embedSource is the embedding's name in a Hugging Face folder, without prefix; a tied model may have only headSource.
const (
	embedSource = "embed_tokens.weight"
	headSource  = "lm_head.weight"
)

// resident is one resident tensor: its names, its shape and where it goes. Exactly one of half and full is set.
type resident struct {
	name   string // in an image
	source string // in a Hugging Face folder, without the prefix "model.decoder." or "decoder."
	shape  []int64
	half   *[]uint16  // float16
	full   *[]float32 // float32
}

func (r resident) dtype() checkpoint.DType {
	if r.half != nil {
		return checkpoint.F16
	}
	return checkpoint.F32
}

func (r resident) elements() int64 {
	n := int64(1)
	for _, dim := range r.shape {
		n *= dim
	}
	return n
}

// residents lists the resident tensors in the order of an image: the float32 vectors come first, so that all tensors
// are aligned to their elements.
func (w *Weights) residents() []resident {
	d, ffn := int64(w.Shape.DModel), int64(w.Shape.DFFN)
	var list []resident
	full := func(name, source string, dst *[]float32, n int64) {
		list = append(list, resident{name: name, source: source, shape: []int64{n}, full: dst})
	}
	half := func(name, source string, dst *[]uint16, rows int64) {
		list = append(list, resident{name: name, source: source, shape: []int64{rows, d}, half: dst})
	}
	norm := func(name, source string, n *Norm) {
		full(name+".weight", source+".weight", &n.W, d)
		full(name+".bias", source+".bias", &n.B, d)
	}
	for i := range w.Layers {
		l, name, source := &w.Layers[i], fmt.Sprintf("layers.%d.", i), fmt.Sprintf("layers.%d.", i)
		norm(name+"attn_norm", source+"self_attn_layer_norm", &l.AttnNorm)
		for _, p := range l.projections() {
			full(name+"attn."+p.name+".bias", source+"self_attn."+p.source+".bias", &p.to.B, d)
		}
		norm(name+"ffn_norm", source+"final_layer_norm", &l.FFNNorm)
		full(name+"ffn.up_bias", source+"fc1.bias", &l.UpBias, ffn)
		full(name+"ffn.down_bias", source+"fc2.bias", &l.DownBias, d)
	}
	norm("final_norm", "final_layer_norm", &w.FinalNorm)
	half("embed", embedSource, &w.Embed, int64(w.Shape.Vocab))
	half("pos", "embed_positions.weight", &w.Pos, int64(w.Shape.MaxPos+positionOffset))
	for i := range w.Layers {
		for _, p := range w.Layers[i].projections() {
			half(fmt.Sprintf("layers.%d.attn.%s.weight", i, p.name), fmt.Sprintf("layers.%d.self_attn.%s.weight", i, p.source), &p.to.W, d)
		}
	}
	return list
}

type projection struct {
	name, source string
	to           *Linear
}

func (l *Layer) projections() []projection {
	return []projection{{"q", "q_proj", &l.Q}, {"k", "k_proj", &l.K}, {"v", "v_proj", &l.V}, {"o", "out_proj", &l.O}}
}

// upSource and downSource are the names of the FFN's matrices in a Hugging Face folder, without prefix.
func upSource(layer int) string   { return fmt.Sprintf("layers.%d.fc1.weight", layer) }
func downSource(layer int) string { return fmt.Sprintf("layers.%d.fc2.weight", layer) }
