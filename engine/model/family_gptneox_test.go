package model

import (
	"reflect"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine/checkpoint"
)

// pythia has the fields of a published config.json of Pythia.
const pythia = `{"architectures":["GPTNeoXForCausalLM"],"bos_token_id":0,"eos_token_id":0,
"classifier_dropout":0.1,"hidden_act":"gelu","hidden_size":64,"initializer_range":0.02,
"intermediate_size":256,"layer_norm_eps":1e-05,"max_position_embeddings":2048,
"model_type":"gpt_neox","num_attention_heads":4,"num_hidden_layers":3,"rotary_emb_base":10000,
"rotary_pct":0.25,"tie_word_embeddings":false,"torch_dtype":"float16","use_cache":true,
"transformers_version":"4.24.0","use_parallel_residual":true,"vocab_size":50304`

func TestGPTNeoXConfigs(t *testing.T) {
	c, err := parse(t, pythia+"}")
	if err != nil {
		t.Fatal(err)
	}
	rotary := Rotary{Dim: 4, Theta: 10000}
	if a := c.Arch; !reflect.DeepEqual(a.Rotary, rotary) || !a.Parallel || a.SharedNorm ||
		!a.AttnBias || !a.OutBias || !a.FFNBias || a.Tied || a.Shape.KVHeads != 4 {
		t.Errorf("got %+v", a)
	}
	c, err = parse(t, `{"model_type":"gpt_neox","hidden_size":64,"num_hidden_layers":3,
		"num_attention_heads":4,"intermediate_size":256,"vocab_size":96}`)
	if a := c.Arch; err != nil || !reflect.DeepEqual(a.Rotary, rotary) || !a.Parallel ||
		!a.AttnBias || a.Shape.MaxPos != 2048 {
		t.Errorf("with defaults: %+v, %v", a, err)
	}
	// GPT-NeoX-20B has older names of dropouts, and another approximation of GELU.
	c, err = parse(t, strings.Replace(pythia, `"gelu"`, `"gelu_fast"`, 1)+
		`,"attention_probs_dropout_prob":0,"hidden_dropout_prob":0}`)
	if err != nil || c.Arch.Activation.Kind != GELUNew {
		t.Errorf("got %+v, %v", c.Arch, err)
	}
	for more, want := range map[string]string{
		`,"rope_theta":500}`:            "rope_theta = other than rotary_emb_base",
		`,"partial_rotary_factor":0.5}`: "partial_rotary_factor = other than rotary_pct",
	} {
		_, err := parse(t, pythia+more)
		refused(t, err, checkpoint.ErrUnsupported, want)
	}
}
