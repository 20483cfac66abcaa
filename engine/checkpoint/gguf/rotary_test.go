package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"testing"
)

// floats are the bytes of float32.
func floats(list ...float32) []byte {
	var b []byte
	for _, v := range list {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// tiny is a header of an architecture with heads of 8 and more keys and tensors.
func tiny(arch string, keys, tensors uint64) *writer {
	w := header(tensors, 7+keys).keyText("general.architecture", arch)
	for key, n := range map[string]uint32{"block_count": 1, "embedding_length": 16,
		"feed_forward_length": 8, "attention.head_count": 2, "context_length": 64} {
		w.keyU32(arch+"."+key, n)
	}
	return w.keyF32(arch+"."+findArchitecture(arch).epsilonKey, 1e-5)
}

func original(t *testing.T, file []byte) (*Original, error) {
	t.Helper()
	f, err := openBytes(file)
	if err != nil {
		t.Fatal(err)
	}
	return NewOriginal(f)
}

// TestField_F4m_RotatedDimensions: rope.dimension_count is compared with the size of a head. Where
// the architecture can rotate a part of it, the part is exactly that.
func TestField_F4m_RotatedDimensions(t *testing.T) {
	for _, arch := range []string{"llama", "qwen2", "qwen3", "falcon"} {
		key := arch + ".rope.dimension_count"
		for _, n := range []uint32{1, 2, 4, 7, 9, 16} {
			_, err := original(t, tiny(arch, 1, 0).keyU32(key, n).b)
			refused(t, err, errFormat, fmt.Sprintf("%s: %d elements", key, n), "a head has 8,",
				"all of them")
		}
		_, err := original(t, tiny(arch, 1, 0).keyU32(key, 0).b)
		refused(t, err, errFormat, key+" is 0")
		o, err := original(t, tiny(arch, 1, 0).keyU32(key, 8).b)
		if err != nil || o.Config()["partial_rotary_factor"] != nil {
			t.Errorf("%s: %v", arch, err)
		}
	}
	for n, want := range map[uint32]float64{2: 0.25, 6: 0.75, 8: 1} {
		o, err := original(t, tiny("phi2", 1, 0).keyU32("phi2.rope.dimension_count", n).b)
		if err != nil || o.Config()["partial_rotary_factor"] != want {
			t.Errorf("phi2, %d of 8: %v", n, err)
		}
	}
	for _, n := range []uint32{3, 10} {
		_, err := original(t, tiny("phi2", 1, 0).keyU32("phi2.rope.dimension_count", n).b)
		refused(t, err, errFormat, "rotates an even number of them")
	}
	for whole := int64(2); whole <= 256; whole++ {
		for part := int64(1); part <= whole; part++ {
			if f := share(part, whole); int64(f*float64(whole)) != part || f > 1 {
				t.Fatalf("%d of %d elements is a share of %v", part, whole, f)
			}
		}
	}
}

// TestField_F4m_HeadSize: the other keys that give the size of a head are compared, too.
func TestField_F4m_HeadSize(t *testing.T) {
	for _, arch := range []string{"llama", "qwen2", "qwen3"} {
		o, err := original(t, tiny(arch, 3, 0).keyU32(arch+".attention.key_length", 10).keyU32(
			arch+".attention.value_length", 10).keyU32(arch+".rope.dimension_count", 10).b)
		if err != nil || o.Config()["head_dim"] != int64(10) {
			t.Errorf("%s: %v", arch, err)
		}
		_, err = original(t, tiny(arch, 2, 0).keyU32(arch+".attention.key_length", 10).keyU32(
			arch+".attention.value_length", 8).b)
		refused(t, err, errUnsupported, "value_length is 8", "10")
		_, err = original(t, tiny(arch, 1, 0).keyU32(arch+".attention.key_length", 9).b)
		refused(t, err, errFormat, "9 elements of a head")
	}
	for _, arch := range []string{"phi2", "falcon"} {
		_, err := original(t, tiny(arch, 1, 0).keyU32(arch+".attention.key_length", 10).b)
		refused(t, err, errUnsupported, "key_length is 10", "8 is")
		o, err := original(t, tiny(arch, 1, 0).keyU32(arch+".attention.key_length", 8).b)
		if err != nil || o.Config()["head_dim"] != nil {
			t.Errorf("%s: %v", arch, err)
		}
	}
}

// TestField_F10m_RopeFrequencies: rope_freqs.weight divides the frequencies one by one, as in files
// of Llama 3.1 and later. Ones change nothing.
func TestField_F10m_RopeFrequencies(t *testing.T) {
	file := func(arch string, dtype uint32, list ...float32) []byte {
		n := uint64(len(list))
		if dtype != 0 {
			n *= 2
		}
		return tiny(arch, 0, 1).tensor("rope_freqs.weight", dtype, 0, n).data(32, floats(list...))
	}
	o, err := original(t, file("llama", 0, 1, 1.5, 4, 8))
	if err != nil {
		t.Fatal(err)
	}
	divisors := []float64{1, 1.5, 4, 8}
	want := map[string]any{"rope_type": "longrope", "factor": 1, "attention_factor": 1,
		"short_factor": divisors, "long_factor": divisors,
		"original_max_position_embeddings": int64(64)}
	if got := o.Config()["rope_scaling"]; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, arch := range []string{"llama", "qwen2", "falcon"} {
		o, err := original(t, file(arch, 0, 1, 1, 1, 1))
		if err != nil || o.Config()["rope_scaling"] != nil || len(o.Tensors()) != 0 {
			t.Errorf("%s, ones: %v", arch, err)
		}
	}
	for _, arch := range []string{"qwen2", "qwen3", "phi2", "falcon"} {
		_, err := original(t, file(arch, 0, 1, 2, 3, 4))
		refused(t, err, errUnsupported, "rope_freqs.weight", arch)
	}
	nan := float32(math.NaN())
	for _, list := range [][]float32{{1, 2, 3}, {1, 2, 3, 4, 5}, {1, 0, 1, 1}, {1, -2, 1, 1},
		{1, 1, 1, nan}, {1, 1, 1, float32(math.Inf(1))}} {
		_, err := original(t, file("llama", 0, list...))
		refused(t, err, errFormat, "rope_freqs.weight")
	}
	_, err = original(t, file("llama", 1, 1, 1))
	refused(t, err, errFormat, "of type F16")
}

// TestRopeScaling: a factor without a type is linear, as llama.cpp has it.
func TestRopeScaling(t *testing.T) {
	const p = "llama.rope."
	linear := func(f float64) any {
		if f == 1 {
			return nil
		}
		return map[string]any{"rope_type": "linear", "factor": f}
	}
	for name, c := range map[string]struct {
		keys uint64
		add  func(w *writer) *writer
		want any
	}{
		"linear": {2, func(w *writer) *writer {
			return w.keyText(p+"scaling.type", "linear").keyF32(p+"scaling.factor", 4)
		}, linear(4)},
		"no type": {1, func(w *writer) *writer {
			return w.keyF32(p+"scaling.factor", 4)
		}, linear(4)},
		"old name": {1, func(w *writer) *writer {
			return w.keyF32(p+"scale_linear", 2)
		}, linear(2)},
		"both names": {2, func(w *writer) *writer {
			return w.keyF32(p+"scale_linear", 2).keyF32(p+"scaling.factor", 3)
		}, linear(3)},
		"none": {3, func(w *writer) *writer {
			return w.keyText(p+"scaling.type", "none").keyF32(p+"scaling.factor", 4).keyU32(
				p+"scaling.original_context_length", 9)
		}, nil},
		"zero": {1, func(w *writer) *writer { return w.keyF32(p+"scaling.factor", 0) }, nil},
		"one": {2, func(w *writer) *writer {
			return w.keyF32(p+"scaling.factor", 1).keyF32(p+"scaling.attn_factor", 1)
		}, nil},
	} {
		o, err := original(t, c.add(tiny("llama", c.keys, 0)).b)
		if err != nil || !reflect.DeepEqual(o.Config()["rope_scaling"], c.want) {
			t.Errorf("%s: %v, want %v, %v", name, o, c.want, err)
		}
	}
	both := tiny("llama", 1, 1).keyF32(p+"scaling.factor", 2).tensor("rope_freqs.weight", 0, 0, 4).
		data(32, floats(1, 2, 3, 4))
	o, err := original(t, both)
	if err != nil {
		t.Fatal(err)
	}
	scaling, _ := o.Config()["rope_scaling"].(map[string]any)
	if want := []float64{2, 4, 6, 8}; !reflect.DeepEqual(scaling["short_factor"], want) {
		t.Errorf("%v, want %v", scaling, want)
	}
	_, err = original(t, tiny("llama", 1, 0).keyF32(p+"scaling.factor", -1).b)
	refused(t, err, errFormat, "scaling.factor is -1")
	_, err = original(t, tiny("llama", 1, 0).keyF32(p+"scaling.attn_factor", 2).b)
	refused(t, err, errUnsupported, "attn_factor is 2")
	_, err = original(t, tiny("llama", 2, 0).keyText(p+"scaling.type", "yarn").keyF32(
		p+"scaling.yarn_beta_fast", 32).b)
	refused(t, err, errUnsupported, `llama.rope.scaling.type = "yarn"`, "yarn_beta_fast = 32")
}

// TestNeutralKeys: keys that change nothing with one value are refused with any other.
func TestNeutralKeys(t *testing.T) {
	type add func(w *writer, key string) *writer
	n := func(v uint32) add {
		return func(w *writer, key string) *writer { return w.keyU32(key, v) }
	}
	x := func(v float32) add {
		return func(w *writer, key string) *writer { return w.keyF32(key, v) }
	}
	truth := func(v byte) add {
		return func(w *writer, key string) *writer {
			w.text(key).u32(kindBool).b = append(w.b, v)
			return w
		}
	}
	for key, c := range map[string]struct{ fine, other add }{
		"expert_count": {n(0), n(8)}, "pooling_type": {n(0), n(3)},
		"attention.sliding_window": {n(0), n(4096)}, "attention.causal": {truth(1), truth(0)},
		"final_logit_softcapping": {x(0), x(30)}, "logit_scale": {x(1), x(0.5)},
		"rope.scaling.finetuned": {truth(1), nil}, "attention.scale": {nil, x(0.1)},
	} {
		key = "qwen2." + key
		if c.fine != nil {
			if _, err := original(t, c.fine(tiny("qwen2", 1, 0), key).b); err != nil {
				t.Errorf("%s: %v", key, err)
			}
		}
		if c.other != nil {
			_, err := original(t, c.other(tiny("qwen2", 1, 0), key).b)
			refused(t, err, errUnsupported, key+" = ")
		}
	}
}

// TestEndsOfTexts: texts end with the tokens that end a text, a turn or a message. llama.cpp's −1
// is none.
func TestEndsOfTexts(t *testing.T) {
	const p = "tokenizer.ggml."
	for _, c := range []struct {
		eos, eot, eom uint32
		want          any
	}{{2, 1<<32 - 1, 1<<32 - 1, int64(2)}, {2, 7, 2, []int64{2, 7}}, {2, 3, 4, []int64{2, 3, 4}},
		{1<<32 - 1, 1<<32 - 1, 1<<32 - 1, nil}, {1<<32 - 1, 5, 1<<32 - 1, int64(5)}} {
		o, err := original(t, tiny("llama", 3, 0).keyU32(p+"eos_token_id", c.eos).keyU32(
			p+"eot_token_id", c.eot).keyU32(p+"eom_token_id", c.eom).b)
		if err != nil || !reflect.DeepEqual(o.Config()["eos_token_id"], c.want) {
			t.Errorf("%+v: %v, %v", c, o.Config()["eos_token_id"], err)
		}
	}
}
