package gguf

import (
	"errors"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestRestoresTheOriginal(t *testing.T) {
	l, err := NewOriginal(openFixture(t))
	if err != nil {
		t.Fatal(err)
	}
	want := expected(t, "llama")
	if len(l.Tensors()) != len(want) || len(l.Notes()) != 0 {
		t.Errorf("%d tensors, want %d; notes %q", len(l.Tensors()), len(want), l.Notes())
	}
	for name, e := range want {
		got, ok := l.Tensor(name)
		if !ok || got.Name != name || got.DType != e.DType || !slices.Equal(got.Shape, e.Shape) {
			t.Errorf("%s is %+v, want %+v", name, got, e)
		}
		s, err := l.Section(name)
		if err != nil {
			t.Fatal(err)
		}
		sameBytes(t, e, s)
	}
	if x, _ := l.Tensor("model.layers.0.self_attn.q_proj.weight"); x.Encoding != "Q8_0 permuted" {
		t.Errorf("encoding %q", x.Encoding)
	}
	for _, name := range []string{"token_embd.weight", "model.layers.1.mlp.up_proj.weight", ""} {
		if _, err := l.Section(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	config := map[string]any{
		"architectures": []string{"LlamaForCausalLM"}, "model_type": "llama", "hidden_act": "silu",
		"num_hidden_layers": int64(1),
		"hidden_size":       int64(64), "intermediate_size": int64(32),
		"num_attention_heads":     int64(4),
		"num_key_value_heads":     int64(2),
		"max_position_embeddings": int64(128), "vocab_size": int64(12), "rms_norm_eps": 1e-5,
		"rope_theta":   10000.0,
		"bos_token_id": int64(1), "eos_token_id": int64(2), "tie_word_embeddings": false,
	}
	if got := l.Config(); !reflect.DeepEqual(got, config) {
		t.Errorf("config %v\nwant   %v", got, config)
	}
}

// small is a header of the architecture llama with more keys and tensors.
func small(keys, tensors uint64) *writer {
	const p = "llama."
	w := header(tensors, 6+keys).keyText("general.architecture", "llama").keyU32(p+"block_count",
		1).keyU32(p+"embedding_length", 8).
		keyU32(p+"feed_forward_length", 8).keyU32(p+"attention.head_count",
		2).keyU32(p+"context_length", 8)
	return w
}

func (w *writer) epsilon() *writer {
	return w.keyF32("llama.attention.layer_norm_rms_epsilon", 1e-5)
}

func TestOriginalDefaults(t *testing.T) {
	f, err := openBytes(small(1, 1).epsilon().tensor("token_embd.weight", 1, 0, 8, 3).data(32,
		make([]byte, 48)))
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewOriginal(f)
	if err != nil {
		t.Fatal(err)
	}
	c := l.Config()
	if c["num_key_value_heads"] != int64(2) || c["tie_word_embeddings"] != true ||
		c["vocab_size"] != int64(3) || c["rope_theta"] != 10000.0 ||
		c["rms_norm_eps"] != 1e-5 || c["bos_token_id"] != nil {
		t.Errorf("%v", c)
	}
}

func TestField_M19_FeaturesThatWouldBeIgnored(t *testing.T) {
	for name, c := range map[string]struct {
		w    *writer
		kind error
		want []string
	}{
		"experts": {small(2, 0).epsilon().keyU32("llama.expert_count", 8), errUnsupported,
			[]string{"llama.expert_count = 8"}},
		"two features": {small(3, 0).epsilon().keyText("llama.rope.scaling.type",
			"yarn").keyU32("llama.new", 1), errUnsupported,
			[]string{`llama.new = 1, llama.rope.scaling.type = "yarn"`}},
		"parts of experts": {small(1, 1).epsilon().tensor("blk.0.ffn_gate_inp.weight", 0, 0, 2),
			errUnsupported, []string{"tensors that no part of", "blk.0.ffn_gate_inp.weight"}},
		"another suffix": {small(1, 1).epsilon().tensor("blk.0.attn_q.scale", 0, 0, 2),
			errUnsupported, []string{"blk.0.attn_q.scale"}},
		"both forms": {small(1, 2).epsilon().tensor("blk.0.attn_qkv.bias", 0, 0, 24).tensor(
			"blk.0.attn_q.bias", 0, 96, 8), errFormat, []string{`"blk.0.attn_qkv.bias" and ` +
			`"blk.0.attn_q.bias" are both model.layers.0.self_attn.q_proj.bias`}},
		"fused rows": {small(1, 1).epsilon().tensor("blk.0.attn_qkv.bias", 0, 0, 16), errFormat,
			[]string{"2 heads of 4", "24 rows"}},
		"no model": {header(0, 2).keyText("general.type", "adapter").keyText(
			"general.architecture", "llama"), errUnsupported, []string{`"adapter"`, "whole model"}},
		"heads of keys": {small(2, 0).epsilon().keyU32("llama.attention.head_count_kv", 3),
			errFormat, []string{"head_count_kv is 3", "2 heads"}},
		"uneven heads": {header(0, 6).keyText("general.architecture", "qwen2").keyU32(
			"qwen2.block_count", 1).keyU32("qwen2.embedding_length", 9).keyU32(
			"qwen2.feed_forward_length", 1).keyU32("qwen2.attention.head_count", 2).keyU32(
			"qwen2.context_length", 1), errFormat, []string{"9 is not a multiple", "head_count 2"}},
		"values of another size": {small(2, 0).epsilon().keyU32("llama.attention.value_length", 8),
			errUnsupported, []string{"value_length is 8", "size of keys 4"}},
		"a large count": {small(2, 0).epsilon().keyU32("llama.vocab_size", 1<<31), errFormat,
			[]string{"llama.vocab_size is 2147483648; 1 to 1073741824"}},
		"expert parts": {small(1, 1).epsilon().tensor("blk.0.ffn_gate_exps.weight", 0, 0, 2),
			errUnsupported, []string{"ffn_gate_exps"}},
		"a layer 00": {small(1, 1).epsilon().tensor("blk.00.ffn_up.weight", 0, 0, 2),
			errUnsupported, []string{"blk.00"}},
		"another": {header(0, 1).keyText("general.architecture", "gemma3"), errUnsupported,
			[]string{`architecture "gemma3"; llama, qwen2, qwen3, phi2 and falcon are`}},
		"none": {header(0, 0), errUnsupported, []string{`architecture ""`}},
		"heads": {small(1, 1).epsilon().tensor("blk.0.attn_q.weight", 0, 0, 2, 6), errFormat,
			[]string{"2 heads of 4", "8 rows"}},
		"no epsilon": {small(0, 0), errFormat,
			[]string{"no llama.attention.layer_norm_rms_epsilon"}},
		"a zero": {small(2, 0).epsilon().keyU32("llama.vocab_size", 0), errFormat,
			[]string{"llama.vocab_size is 0"}},
		"per layer": {func() *writer {
			return small(2, 0).epsilon().text("llama.attention.head_count_kv").u32(kindArray).u32(
				kindI32).u64(1).u32(2)
		}(), errFormat, []string{"head_count_kv is of type []int32"}},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := openBytes(c.w.data(32, make([]byte, 128)))
			if err != nil {
				t.Fatal(err)
			}
			_, err = NewOriginal(f)
			refused(t, err, c.kind, c.want...)
		})
	}
	f, err := openBytes(small(2, 1).epsilon().keyU32("llama.expert_count",
		0).tensor("blk.0.attn_rot_embd", 0, 0, 2).data(32, make([]byte, 32)))
	if err != nil {
		t.Fatal(err)
	}
	if l, err := NewOriginal(f); err != nil || !strings.Contains(strings.Join(l.Notes(), ""),
		"attn_rot_embd") {
		t.Errorf("%v", err)
	}
}
