package model

// readPhi reads the config.json of Phi-1, Phi-1.5 and Phi-2.
func readPhi(f *fields) Arch {
	a := Arch{
		Family: Phi, Epsilon: 1e-5, FinalNorm: true, Parallel: true, SharedNorm: true,
		AttnBias: true, OutBias: true, FFNBias: true, HeadBias: true,
		Activation: f.activation("hidden_act", "gelu_new"),
	}
	s := &a.Shape
	s.Rows, s.DTypeSize, s.MaxPos = 2, 2, 2048
	f.want("hidden_size", &s.DModel)
	f.want("num_hidden_layers", &s.Layers)
	f.want("intermediate_size", &s.DFFN)
	f.want("num_attention_heads", &s.Heads)
	f.want("vocab_size", &s.Vocab)
	f.optional("max_position_embeddings", &s.MaxPos)
	f.heads(s)
	s.KVHeads = s.Heads
	f.optional("num_key_value_heads", &s.KVHeads)
	a.Embed = s.DModel
	f.optional("layer_norm_eps", &a.Epsilon)
	f.optional("tie_word_embeddings", &a.Tied)
	f.only("qk_layernorm", "false") // the reference implementation cannot run it
	a.Rotary = f.rotary(s.HeadDim, 10000, 0.5)
	f.architectures("PhiForCausalLM", "PhiModel")
	return a
}

func phiNames(a *Arch) naming {
	return naming{
		prefixes: []string{"model."}, layer: "layers.%d.",
		embed: "embed_tokens", finalNorm: "final_layernorm", head: "lm_head",
		attnNorm: "input_layernorm",
		q:        "self_attn.q_proj", k: "self_attn.k_proj", v: "self_attn.v_proj",
		out: "self_attn.dense",
		up:  "mlp.fc1", down: "mlp.fc2",
		relics: []string{"self_attn.rotary_emb.inv_freq"},
	}
}
