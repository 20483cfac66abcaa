package model

import "strconv"

// readPersimmon reads the config.json of a Persimmon model.
func readPersimmon(f *fields) Arch {
	a := Arch{Family: Persimmon, Epsilon: 1e-5, FinalNorm: true, QKNorm: true, AttnBias: true,
		OutBias: true, FFNBias: true, Activation: f.activation("hidden_act", "relu2")}
	s := &a.Shape
	s.Rows, s.DTypeSize, s.MaxPos = 2, 2, 16384
	f.want("hidden_size", &s.DModel)
	f.want("num_hidden_layers", &s.Layers)
	f.want("intermediate_size", &s.DFFN)
	f.want("num_attention_heads", &s.Heads)
	f.want("vocab_size", &s.Vocab)
	f.optional("max_position_embeddings", &s.MaxPos)
	f.heads(s)
	s.KVHeads = s.Heads
	a.Embed = s.DModel
	f.optional("layer_norm_eps", &a.Epsilon)
	f.optional("qk_layernorm", &a.QKNorm)
	f.optional("tie_word_embeddings", &a.Tied)
	a.Rotary = f.rotary(s.HeadDim, 25000, 0.5)
	f.only("num_key_value_heads", strconv.Itoa(s.Heads))
	f.architectures("PersimmonForCausalLM", "PersimmonModel")
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
