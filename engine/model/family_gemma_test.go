package model

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/engine/checkpoint"
)

// gemma has the fields of published config.json files of Gemma 2 and 3.
func gemma(kind, class, more string) string {
	return fmt.Sprintf(`{"architectures":[%q],"model_type":%q,"attention_bias":false,
"attention_dropout":0.0,"bos_token_id":2,"cache_implementation":"hybrid","eos_token_id":[1,106],
"head_dim":8,"hidden_activation":"gelu_pytorch_tanh","hidden_size":48,"initializer_range":0.02,
"intermediate_size":64,"max_position_embeddings":8192,"num_attention_heads":4,
"num_hidden_layers":8,"num_key_value_heads":2,"pad_token_id":0,"query_pre_attn_scalar":144,
"rms_norm_eps":1e-06,"sliding_window":512,"torch_dtype":"bfloat16","use_cache":true,
"transformers_version":"4.50.0","vocab_size":96%s}`, class, kind, more)
}

func gemma2(more string) string {
	return gemma("gemma2", "Gemma2ForCausalLM", `,"attn_logit_softcapping":50.0,
"final_logit_softcapping":30.0,"hidden_act":"gelu_pytorch_tanh","rope_theta":10000.0,
"sliding_window_size":512`+more)
}

func gemma3(more string) string {
	return gemma("gemma3_text", "Gemma3ForCausalLM", `,"final_logit_softcapping":null,
"attn_logit_softcapping":null,"rope_theta":1000000,"rope_local_base_freq":10000`+more)
}

func TestGemmaConfigs(t *testing.T) {
	full := func(a *Arch) (list []int) {
		for l := range a.Shape.Layers {
			if a.WindowOf(l) == 0 {
				list = append(list, l)
			}
		}
		return list
	}
	read := func(config string) *Arch {
		t.Helper()
		c, err := parse(t, config)
		if err != nil {
			t.Fatal(err)
		}
		return &c.Arch
	}
	a := read(gemma2(""))
	if a.EmbedScale != float64(float32(math.Sqrt(48))) || a.QueryScale != 1./12 || !a.Tied ||
		a.ScoreCap != 50 || a.LogitCap != 30 || a.Activation.Kind != GELUNew || a.QKNorm {
		t.Errorf("Gemma 2: %+v", a)
	}
	if got, want := full(a), []int{1, 3, 5, 7}; !slices.Equal(got, want) {
		t.Errorf("Gemma 2: layers without a window: %v, want %v", got, want)
	}
	a = read(gemma3(""))
	if !a.QKNorm || a.ScoreCap != 0 || a.LogitCap != 0 || a.RotaryOf(0).Theta != 10000 ||
		a.RotaryOf(5).Theta != 1e6 {
		t.Errorf("Gemma 3: %+v", a)
	}
	if got, want := full(a), []int{5}; !slices.Equal(got, want) {
		t.Errorf("Gemma 3: layers without a window: %v, want %v", got, want)
	}
	a = read(gemma3(`,"_sliding_window_pattern":5,"sliding_window_pattern":4`))
	if got, want := full(a), []int{3, 7}; !slices.Equal(got, want) {
		t.Errorf("Gemma 3 with a pattern of 4: layers without a window: %v, want %v", got, want)
	}
	for _, name := range []string{"attn_logit_softcapping", "final_logit_softcapping"} {
		for _, value := range []string{"0", "-1.5"} {
			_, err := parse(t, gemma("gemma2", "Gemma2ForCausalLM", `,"`+name+`":`+value))
			refused(t, err, checkpoint.ErrFormat, name+" is "+value, "or null")
		}
	}
	// Version 5 has the rotary positions by type of layer, with the same defaults.
	const five = `,"rope_parameters":{"full_attention":{%s"rope_type":"linear","factor":8},` +
		`"sliding_attention":{%s"rope_type":"default"}}`
	for _, c := range []struct {
		full, local string
		want        [2]float64
	}{{`"rope_theta":5e5,`, `"rope_theta":500,`, [2]float64{5e5, 500}}, {"", "",
		[2]float64{1e6, 1e4}}} {
		b := read(gemma("gemma3_text", "Gemma3ForCausalLM", fmt.Sprintf(five, c.full, c.local)))
		full, local := Rotary{Dim: 8, Theta: c.want[0], Factor: 8}, Rotary{Dim: 8, Theta: c.want[1]}
		if !reflect.DeepEqual(*b.RotaryOf(5), full) || !reflect.DeepEqual(*b.RotaryOf(0), local) {
			t.Errorf("%+v is read as %+v and %+v", c, *b.RotaryOf(5), *b.RotaryOf(0))
		}
	}
	for more, want := range map[string]string{
		fmt.Sprintf(five, "", "") + `,"rope_local_base_freq":500`: "rope_local_base_freq = 500",
		fmt.Sprintf(five, "", `"partial_rotary_factor":0.5,`):     "a partial_rotary_factor",
		`,"rope_parameters":{"full_attention":{"rope_type":"yarn"},"chunked":{}}`: "" +
			"full_attention",
	} {
		_, err := parse(t, gemma("gemma3_text", "Gemma3ForCausalLM", more))
		refused(t, err, checkpoint.ErrUnsupported, want)
	}
	for config, want := range map[string]string{
		gemma3(`,"use_bidirectional_attention":true`): "use_bidirectional_attention = true",
		gemma("gemma3_text", "Gemma3ForCausalLM", `,"attn_logit_softcapping":50.0`): "" +
			"attn_logit_softcapping = 50.0",
		gemma("gemma3_text", "Gemma3ForConditionalGeneration", ""): "ConditionalGeneration",
	} {
		_, err := parse(t, config)
		refused(t, err, checkpoint.ErrUnsupported, want)
	}
	// The numbers of an image are checked too.
	for name, change := range map[string]func(a *Arch){
		"logit_cap":           func(a *Arch) { a.LogitCap = -1 },
		"score_cap":           func(a *Arch) { a.ScoreCap = math.NaN() },
		"query_scale":         func(a *Arch) { a.QueryScale = math.Inf(1) },
		"embed_scale":         func(a *Arch) { a.EmbedScale = 1e39 },
		"rotary positions":    func(a *Arch) { a.LocalRotary.Dim = 9 },
		"rope_theta is -1":    func(a *Arch) { a.LocalRotary.Theta = -1 },
		"full_layers of 2 nu": func(a *Arch) { a.Window = 0 },
	} {
		b := *a
		change(&b)
		refused(t, b.check(), checkpoint.ErrFormat, name)
	}
	b := *a
	b.Window, b.FullLayers = 0, nil
	refused(t, b.check(), checkpoint.ErrUnsupported, "layers with a window")
}
