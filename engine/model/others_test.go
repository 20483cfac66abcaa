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
			refused(t, err, checkpoint.ErrUnsupported, kind, o.why, "qwen3, sparsellama")
		}
	}
	_, err := parse(t, `{"model_type":"gemma3"}`)
	refused(t, err, checkpoint.ErrUnsupported, "with transformers 4.57",
		"Gemma3ForCausalLM.from_pretrained(DIR).save_pretrained(OUT)")
	_, err = parse(t, `{"model_type":"qwen3_moe"}`)
	refused(t, err, checkpoint.ErrUnsupported, "mixture of experts", "--like qwen3-30b-a3b")
	_, err = parse(t, `{"model_type":"windmill"}`)
	refused(t, err, checkpoint.ErrUnsupported, `model_type "windmill"; the engine runs`)
}
