package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/windrow-sim/windrow/engine/checkpoint"
)

// other is a kind of models that no family reads.
type other struct {
	modelTypes string // separated by spaces
	why        string // and what to do instead
}

// others lists kinds of models that people try, so that a refusal can say more than their name.
func others() []other {
	return []other{
		{"mixtral qwen2_moe qwen3_moe qwen3_next olmoe phimoe gpt_oss deepseek_v2 deepseek_v3 " +
			"glm4_moe granitemoe jamba dbrx llama4 llama4_text smallthinker",
			"a mixture of experts, and the engine computes dense feed-forward parts alone; the " +
				"simulator takes synthetic traces of mixtures (synth trace --like qwen3-30b-a3b)"},
		{"gemma3", "a model of images and text; save its text model by itself, with transformers " +
			"4.57 (version 5 fills it with random weights): " +
			"Gemma3ForCausalLM.from_pretrained(DIR).save_pretrained(OUT)"},
		{"gemma", "Gemma 1, of which versions of transformers compute different activation " +
			"functions; use Gemma 2 or 3"},
		{"gemma3n gemma3n_text qwen2_vl qwen2_5_vl qwen3_vl mistral3 mllama llava " +
			"llava_next paligemma phi3_v phi4_multimodal idefics3 internvl",
			"a model of images, sound or video; use one of text alone"},
		{"t5 mt5 bart pegasus marian m2m_100 whisper",
			"an encoder with a decoder; use a decoder alone"},
		{"bert roberta distilbert deberta-v2 electra albert xlm-roberta modernbert",
			"an encoder, which generates no text; use a decoder"},
		{"mamba mamba2 falcon_mamba rwkv recurrent_gemma falcon_h1 bamba zamba2",
			"a recurrent model, without a cache of keys; use a transformer"},
		{"gpt2 gptj gpt_neo bloom mpt codegen starcoder2 stablelm cohere cohere2 olmo olmo2 glm4 " +
			"granite nemotron exaone4 smollm3 internlm2 baichuan chatglm",
			"no checkpoint of it has been compared with transformers here"},
	}
}

// errOther refuses a model_type of no family.
func errOther(kind string) error {
	known := strings.Join(modelTypes(), ", ")
	for _, o := range others() {
		if slices.Contains(strings.Fields(o.modelTypes), kind) {
			return fmt.Errorf("%w: model_type %q: %s; the engine runs %s",
				checkpoint.ErrUnsupported, kind, o.why, known)
		}
	}
	return fmt.Errorf("%w: model_type %.100q; the engine runs %s", checkpoint.ErrUnsupported, kind,
		known)
}
