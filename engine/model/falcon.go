package model

// readFalcon reads the config.json of a Falcon model. Three forms exist: multi-query with one norm
// (7B), grouped queries with two norms (40B, 180B, "new_decoder_architecture"), and one query per
// key with attention and FFN in sequence (RW-1B without alibi).
func readFalcon(f *fields) Arch {
	a := Arch{Family: Falcon, Epsilon: 1e-5, FinalNorm: true, Tied: true, Parallel: true,
		Activation: f.activation("activation", "gelu")}
	s := &a.Shape
	s.Rows, s.DTypeSize, s.MaxPos = 2, 2, 2048
	f.want("hidden_size", &s.DModel)
	f.want("num_hidden_layers", &s.Layers)
	f.want("num_attention_heads", &s.Heads)
	f.want("vocab_size", &s.Vocab)
	f.optional("max_position_embeddings", &s.MaxPos)
	s.DFFN = 4 * s.DModel
	f.optional("ffn_hidden_size", &s.DFFN)
	f.heads(s)
	a.Embed = s.DModel
	multi, grouped, bias, norms := true, false, false, 0
	f.optional("multi_query", &multi)
	f.optional("new_decoder_architecture", &grouped)
	f.optional("parallel_attn", &a.Parallel)
	f.optional("bias", &bias)
	a.AttnBias, a.OutBias, a.FFNBias = bias, bias, bias
	kv := s.Heads
	f.optional("num_kv_heads", &kv)
	switch {
	case grouped:
		a.Parallel = true
		norms = 2
		s.KVHeads = kv
	case multi:
		s.KVHeads = 1
	default:
		s.KVHeads = s.Heads
	}
	f.optional("num_ln_in_parallel_attn", &norms)
	a.SharedNorm = a.Parallel && norms != 2
	f.optional("layer_norm_epsilon", &a.Epsilon)
	f.optional("tie_word_embeddings", &a.Tied)
	a.Rotary = f.rotary(s.HeadDim, 10000, 1)
	f.only("alibi", "false")
	f.architectures("FalconForCausalLM", "FalconModel", "RWForCausalLM")
	return a
}

func falconNames(a *Arch) naming {
	n := naming{
		prefixes: []string{"transformer."}, layer: "h.%d.",
		embed: "word_embeddings", finalNorm: "ln_f", head: "lm_head", attnNorm: "input_layernorm",
		ffnNorm: "post_attention_layernorm",
		fused:   "self_attention.query_key_value", split: groups(a), out: "self_attention.dense",
		up: "mlp.dense_h_to_4h", down: "mlp.dense_4h_to_h",
		relics: []string{"self_attention.rotary_emb.inv_freq",
			"self_attention.maybe_rotary.inv_freq"},
	}
	if a.Parallel && !a.SharedNorm {
		n.attnNorm, n.ffnNorm = "ln_attn", "ln_mlp"
	}
	return n
}

// groups splits a fused projection that holds, for each key-value head, its queries, its key and
// its value.
func groups(a *Arch) func() (q, k, v []rowRange) {
	return func() (q, k, v []rowRange) {
		s := &a.Shape
		hd, per := int64(s.HeadDim), int64(s.Heads/s.KVHeads)
		for g := range int64(s.KVHeads) {
			at := g * (per + 2) * hd
			q = append(q, rowRange{at, per * hd})
			k = append(k, rowRange{at + per*hd, hd})
			v = append(v, rowRange{at + (per+1)*hd, hd})
		}
		return q, k, v
	}
}
