package model

import (
	"fmt"
	"math"
	"testing"

	"github.com/windrow-sim/windrow/engine/checkpoint"
)

// phi4 has the fields of a published config.json of Phi-4-mini, for heads of eight elements.
func phi4(scaling string) string {
	return fmt.Sprintf(`{"architectures":["Phi3ForCausalLM"],"model_type":"phi3",
"attention_bias":false,"attention_dropout":0.0,"auto_map":{"AutoConfig":"x"},"bos_token_id":199999,
"embd_pdrop":0.0,"eos_token_id":199999,"full_attn_mod":1,"hidden_act":"silu","hidden_size":32,
"initializer_range":0.02,"intermediate_size":64,"interpolate_factor":1,"lm_head_bias":false,
"max_position_embeddings":131072,"mlp_bias":false,"num_attention_heads":4,"num_hidden_layers":2,
"num_key_value_heads":2,"original_max_position_embeddings":4096,"pad_token_id":199999,
"partial_rotary_factor":0.75,"resid_pdrop":0.0,"rms_norm_eps":1e-05,"rope_scaling":{%s},
"rope_theta":10000.0,"sliding_window":262144,"tie_word_embeddings":true,"torch_dtype":"bfloat16",
"transformers_version":"4.45.0","use_cache":true,"vocab_size":96}`, scaling)
}

// TestLongRope: the long factors count from the first position beyond the original ones, and what
// is rotated grows as in section 3 of the paper of LongRoPE.
func TestLongRope(t *testing.T) {
	const factors = `"short_factor":[1,1.5,2],"long_factor":[1,8,32]`
	for _, kind := range []string{"longrope", "su"} {
		c, err := parse(t, phi4(`"type":"`+kind+`",`+factors))
		if err != nil {
			t.Fatal(err)
		}
		r := c.Arch.Rotary
		if want := math.Sqrt(1 + math.Log(32)/math.Log(4096)); r.Dim != 6 ||
			math.Abs(r.Size()-want) > 1e-12 {
			t.Errorf("%s: %d elements are rotated, times %v; want 6, times %v", kind, r.Dim,
				r.Size(), want)
		}
		for context, want := range map[int][]float64{4096: {1, 1.5, 2}, 4097: {1, 8, 32}} {
			for i, f := range r.Frequencies(context) {
				if exact := math.Pow(10000, -float64(i)/3) / want[i]; math.Abs(f-exact) > 1e-12 {
					t.Errorf("%s: in %d positions frequency %d is %v, want %v", kind, context, i, f,
						exact)
				}
			}
		}
		if again, err := decodeArch(c.Arch.encode()); err != nil ||
			again.Rotary.Frequencies(9999)[2] != r.Frequencies(9999)[2] {
			t.Errorf("%s: read from an image: %+v, %v", kind, again.Rotary, err)
		}
	}
	c, err := parse(t, phi4(`"type":"longrope","attention_factor":1.25,`+factors))
	if err != nil || c.Arch.Rotary.Size() != 1.25 {
		t.Errorf("attention_factor 1.25 is read as %v, %v", c.Arch.Rotary.Size(), err)
	}
	for scaling, want := range map[string]string{
		`"type":"longrope","short_factor":[1,2,3]`:                            "rope_scaling.long_factor",
		`"type":"longrope","short_factor":[1,2],"long_factor":[1,2,3]`:        "2 short",
		`"type":"longrope","short_factor":[1,0,1],"long_factor":[1,2,3]`:      "above 0",
		`"type":"longrope","attention_factor":-1,` + factors:                  "times -1",
		`"type":"longrope","short_factor":[1,1e999,1],"long_factor":[1,2,3]`:  "rope_scaling",
		`"type":"longrope","short_factor":["x",1,1],"long_factor":[1,2,3]`:    "rope_scaling",
		`"type":"longrope","short_factor":[1,-2.5,1],"long_factor":[1,2,3.5]`: "3 factors above 0",
	} {
		_, err := parse(t, phi4(scaling))
		refused(t, err, checkpoint.ErrFormat, want)
	}
	_, err = parse(t, phi4(`"type":"yarn",`+factors))
	refused(t, err, checkpoint.ErrUnsupported, "rope_scaling", "yarn")
	// Other families are not tested with it, and Llama's only with factors that do not depend on
	// the context.
	for kind, want := range map[string]string{"qwen2": "rotary factors by context (longrope)",
		"llama": "rope_scaling = "} {
		_, err = parse(t, `{"model_type":"`+kind+`","hidden_size":32,"num_hidden_layers":2,
			"num_attention_heads":4,"intermediate_size":64,"vocab_size":96,
			"original_max_position_embeddings":1024,"rope_scaling":{"type":"longrope",
			"short_factor":[1,1.5,2,3],"long_factor":[1,8,32,33]}}`)
		refused(t, err, checkpoint.ErrUnsupported, want)
	}
}
