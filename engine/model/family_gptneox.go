package model

// GPTNeoX is the family of Pythia and GPT-NeoX-20B.
const GPTNeoX = "gptneox"

func gptNeoXFamily() *family {
	return &family{
		name: GPTNeoX, title: "GPT-NeoX (Pythia)", modelTypes: []string{"gpt_neox"},
		classes: []string{"GPTNeoXForCausalLM", "GPTNeoXModel"},
		read:    readGPTNeoX, names: gptNeoXNames,
		sometimes: parallel,
	}
}

// readGPTNeoX: attention and FFN are parallel, with a norm each, unless the file says otherwise.
func readGPTNeoX(f *fields) Arch {
	a := Arch{Epsilon: 1e-5, FinalNorm: true, Parallel: true, AttnBias: true, FFNBias: true,
		Activation: f.activation("hidden_act", "gelu")}
	f.shape(&a, 2, "intermediate_size", 2048)
	f.optional("layer_norm_eps", &a.Epsilon)
	f.optional("use_parallel_residual", &a.Parallel)
	f.optional("attention_bias", &a.AttnBias)
	a.OutBias = a.AttnBias
	f.optional("tie_word_embeddings", &a.Tied)
	f.ignore("attention_probs_dropout_prob", "hidden_dropout_prob")
	// The newer names of the two fields may be there too.
	theta, share := float64(defaultTheta), 0.25
	base, part := f.optional("rotary_emb_base", &theta), f.optional("rotary_pct", &share)
	a.Rotary = f.rotary(a.Shape.HeadDim, theta, share)
	if base && a.Rotary.Theta != theta {
		f.refuse("rope_theta", "other than rotary_emb_base")
	}
	if part && a.Rotary.Dim != int(share*float64(a.Shape.HeadDim)) {
		f.refuse("partial_rotary_factor", "other than rotary_pct")
	}
	return a
}

func gptNeoXNames(a *Arch) naming {
	return naming{
		prefixes: []string{"gpt_neox."}, layer: "layers.%d.",
		embed: "embed_in", finalNorm: "final_layer_norm", head: "embed_out",
		attnNorm: "input_layernorm", ffnNorm: "post_attention_layernorm",
		fused: "attention.query_key_value", split: groups(a), out: "attention.dense",
		up: "mlp.dense_h_to_4h", down: "mlp.dense_4h_to_h",
		relics: []string{"attention.bias", "attention.masked_bias",
			"attention.rotary_emb.inv_freq"},
	}
}
