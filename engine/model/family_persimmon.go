package model

import "strconv"

// Persimmon is the family of Persimmon-8B.
const Persimmon = "persimmon"

func persimmonFamily() *family {
	return &family{
		name: Persimmon, title: "Persimmon", modelTypes: []string{"persimmon"},
		classes: []string{"PersimmonForCausalLM", "PersimmonModel"},
		read:    readPersimmon, names: persimmonNames,
		sometimes: qkNorm,
	}
}

func readPersimmon(f *fields) Arch {
	a := Arch{Epsilon: 1e-5, FinalNorm: true, QKNorm: true, AttnBias: true,
		OutBias: true, FFNBias: true, Activation: f.activation("hidden_act", "relu2")}
	f.shape(&a, 2, "intermediate_size", 16384)
	f.optional("layer_norm_eps", &a.Epsilon)
	f.optional("qk_layernorm", &a.QKNorm)
	f.optional("tie_word_embeddings", &a.Tied)
	a.Rotary = f.rotary(a.Shape.HeadDim, 25000, 0.5)
	f.only("num_key_value_heads", strconv.Itoa(a.Shape.Heads))
	return a
}

func persimmonNames(a *Arch) naming {
	return naming{
		prefixes: []string{"model."}, layer: "layers.%d.",
		embed: "embed_tokens", finalNorm: "final_layernorm", head: "lm_head",
		attnNorm: "input_layernorm", ffnNorm: "post_attention_layernorm",
		fused: "self_attn.query_key_value", split: groups(a), out: "self_attn.dense",
		qNorm: "self_attn.q_layernorm", kNorm: "self_attn.k_layernorm",
		up: "mlp.dense_h_to_4h", down: "mlp.dense_4h_to_h",
		relics: []string{"self_attn.rotary_emb.inv_freq"},
	}
}
