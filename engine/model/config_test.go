package model

import (
	"reflect"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine/checkpoint"
)

// asSaved is the config.json of transformers 4.46.3 for a small OPTConfig.
const asSaved = `{"_remove_final_layer_norm":false,"activation_function":"relu","architectures":["OPTForCausalLM"],"attention_dropout":0.0,
"bos_token_id":2,"do_layer_norm_before":true,"dropout":0.1,"enable_bias":true,"eos_token_id":2,"ffn_dim":64,"hidden_size":16,"init_std":0.02,
"layer_norm_elementwise_affine":true,"layerdrop":0.0,"max_position_embeddings":24,"model_type":"opt","num_attention_heads":4,
"num_hidden_layers":2,"pad_token_id":1,"torch_dtype":"float16","transformers_version":"4.46.3","use_cache":true,"vocab_size":40,
"word_embed_proj_dim":16`

func parse(t *testing.T, text string) (Config, error) {
	t.Helper()
	o, err := checkpoint.ParseObject([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return ParseConfig(o)
}

func TestConfigOfASavedModel(t *testing.T) {
	c, err := parse(t, asSaved+"}")
	if err != nil {
		t.Fatal(err)
	}
	saved := Config{Arch: versionOne(tiny()), DType: "float16", version: "4.46.3"}
	if !reflect.DeepEqual(c, saved) {
		t.Errorf("got %+v, want %+v", c, saved)
	}
	c, err = parse(t,
		`{"model_type":"opt","ffn_dim":64,"hidden_size":16,"max_position_embeddings":24,"num_attention_heads":4,
		"num_hidden_layers":2,"vocab_size":40,"word_embed_proj_dim":null,"tie_word_embeddings":false}`)
	want := versionOne(tiny())
	want.Tied = false
	if want := (Config{Arch: want, tied: true}); err != nil || !reflect.DeepEqual(c, want) {
		t.Errorf("with defaults: %+v, %v", c, err)
	}
}

func TestField_M19_FieldsThatWouldChangeTheComputation(t *testing.T) {
	for _, c := range [][2]string{
		{"activation_function", `"tanh"`}, {"layer_norm_elementwise_affine", "false"},
		{"num_experts", "8"}, {"num_key_value_heads", "2"},
		{"quantization_config", `{"bits":4}`}, {"is_encoder_decoder", "true"}, {"pruned_heads",
			`{"0":[1]}`}, {"Hidden_Size", "32"},
		{"rope_scaling", `{"type":"linear","factor":2}`},
	} {
		text := asSaved
		if i := strings.Index(text, `"`+c[0]+`"`); i >= 0 { // replace the value that is there
			end := i + strings.IndexAny(text[i:]+",", ",")
			text = text[:i] + text[end+min(1, len(text)-end):]
			text = strings.TrimRight(text, ", \n")
		}
		_, err := parse(t, text+`,"`+c[0]+`": `+c[1]+"}")
		refused(t, err, checkpoint.ErrUnsupported, c[0]+" = "+c[1])
	}
	_, err := parse(t, asSaved+`,"num_experts":8,"router":"top2"}`)
	refused(t, err, checkpoint.ErrUnsupported, `num_experts = 8, router = "top2"`)
	_, err = parse(t, strings.Replace(asSaved, "OPTForCausalLM", "OPTForSequenceClassification",
		1)+"}")
	refused(t, err, checkpoint.ErrUnsupported, "architectures = OPTForSequenceClassification")
	_, err = parse(t, strings.Replace(asSaved, `"opt"`, `"gpt2"`, 1)+"}")
	refused(t, err, checkpoint.ErrUnsupported, `model_type "gpt2"`)
}

func TestConfigThatIsNoShape(t *testing.T) {
	for _, c := range [][3]string{
		{`"hidden_size":16,`, ``, "missing: hidden_size"},
		{`"hidden_size":16`, `"hidden_size":"16"`, "hidden_size"},
		{`"hidden_size":16`, `"hidden_size":16.5`, "hidden_size"},
		{`"hidden_size":16`, `"hidden_size":18`, "not a multiple"},
		{`"num_attention_heads":4`, `"num_attention_heads":0`, "not a multiple"},
		{`"ffn_dim":64`, `"ffn_dim":-64`, "d_ffn is -64"},
		{`"vocab_size":40`, `"vocab_size":99999999999`, "vocab is"},
		{`"num_hidden_layers":2`, `"num_hidden_layers":0`, "layers is 0"},
	} {
		_, err := parse(t, strings.Replace(asSaved, c[0], c[1], 1)+"}")
		refused(t, err, checkpoint.ErrFormat, c[2])
	}
}
