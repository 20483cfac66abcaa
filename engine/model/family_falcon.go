package model

// Falcon is the family of Falcon and Falcon-RW models.
const Falcon = "falcon"

func falconFamily() *family {
	return &family{
		name: Falcon, title: "Falcon",
		modelTypes: []string{"falcon", "RefinedWebModel", "RefinedWeb"},
		classes:    []string{"FalconForCausalLM", "FalconModel", "RWForCausalLM"},
		read:       readFalcon, names: falconNames,
		sometimes: parallel | sharedNorm,
	}
}

// readFalcon reads three forms: multi-query with one norm (7B), grouped queries with two norms
// (40B, 180B, "new_decoder_architecture"), and one query per key with attention and FFN in sequence
// (RW-1B without alibi). Files from before transformers had the family have names of their own
// (n_head), other defaults, and RefinedWeb as the type of the second form.
func readFalcon(f *fields) Arch {
	var kind string
	f.optional("model_type", &kind)
	grouped := f.there("n_head_kv") || kind == "RefinedWeb"
	f.renamed("n_embed", "hidden_size")
	f.renamed("n_layer", "num_hidden_layers")
	f.renamed("n_head", "num_attention_heads")
	f.renamed("n_head_kv", "num_kv_heads")
	a := Arch{Epsilon: 1e-5, FinalNorm: true, Tied: true, Parallel: kind == "falcon",
		Activation: f.activation("activation", "gelu")}
	s := &a.Shape
	f.shape(&a, 2, "", 2048)
	s.DFFN = 4 * s.DModel
	f.optional("ffn_hidden_size", &s.DFFN)
	multi, bias, norms := kind == "falcon", false, 0
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
	}
	f.optional("num_ln_in_parallel_attn", &norms)
	a.SharedNorm = a.Parallel && norms != 2
	f.optional("layer_norm_epsilon", &a.Epsilon)
	f.optional("tie_word_embeddings", &a.Tied)
	a.Rotary = f.rotaryWhole(s.HeadDim)
	f.only("alibi", "false")
	f.only("apply_residual_connection_post_layernorm", "false")
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
