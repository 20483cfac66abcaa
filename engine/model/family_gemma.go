package model

import (
	"fmt"
	"math"

	"github.com/windrow-sim/windrow/engine/checkpoint"
)

// Gemma is the family of Gemma 2 and the text models of Gemma 3.
const Gemma = "gemma"

func gemmaFamily() *family {
	return &family{
		name: Gemma, title: "Gemma 2, Gemma 3 (text alone)",
		modelTypes: []string{"gemma2", "gemma3_text"},
		classes: []string{"Gemma2ForCausalLM", "Gemma2Model", "Gemma3ForCausalLM",
			"Gemma3TextModel"},
		read: readGemma, names: gemmaNames,
		always:    gated | rmsNorm | outNorms | embedScale,
		sometimes: softCaps | qkNorm | someWindows | localRotary,
	}
}

// readGemma reads two generations, by model_type. The reference implementation rounds the scale of
// the embeddings, √hidden_size, to the type that it computes in; the engine computes in float32.
func readGemma(f *fields) Arch {
	var kind string
	f.optional("model_type", &kind)
	a := Arch{Epsilon: 1e-6, OutNorms: true, Tied: true, Shape: Shape{HeadDim: 256}}
	f.gatedRMS(&a, 8192)
	s := &a.Shape
	f.optional("attention_bias", &a.AttnBias)
	a.OutBias = a.AttnBias
	a.EmbedScale = float64(float32(math.Sqrt(float64(s.DModel))))
	a.Activation = f.activation("hidden_activation", "gelu_pytorch_tanh")
	// Fields of published files that the reference implementation does not read.
	f.ignore("hidden_act", "sliding_window_size", "cache_implementation")
	scalar := 256.0
	f.optional("query_pre_attn_scalar", &scalar)
	a.QueryScale = 1 / math.Sqrt(scalar)
	f.softCap("final_logit_softcapping", &a.LogitCap)
	window, pattern := f.windowSize(4096), 2
	if kind == "gemma2" {
		f.softCap("attn_logit_softcapping", &a.ScoreCap)
		a.Rotary = f.rotary(s.HeadDim, defaultTheta, 1)
	} else {
		a.QKNorm, pattern = true, 6
		f.optional("sliding_window_pattern", &pattern)
		f.ignore("_sliding_window_pattern") // saved beside layer_types, and not read again
		f.only("attn_logit_softcapping")
		a.Rotary, a.LocalRotary = f.rotaryByLayers(s.HeadDim)
	}
	f.only("use_bidirectional_attention", "false")
	f.windows(&a, window, func(layer int) bool { return pattern > 0 && (layer+1)%pattern != 0 })
	if a.Window == 0 {
		a.LocalRotary = Rotary{}
	}
	return a
}

// rotaryByLayers reads the rotary positions of layers without and with a window. Version 5 of
// transformers saves both in rope_parameters, by type of layer, version 4 those with a window as
// rope_local_base_freq.
func (f *fields) rotaryByLayers(headDim int) (full, local Rotary) {
	const theta, localTheta = 1e6, defaultTheta
	in, ok := f.inside("rope_parameters")
	if !ok || !in.there(fullAttention) && !in.there(slidingAttention) {
		full, local = f.rotary(headDim, theta, 1), Rotary{Dim: headDim, Theta: localTheta}
		f.optional("rope_local_base_freq", &local.Theta)
		return full, local
	}
	read := func(kind string, theta float64) Rotary {
		r, _ := in.rope(kind)
		if part := or(r.share, 1); part != 1 {
			in.refuse(kind, "with a partial_rotary_factor")
		}
		r.scaling.Dim, r.scaling.Theta = headDim, or(r.theta, theta)
		return r.scaling
	}
	full, local = read(fullAttention, theta), read(slidingAttention, localTheta)
	f.leave(in)
	for _, name := range []string{"rope_theta", "rope_local_base_freq", "rope_scaling"} {
		f.only(name)
	}
	return full, local
}

// softCap reads a bound above 0; null and absent are none.
func (f *fields) softCap(name string, dst *float64) {
	if f.optional(name, dst) && f.err == nil && !(*dst > 0) {
		f.err = fmt.Errorf("%w: %s is %v; a number above 0, or null, is wanted",
			checkpoint.ErrFormat, name, *dst)
	}
}

func gemmaNames(*Arch) naming {
	return naming{
		prefixes: []string{"model."}, layer: "layers.%d.",
		embed: "embed_tokens", finalNorm: "norm", head: "lm_head",
		attnNorm: "input_layernorm", attnOutNorm: "post_attention_layernorm",
		ffnNorm: "pre_feedforward_layernorm", ffnOutNorm: "post_feedforward_layernorm",
		onePlus: true,
		q:       "self_attn.q_proj", k: "self_attn.k_proj", v: "self_attn.v_proj",
		out: "self_attn.o_proj", qNorm: "self_attn.q_norm", kNorm: "self_attn.k_norm",
		gate: "mlp.gate_proj", up: "mlp.up_proj", down: "mlp.down_proj",
		relics: []string{"self_attn.rotary_emb.inv_freq"},
	}
}
