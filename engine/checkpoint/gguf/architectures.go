package gguf

import (
	"slices"
)

// architecture is how llama.cpp's files describe the models of an architecture, and how their
// originals do.
type architecture struct {
	name             string // general.architecture
	class, modelType string // of config.json
	// fixed are fields of config.json that no file says: llama.cpp computes nothing else.
	fixed                map[string]any
	ffn, kv              string // fields with the size of the FFN and the heads of keys
	epsilonKey, epsilon  string // of the norms: the key, and the field
	headSize             bool   // config.json may say the size of a head
	partial              bool   // a part of each head may be rotated
	neighbours, unscaled bool   // rotates neighbours; does not read the divisors of frequencies
	// top are the names of the tensors outside of the layers, without .weight and .bias; layer is
	// in front of the number of a layer, and parts are the names in it.
	top    map[string]string
	layer  string
	parts  map[string]string
	rename func(o *Original, part, theirs string) string // nil: as parts says
	// grouped is the original's name of the projection of queries, keys and values if it is one
	// tensor there; "": three.
	grouped string
	// finish adds the fields that depend on which tensors there are.
	finish func(o *Original)
}

// fused is the part of a layer with queries, keys and values in one.
const fused = "attn_qkv"

func findArchitecture(name string) *architecture {
	list := architectures()
	if i := slices.IndexFunc(list, func(a *architecture) bool { return a.name == name }); i >= 0 {
		return list[i]
	}
	return nil
}

// Architectures lists the architectures that are read, as general.architecture names them.
func Architectures() []string {
	var list []string
	for _, a := range architectures() {
		list = append(list, a.name)
	}
	return list
}

// architectures are those that are read. The activation functions are those of the originals.
// llama.cpp takes GELU's tanh form for Falcon too, whose originals have the exact one.
func architectures() []*architecture {
	return []*architecture{llama(), qwen2(), qwen3(), phi2(), falcon()}
}

func llama() *architecture {
	return &architecture{
		name: "llama", class: "LlamaForCausalLM", modelType: "llama",
		fixed: map[string]any{"hidden_act": "silu"},
		ffn:   "intermediate_size", kv: "num_key_value_heads",
		epsilonKey: "attention.layer_norm_rms_epsilon", epsilon: "rms_norm_eps",
		headSize: true, neighbours: true,
		top: map[string]string{"token_embd": "model.embed_tokens", "output_norm": "model.norm",
			"output": "lm_head"},
		layer: "model.layers.",
		parts: map[string]string{
			"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
			"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
			"attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
			"ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
		},
		finish: func(o *Original) {
			o.when("attention_bias", "attn_q", "attn_output", fused)
			o.when("mlp_bias", "ffn_up")
		},
	}
}

// when sets a field if any of the parts has a bias.
func (o *Original) when(field string, parts ...string) {
	for _, part := range parts {
		if o.hasPart(part, "bias") {
			o.config[field] = true
		}
	}
}

// qwen2: queries, keys and values always have biases.
func qwen2() *architecture {
	a := llama()
	a.name, a.class, a.modelType = "qwen2", "Qwen2ForCausalLM", "qwen2"
	a.neighbours, a.unscaled = false, true
	a.finish = func(*Original) {}
	return a
}

func qwen3() *architecture {
	a := qwen2()
	a.name, a.class, a.modelType = "qwen3", "Qwen3ForCausalLM", "qwen3"
	a.parts["attn_q_norm"], a.parts["attn_k_norm"] = "self_attn.q_norm", "self_attn.k_norm"
	a.finish = func(o *Original) { o.when("attention_bias", "attn_q", "attn_output", fused) }
	return a
}

// phi2 is Phi-1, Phi-1.5 and Phi-2.
func phi2() *architecture {
	return &architecture{
		name: "phi2", class: "PhiForCausalLM", modelType: "phi",
		fixed: map[string]any{"hidden_act": "gelu_new"},
		ffn:   "intermediate_size", kv: "num_key_value_heads",
		epsilonKey: "attention.layer_norm_epsilon", epsilon: "layer_norm_eps",
		partial: true, unscaled: true,
		top: map[string]string{"token_embd": "model.embed_tokens",
			"output_norm": "model.final_layernorm", "output": "lm_head"},
		layer: "model.layers.",
		parts: map[string]string{
			"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj",
			"attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
			"attn_output": "self_attn.dense", "ffn_up": "mlp.fc1", "ffn_down": "mlp.fc2",
		},
		finish: func(*Original) {},
	}
}

// falcon is Falcon 7B, which has one head of keys, and the newer ones. Those with a norm for each
// of attention and FFN have that of attention as attn_norm_2.
func falcon() *architecture {
	const second = "attn_norm_2"
	return &architecture{
		name: "falcon", class: "FalconForCausalLM", modelType: "falcon",
		fixed: map[string]any{"activation": "gelu", "alibi": false, "bias": false,
			"parallel_attn": true},
		ffn: "ffn_hidden_size", kv: "num_kv_heads",
		epsilonKey: "attention.layer_norm_epsilon", epsilon: "layer_norm_epsilon",
		unscaled: true,
		top: map[string]string{"token_embd": "transformer.word_embeddings",
			"output_norm": "transformer.ln_f", "output": "lm_head"},
		layer: "transformer.h.",
		parts: map[string]string{
			"attn_norm": "input_layernorm", second: "ln_attn",
			"attn_output": "self_attention.dense",
			"ffn_up":      "mlp.dense_h_to_4h", "ffn_down": "mlp.dense_4h_to_h",
		},
		rename: func(o *Original, part, theirs string) string {
			if part == "attn_norm" && o.config["num_ln_in_parallel_attn"] == int64(2) {
				return "ln_mlp"
			}
			return theirs
		},
		grouped: "self_attention.query_key_value",
		finish: func(o *Original) {
			norms := int64(1)
			if o.hasPart(second, "weight") {
				norms = 2
			}
			newer := norms == 2 || o.kv > 1
			o.config["multi_query"], o.config["new_decoder_architecture"] = !newer, newer
			o.config["num_ln_in_parallel_attn"] = norms
		},
	}
}
