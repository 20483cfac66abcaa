package model

import "strconv"

// OPT is the family of OPT models.
const OPT = "opt"

// optFamily: old OPT checkpoints have no final norm, and their config.json does not say so.
func optFamily() *family {
	return &family{
		name: OPT, title: "OPT", modelTypes: []string{"opt"},
		classes: []string{"OPTForCausalLM", "OPTModel"},
		read:    readOPT, names: optNames,
		always: learnedPositions, sometimes: postNorm | projected,
		finalNormByTensors: true,
	}
}

// readOPT also reads OPT-350M, which has norms behind the residual additions and embeddings of half
// the width.
func readOPT(f *fields) Arch {
	a := Arch{Epsilon: 1e-5, Positions: true, Tied: true,
		Activation: f.activation("activation_function", "relu")}
	f.shape(&a, 2, "ffn_dim", 0)
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
	f.only("learned_embeddings", "true") // Galactica: what this family computes
	f.only("scale_embeddings", "false")
	f.only("num_key_value_heads", strconv.Itoa(a.Shape.Heads))
	return a
}

func optNames(*Arch) naming {
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
