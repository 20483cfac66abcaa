package model

// Phi3 is the family of Phi-3, Phi-3.5 and Phi-4 without experts.
const Phi3 = "phi3"

func phi3Family() *family {
	return &family{
		name: Phi3, title: "Phi-3 (Phi-3.5, Phi-4)", modelTypes: []string{"phi3"},
		classes: []string{"Phi3ForCausalLM", "Phi3Model"},
		read:    readPhi3, names: phi3Names,
		always: gated | rmsNorm, sometimes: longRope,
	}
}

func readPhi3(f *fields) Arch {
	a := Arch{Epsilon: 1e-5, Activation: f.activation("hidden_act", "silu")}
	f.gatedRMS(&a, 4096)
	f.optional("sliding_window", &a.Window)
	a.Rotary = f.rotary(a.Shape.HeadDim, defaultTheta, 1)
	f.ignore("original_max_position_embeddings") // read with longrope
	// Fields of published files that the reference implementation does not read.
	for _, name := range []string{"attention_bias", "mlp_bias", "lm_head_bias"} {
		f.only(name, "false")
	}
	f.only("full_attn_mod", "1")
	f.only("interpolate_factor", "1")
	return a
}

func phi3Names(a *Arch) naming {
	return naming{
		prefixes: []string{"model."}, layer: "layers.%d.",
		embed: "embed_tokens", finalNorm: "norm", head: "lm_head", attnNorm: "input_layernorm",
		ffnNorm: "post_attention_layernorm",
		fused:   "self_attn.qkv_proj", split: inOrder(a), out: "self_attn.o_proj",
		gateUp: "mlp.gate_up_proj", down: "mlp.down_proj",
		relics: []string{"self_attn.rotary_emb.inv_freq"},
	}
}
