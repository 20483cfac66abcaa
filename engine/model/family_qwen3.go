package model

// Qwen3 is the family of the dense Qwen3 models.
const Qwen3 = "qwen3"

func qwen3Family() *family {
	return &family{
		name: Qwen3, title: "Qwen3", modelTypes: []string{"qwen3"},
		classes: []string{"Qwen3ForCausalLM", "Qwen3Model"},
		read:    readQwen3, names: qwen3Names,
		always: gated | rmsNorm | qkNorm, sometimes: someWindows,
	}
}

// readQwen3: each head's query and key has an RMS norm, and no projection has a bias unless the
// file says so.
func readQwen3(f *fields) Arch {
	a := f.qwen(128)
	a.QKNorm = true
	f.optional("attention_bias", &a.AttnBias)
	a.OutBias = a.AttnBias
	return a
}

func qwen3Names(a *Arch) naming {
	n := llamaNames(a)
	n.qNorm, n.kNorm = "self_attn.q_norm", "self_attn.k_norm"
	return n
}
