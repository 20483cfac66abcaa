package model

// Phi is the family of Phi-1, Phi-1.5 and Phi-2.
const Phi = "phi"

func phiFamily() *family {
	return &family{
		name: Phi, title: "Phi", modelTypes: []string{"phi"},
		classes: []string{"PhiForCausalLM", "PhiModel"},
		read:    readPhi, names: phiNames,
		always: parallel | sharedNorm, sometimes: headBias | qkNorm,
	}
}

func readPhi(f *fields) Arch {
	a := Arch{Epsilon: 1e-5, FinalNorm: true, Parallel: true, SharedNorm: true,
		AttnBias: true, OutBias: true, FFNBias: true, HeadBias: true,
		Activation: f.activation("hidden_act", "gelu_new")}
	f.shape(&a, 2, "intermediate_size", 2048)
	f.optional("num_key_value_heads", &a.Shape.KVHeads)
	f.optional("layer_norm_eps", &a.Epsilon)
	f.optional("tie_word_embeddings", &a.Tied)
	f.optional("qk_layernorm", &a.QKNorm)
	a.Rotary = f.rotary(a.Shape.HeadDim, defaultTheta, 0.5)
	return a
}

func phiNames(*Arch) naming {
	return naming{
		prefixes: []string{"model."}, layer: "layers.%d.",
		embed: "embed_tokens", finalNorm: "final_layernorm", head: "lm_head",
		attnNorm: "input_layernorm",
		q:        "self_attn.q_proj", k: "self_attn.k_proj", v: "self_attn.v_proj",
		qNorm: "self_attn.q_layernorm", kNorm: "self_attn.k_layernorm",
		out: "self_attn.dense",
		up:  "mlp.fc1", down: "mlp.fc2",
		relics: []string{"self_attn.rotary_emb.inv_freq"},
	}
}
