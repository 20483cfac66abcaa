package model

// Qwen2 is the family of Qwen 1.5, 2 and 2.5.
const Qwen2 = "qwen2"

func qwen2Family() *family {
	return &family{
		name: Qwen2, title: "Qwen2 (Qwen1.5, Qwen2.5)", modelTypes: []string{"qwen2"},
		classes: []string{"Qwen2ForCausalLM", "Qwen2Model"},
		read:    readQwen2, names: llamaNames,
		always: gated | rmsNorm, sometimes: someWindows,
	}
}

// readQwen2: queries, keys and values always have biases, and the output projection has none.
func readQwen2(f *fields) Arch {
	a := f.qwen(0)
	a.AttnBias = true
	return a
}

// qwen reads what Qwen2 and Qwen3 have in common. headDim is the default of head_dim; 0 = from
// hidden_size.
func (f *fields) qwen(headDim int) Arch {
	a := Arch{Epsilon: 1e-6, Shape: Shape{HeadDim: headDim},
		Activation: f.activation("hidden_act", "silu")}
	f.gatedRMS(&a, 32768)
	f.only("use_mrope", "false")
	a.Rotary = f.rotaryWhole(a.Shape.HeadDim)
	// Published files name a window of 32,768 and more that is not used.
	use, window, first := false, f.windowSize(4096), 28
	f.optional("use_sliding_window", &use)
	f.optional("max_window_layers", &first)
	if !use {
		window = 0
	}
	f.windows(&a, window, func(layer int) bool { return layer >= first })
	return a
}
