package model

import "strconv"

// readOPT reads the config.json of an OPT model. OPT-350M has norms behind the residual additions
// and embeddings of half the width.
func readOPT(f *fields) Arch {
	a := Arch{Family: OPT, Epsilon: 1e-5, Positions: true, Tied: true, AttnBias: true,
		OutBias: true, FFNBias: true, Activation: f.activation("activation_function", "relu")}
	s := &a.Shape
	s.Rows, s.DTypeSize = 2, 2
	f.want("hidden_size", &s.DModel)
	f.want("num_hidden_layers", &s.Layers)
	f.want("ffn_dim", &s.DFFN)
	f.want("num_attention_heads", &s.Heads)
	f.want("vocab_size", &s.Vocab)
	f.want("max_position_embeddings", &s.MaxPos)
	f.heads(s)
	s.KVHeads = s.Heads
	a.Embed = s.DModel
	f.optional("word_embed_proj_dim", &a.Embed)
	before, removed := true, false
	f.optional("do_layer_norm_before", &before)
	f.optional("_remove_final_layer_norm", &removed)
	a.PostNorm, a.FinalNorm = !before, before && !removed
	f.optional("tie_word_embeddings", &a.Tied)
	bias := true
	f.optional("enable_bias", &bias)
	a.AttnBias, a.OutBias, a.FFNBias = bias, bias, bias
	f.only("layer_norm_elementwise_affine", "true")
	f.only("num_key_value_heads", strconv.Itoa(s.Heads))
	f.architectures("OPTForCausalLM", "OPTModel")
	return a
}

func optNames(a *Arch) naming {
	return naming{
		prefixes: []string{"model.decoder.", "decoder."}, layer: "layers.%d.",
		embed: "embed_tokens", pos: "embed_positions", projIn: "project_in", projOut: "project_out",
		finalNorm: "final_layer_norm", head: "lm_head",
		attnNorm: "self_attn_layer_norm", ffnNorm: "final_layer_norm",
		q: "self_attn.q_proj", k: "self_attn.k_proj", v: "self_attn.v_proj",
		out: "self_attn.out_proj",
		up:  "fc1", down: "fc2",
		relics: []string{"version"},
	}
}
