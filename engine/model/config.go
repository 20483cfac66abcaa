package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/windrow-sim/windrow/engine/checkpoint"
)

// Arch is the architecture that this package knows.
const Arch = "opt"

// Activation is the activation function of OPT's FFN: a neuron is active when its value before it is above 0.
const Activation = "relu"

// Config is what config.json of an OPT model says about the computation.
type Config struct {
	Shape      Shape
	Activation string
	// Tied says that the output head is the embedding, the default.
	Tied bool
	// DType is the torch_dtype (or dtype) that the file claims, empty when it claims none. Only a hint: the tensors'
	// own types count.
	DType string
}

// fixed lists the fields that change the computation and have one supported value, as JSON. An absent field and null mean
// that value, which is also the default of the reference implementation.
func fixed() map[string][]string {
	return map[string][]string{
		"activation_function":           {`"relu"`},
		"do_layer_norm_before":          {"true"}, // false: OPT-350M
		"enable_bias":                   {"true"},
		"layer_norm_elementwise_affine": {"true"},
		"_remove_final_layer_norm":      {"false"},
		"is_encoder_decoder":            {"false"},
		"add_cross_attention":           {"false"},
		"cross_attention_hidden_size":   {},
		"pruned_heads":                  {"{}"},
		"use_bfloat16":                  {"false"},
	}
}

// harmless lists fields that do not change what a trained model computes: training, generation defaults, bookkeeping.
func harmless() []string {
	return []string{
		"_name_or_path", "_commit_hash", "_attn_implementation_autoset", "transformers_version", "model_type", "architectures", "torch_dtype", "dtype",
		"dropout", "attention_dropout", "activation_dropout", "layerdrop", "init_std", "gradient_checkpointing",
		"use_cache", "output_projection", "share_decoder_input_output_embed", "chunk_size_feed_forward",
		"bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "decoder_start_token_id", "prefix", "tokenizer_class",
		"is_decoder", "tie_encoder_decoder", "return_dict", "output_hidden_states", "output_attentions", "torchscript", "tf_legacy_loss",
		"finetuning_task", "id2label", "label2id", "num_labels", "task_specific_params", "problem_type",
		"max_length", "min_length", "do_sample", "early_stopping", "num_beams", "num_beam_groups", "diversity_penalty", "temperature",
		"top_k", "top_p", "typical_p", "repetition_penalty", "length_penalty", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size",
		"bad_words_ids", "num_return_sequences", "output_scores", "return_dict_in_generate", "forced_bos_token_id", "forced_eos_token_id",
		"remove_invalid_values", "exponential_decay_length_penalty", "suppress_tokens", "begin_suppress_tokens",
	}
}

// ParseConfig reads config.json of an OPT model. Every field that could change the computation and is not honoured is an
// ErrUnsupported that names it with its value, and so is every field that is not known to be harmless: a field ignored
// in silence is a model computed wrongly.
func ParseConfig(o checkpoint.Object) (Config, error) {
	c, err := parseConfig(o)
	if err != nil {
		return c, fmt.Errorf("model: %w", err)
	}
	return c, nil
}

func parseConfig(o checkpoint.Object) (Config, error) {
	c := Config{Activation: Activation, Tied: true}
	if err := c.parse(o); err != nil {
		return c, fmt.Errorf("config.json: %w", err)
	}
	return c, nil
}

func (c *Config) parse(o checkpoint.Object) error {
	var kind string
	if _, err := o.Get("model_type", &kind); err != nil {
		return err
	}
	if kind != Arch {
		return fmt.Errorf("%w: model_type %q; only %q is", checkpoint.ErrUnsupported, kind, Arch)
	}
	if err := c.readShape(o); err != nil {
		return err
	}
	if err := refuse(o, c.Shape); err != nil {
		return err
	}
	if _, err := o.Get("tie_word_embeddings", &c.Tied); err != nil {
		return err
	}
	for _, name := range []string{"dtype", "torch_dtype"} { // the older name wins when a file has both
		if _, err := o.Get(name, &c.DType); err != nil {
			return err
		}
	}
	return nil
}

// sizes pairs the names of config.json with the fields of a Shape.
func sizes(s *Shape) map[string]*int {
	return map[string]*int{
		"hidden_size": &s.DModel, "num_hidden_layers": &s.Layers, "ffn_dim": &s.DFFN, "num_attention_heads": &s.Heads,
		"vocab_size": &s.Vocab, "max_position_embeddings": &s.MaxPos,
	}
}

func (c *Config) readShape(o checkpoint.Object) error {
	fields := sizes(&c.Shape)
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		ok, err := o.Get(name, fields[name])
		if err != nil {
			return err
		}
		if !ok {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: missing: %s", checkpoint.ErrFormat, strings.Join(missing, ", "))
	}
	s := &c.Shape
	s.KVHeads, s.Rows, s.DTypeSize = s.Heads, 2, 2
	if s.Heads > 0 && s.DModel%s.Heads == 0 {
		s.HeadDim = s.DModel / s.Heads
	} else {
		return fmt.Errorf("%w: hidden_size %d is not a multiple of num_attention_heads %d", checkpoint.ErrFormat, s.DModel, s.Heads)
	}
	return s.check()
}

// refuse collects every field that the engine would not honour.
func refuse(o checkpoint.Object, s Shape) error {
	only := fixed()
	only["word_embed_proj_dim"] = []string{fmt.Sprint(s.DModel)}
	only["num_key_value_heads"] = []string{fmt.Sprint(s.Heads)}
	known := append(harmless(), "tie_word_embeddings")
	shape := sizes(&s)
	var bad []string
	for _, name := range o.Names() {
		var text bytes.Buffer
		if err := json.Compact(&text, o[name]); err != nil {
			return err
		}
		value := text.String()
		allowed, isFixed := only[name]
		if _, ok := shape[name]; ok || slices.Contains(known, name) {
			continue
		}
		if isFixed && (value == "null" || slices.Contains(allowed, value)) {
			continue
		}
		if len(value) > 40 {
			value = value[:40] + "..."
		}
		bad = append(bad, name+" = "+value)
	}
	var archs []string
	if _, err := o.Get("architectures", &archs); err != nil {
		return err
	}
	for _, a := range archs {
		if a != "OPTForCausalLM" && a != "OPTModel" {
			bad = append(bad, "architectures = "+a)
		}
	}
	if len(bad) > 0 {
		return fmt.Errorf("%w: these fields would change the computation or are not known: %s", checkpoint.ErrUnsupported, strings.Join(bad, ", "))
	}
	return nil
}
