package model

// readLlama reads the config.json of Llama, Mistral and what was made of them: ReluLLaMA (relu),
// ProSparse (fatrelu), Bamboo and TurboSparse (relu on gate and up row, which their config.json
// does not say: the model type does).
func readLlama(f *fields) Arch {
	a := Arch{Family: Llama, Epsilon: 1e-6, RMSNorm: true, FinalNorm: true,
		Activation: f.activation("hidden_act", "silu")}
	s := &a.Shape
	s.Rows, s.DTypeSize, s.MaxPos = 3, 2, 2048
	f.want("hidden_size", &s.DModel)
	f.want("num_hidden_layers", &s.Layers)
	f.want("intermediate_size", &s.DFFN)
	f.want("num_attention_heads", &s.Heads)
	f.want("vocab_size", &s.Vocab)
	f.optional("max_position_embeddings", &s.MaxPos)
	f.optional("head_dim", &s.HeadDim)
	f.heads(s)
	s.KVHeads = s.Heads
	f.optional("num_key_value_heads", &s.KVHeads)
	a.Embed = s.DModel
	f.optional("rms_norm_eps", &a.Epsilon)
	f.optional("tie_word_embeddings", &a.Tied)
	f.optional("attention_bias", &a.AttnBias)
	a.OutBias = a.AttnBias
	f.optional("mlp_bias", &a.FFNBias)
	f.optional("sliding_window", &a.Window)
	a.Rotary = f.rotary(s.HeadDim, 10000, 1)
	f.architectures("LlamaForCausalLM", "LlamaModel", "MistralForCausalLM", "MistralModel",
		"BambooForCausalLM", "SparseLlamaForCausalLM")
	var kind string
	f.optional("model_type", &kind)
	if kind == "bamboo" && a.Activation.Kind == ReLU {
		a.Activation.Kind = DReLU
	}
	return a
}

func llamaNames(a *Arch) naming {
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
