package model

import "slices"

// Llama is the family of Llama and Mistral, and of the sparse models made of them.
const Llama = "llama"

func llamaFamily() *family {
	return &family{
		name: Llama, title: "Llama (Mistral, ReluLLaMA, ProSparse, Bamboo)",
		modelTypes: []string{"llama", "mistral", "bamboo", "sparsellama"},
		classes: []string{"LlamaForCausalLM", "LlamaModel", "MistralForCausalLM", "MistralModel",
			"BambooForCausalLM", "SparseLlamaForCausalLM"},
		read: readLlama, names: llamaNames,
		always: gated | rmsNorm, sometimes: longRope,
	}
}

// readLlama also reads Mistral, ReluLLaMA (relu), ProSparse (fatrelu), and Bamboo and TurboSparse,
// whose model_type implies relu of both the gate and the up row. The fields that a model_type of
// this family does not have are ignored, as the reference implementation does.
func readLlama(f *fields) Arch {
	a := Arch{Epsilon: 1e-6, Activation: f.activation("hidden_act", "silu")}
	var kind string
	f.optional("model_type", &kind)
	mistral := kind == "mistral" || kind == "bamboo"
	positions := 2048
	if mistral {
		positions = 4096 * 32
	}
	f.gatedRMS(&a, positions)
	if mistral && !f.there("num_key_value_heads") {
		a.Shape.KVHeads = 8
	}
	if mistral {
		a.Window = f.windowSize(4096)
		f.unused("attention_bias", "type "+kind, "false")
		f.unused("mlp_bias", "type "+kind, "false")
	} else {
		f.unused("sliding_window", "type "+kind)
		f.optional("attention_bias", &a.AttnBias)
		a.OutBias = a.AttnBias
		f.optional("mlp_bias", &a.FFNBias)
	}
	a.Rotary = f.rotaryWhole(a.Shape.HeadDim)
	// Where the long factors begin depends on the version of the reference implementation.
	if !slices.Equal(a.Rotary.Short, a.Rotary.Long) {
		f.refuse("rope_scaling", compact(f.object["rope_scaling"].JSON))
	}
	if kind == "bamboo" && a.Activation.Kind == ReLU {
		a.Activation.Kind = DReLU
	}
	return a
}

func llamaNames(*Arch) naming {
	return naming{
		prefixes: []string{"model."}, layer: "layers.%d.",
		embed: "embed_tokens", finalNorm: "norm", head: "lm_head", attnNorm: "input_layernorm",
		ffnNorm: "post_attention_layernorm",
		q:       "self_attn.q_proj", k: "self_attn.k_proj", v: "self_attn.v_proj",
		out:  "self_attn.o_proj",
		gate: "mlp.gate_proj", up: "mlp.up_proj", down: "mlp.down_proj",
		relics: []string{"self_attn.rotary_emb.inv_freq", "mlp.predictor.fc1.weight",
			"mlp.predictor.fc2.weight"},
	}
}
