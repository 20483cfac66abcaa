package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine/checkpoint"
)

// TestOthersAreRefusedWithARemedy: a model of no family is refused by its name, with what to do
// instead, and a name is in one list.
func TestOthersAreRefusedWithARemedy(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range others() {
		for _, kind := range strings.Fields(o.modelTypes) {
			if seen[kind] || slices.Contains(modelTypes(), kind) {
				t.Errorf("%s is in two lists, or in a family", kind)
			}
			seen[kind] = true
			_, err := parse(t, fmt.Sprintf(`{"model_type":%q,"text_config":{}}`, kind))
			refused(t, err, checkpoint.ErrUnsupported, fmt.Sprintf("model_type %q: ", kind),
				"; the engine runs ", "qwen3, sparsellama")
		}
	}
	// One of each kind, with its words and its remedy.
	fixed := map[string][]string{
		"qwen3_moe": {"a mixture of experts", "synth trace --like qwen3-30b-a3b"},
		"gemma3": {"a model of images and text; save its text model by itself",
			"with transformers 4.57",
			"Gemma3ForCausalLM.from_pretrained(DIR).save_pretrained(OUT)"},
		"gemma":      {"Gemma 1, ", "use Gemma 2 or 3"},
		"qwen2_vl":   {"a model of images, sound or video; use one of text alone"},
		"t5":         {"an encoder with a decoder; use a decoder alone"},
		"bert":       {"an encoder, which generates no text; use a decoder"},
		"mamba2":     {"a recurrent model, without a cache of keys; use a transformer"},
		"starcoder2": {"no checkpoint of it has been compared with transformers here"},
	}
	for _, o := range others() {
		if !slices.ContainsFunc(strings.Fields(o.modelTypes), func(kind string) bool {
			return fixed[kind] != nil
		}) {
			t.Errorf("no text is fixed for the kind of %s", o.modelTypes)
		}
	}
	for kind, want := range fixed {
		_, err := parse(t, fmt.Sprintf(`{"model_type":%q}`, kind))
		refused(t, err, checkpoint.ErrUnsupported, want...)
	}
	_, err := parse(t, `{"model_type":"windmill"}`)
	refused(t, err, checkpoint.ErrUnsupported, `model_type "windmill"; the engine runs`)
}
