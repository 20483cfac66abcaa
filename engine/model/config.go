package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/windrow-sim/windrow/engine/checkpoint"
)

// Config holds the facts of config.json that the computation depends on.
type Config struct {
	Arch Arch
	// DType is the file's torch_dtype (or dtype); may be empty. It is only a hint: the tensors' own
	// types count.
	DType string
}

// harmless lists fields that do not change the computation of a trained model: training, generation
// defaults, bookkeeping.
func harmless() []string {
	return []string{
		"_name_or_path", "_commit_hash", "_attn_implementation_autoset", "transformers_version",
		"model_type", "architectures", "torch_dtype", "dtype", "auto_map",
		"dropout", "attention_dropout", "activation_dropout", "hidden_dropout", "resid_pdrop",
		"classifier_dropout", "embd_pdrop", "layerdrop", "init_std", "initializer_range",
		"gradient_checkpointing",
		"use_cache", "output_projection", "share_decoder_input_output_embed",
		"chunk_size_feed_forward", "pretraining_tp",
		"bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "unk_token_id",
		"decoder_start_token_id", "prefix", "tokenizer_class",
		"is_decoder", "tie_encoder_decoder", "return_dict", "output_hidden_states",
		"output_attentions", "torchscript", "tf_legacy_loss",
		"finetuning_task", "id2label", "label2id", "num_labels", "task_specific_params",
		"problem_type",
		"max_length", "min_length", "do_sample", "early_stopping", "num_beams", "num_beam_groups",
		"diversity_penalty", "temperature",
		"top_k", "top_p", "typical_p", "repetition_penalty", "length_penalty",
		"no_repeat_ngram_size", "encoder_no_repeat_ngram_size",
		"bad_words_ids", "num_return_sequences", "output_scores", "return_dict_in_generate",
		"forced_bos_token_id", "forced_eos_token_id",
		"remove_invalid_values", "exponential_decay_length_penalty", "suppress_tokens",
		"begin_suppress_tokens",
	}
}

// ParseConfig reads config.json. A field that could change the computation and is not honoured is
// an ErrUnsupported that names it with its value. So is every field that is not known to be
// harmless: a field ignored in silence is a model computed wrongly.
func ParseConfig(o checkpoint.Object) (Config, error) {
	c, err := parseConfig(o)
	if err != nil {
		return c, fmt.Errorf("model: %w", err)
	}
	return c, nil
}

func parseConfig(o checkpoint.Object) (Config, error) {
	c, err := readConfig(o)
	if err != nil {
		return c, fmt.Errorf("config.json: %w", err)
	}
	return c, nil
}

func readConfig(o checkpoint.Object) (c Config, err error) {
	var kind string
	if _, err := o.Get("model_type", &kind); err != nil {
		return c, err
	}
	family := findFamily(func(f *family) bool { return slices.Contains(f.modelTypes, kind) })
	if family == nil {
		return c, errOther(kind)
	}
	f := newFields(o)
	f.architectures(family.classes...)
	c.Arch = family.read(f)
	c.Arch.Family = family.name
	// the older name wins when a file has both
	for _, name := range []string{"dtype", "torch_dtype"} {
		f.optional(name, &c.DType)
	}
	if err := f.finish(); err != nil {
		return c, err
	}
	return c, c.Arch.check()
}

// modelTypes lists the accepted values of model_type.
func modelTypes() []string {
	var list []string
	for _, f := range families() {
		list = append(list, f.modelTypes...)
	}
	slices.Sort(list)
	return list
}

// fields reads the fields of a config.json and keeps the first error. finish refuses the fields
// that were not read.
type fields struct {
	object  checkpoint.Object
	known   map[string]bool
	missing []string
	refused []string // "name = value"
	err     error
}

func newFields(o checkpoint.Object) *fields {
	f := &fields{object: o, known: map[string]bool{}}
	f.ignore(harmless()...)
	return f
}

// optional reads a field; absent and null leave dst alone.
func (f *fields) optional(name string, dst any) (given bool) {
	f.known[name] = true
	given, err := f.object.Get(name, dst)
	if err != nil && f.err == nil {
		f.err = err
	}
	return given
}

// want reads a required field.
func (f *fields) want(name string, dst any) {
	if !f.optional(name, dst) && f.err == nil {
		f.missing = append(f.missing, name)
	}
}

// only refuses a field with any other value. Absent and null mean the supported value, which is
// also the default of the reference implementation.
func (f *fields) only(name string, values ...string) {
	f.known[name] = true
	m, ok := f.object[name]
	if !ok {
		return
	}
	if text := compact(m.JSON); text != "null" && !slices.Contains(values, text) {
		f.refuse(name, text)
	}
}

// ignore accepts any value of fields that do not change the computation of a trained model.
func (f *fields) ignore(names ...string) {
	for _, name := range names {
		f.known[name] = true
	}
}

func (f *fields) refuse(name, value string) {
	if len(value) > 40 {
		value = value[:40] + "..."
	}
	f.refused = append(f.refused, name+" = "+value)
}

func compact(raw json.RawMessage) string {
	var text bytes.Buffer
	if err := json.Compact(&text, raw); err != nil {
		return string(raw)
	}
	return text.String()
}

// architectures refuses models that are not language models of the family.
func (f *fields) architectures(known ...string) {
	var list []string
	f.optional("architectures", &list)
	for _, a := range list {
		if !slices.Contains(known, a) {
			f.refuse("architectures", a)
		}
	}
}

// shape reads the dimensions that all families name alike, and the neurons per layer from the field
// ffn unless that is empty. rows is the number of rows per neuron, positions the default of
// max_position_embeddings; 0 = that field must be there. Keys and values get as many heads as
// queries.
func (f *fields) shape(a *Arch, rows int, ffn string, positions int) {
	s := &a.Shape
	s.Rows, s.DTypeSize, s.MaxPos = rows, 2, positions
	f.want("hidden_size", &s.DModel)
	f.want("num_hidden_layers", &s.Layers)
	f.want("num_attention_heads", &s.Heads)
	f.want("vocab_size", &s.Vocab)
	if ffn != "" {
		f.want(ffn, &s.DFFN)
	}
	if positions == 0 {
		f.want("max_position_embeddings", &s.MaxPos)
	} else {
		f.optional("max_position_embeddings", &s.MaxPos)
	}
	f.heads(s)
	s.KVHeads = s.Heads
	a.Embed = s.DModel
}

// heads computes the size of a head from hidden_size if no field gives it.
func (f *fields) heads(s *Shape) {
	if s.HeadDim != 0 || f.err != nil || len(f.missing) > 0 {
		return
	}
	if s.Heads < 1 || s.DModel%s.Heads != 0 {
		f.err = fmt.Errorf("%w: hidden_size %d is not a multiple of num_attention_heads %d",
			checkpoint.ErrFormat, s.DModel, s.Heads)
		return
	}
	s.HeadDim = s.DModel / s.Heads
}

// finish returns the first error: a field that cannot be read, missing fields, or fields that are
// not honoured.
func (f *fields) finish() error {
	switch {
	case f.err != nil:
		return f.err
	case len(f.missing) > 0:
		slices.Sort(f.missing)
		return fmt.Errorf("%w: missing: %s", checkpoint.ErrFormat, strings.Join(f.missing, ", "))
	}
	// Fields that every configuration of the reference implementation may have, with the values
	// that change nothing.
	f.only("is_encoder_decoder", "false")
	f.only("add_cross_attention", "false")
	f.only("cross_attention_hidden_size")
	f.only("pruned_heads", "{}")
	f.only("use_bfloat16", "false")
	for _, name := range f.object.Names() {
		if !f.known[name] {
			f.refuse(name, compact(f.object[name].JSON))
		}
	}
	if len(f.refused) > 0 {
		return fmt.Errorf("%w: these fields would change the computation or are not known: %s",
			checkpoint.ErrUnsupported, strings.Join(f.refused, ", "))
	}
	return nil
}

// rotary reads rope_theta, rope_scaling and the rotated share of a head.
func (f *fields) rotary(headDim int, theta, share float64) Rotary {
	r := Rotary{Theta: theta}
	f.optional("rope_theta", &r.Theta)
	f.optional("partial_rotary_factor", &share)
	if share > 0 && share <= 1 {
		r.Dim = int(share * float64(headDim))
	}
	var scaling struct {
		Type     string  `json:"type"`
		RopeType string  `json:"rope_type"`
		Factor   float64 `json:"factor"`
		Low      float64 `json:"low_freq_factor"`
		High     float64 `json:"high_freq_factor"`
		Original int     `json:"original_max_position_embeddings"`
		longFactors
	}
	if !f.optional("rope_scaling", &scaling) {
		return r
	}
	if scaling.RopeType == "" {
		scaling.RopeType = scaling.Type
	}
	switch scaling.RopeType {
	case "default":
	case "linear":
		r.Factor = scaling.Factor
	case "llama3":
		r.Factor, r.LowFactor, r.HighFactor, r.Original = scaling.Factor, scaling.Low, scaling.High,
			scaling.Original
		if r.Original < 1 {
			f.refuse("rope_scaling", compact(f.object["rope_scaling"].JSON))
		}
	case "longrope", "su":
		f.longRope(&r, scaling.Original, scaling.Factor, scaling.longFactors)
	default:
		f.refuse("rope_scaling", compact(f.object["rope_scaling"].JSON))
	}
	return r
}

// activation maps the reference implementation's names.
func (f *fields) activation(field, absent string) Activation {
	name := absent
	f.optional(field, &name)
	kind, ok := map[string]Kind{
		"relu": ReLU, "relu2": ReLU2, "silu": SiLU, "swish": SiLU, "gelu": GELU,
		"gelu_new": GELUNew, "gelu_pytorch_tanh": GELUNew, "gelu_fast": GELUNew, "fatrelu": FATReLU,
	}[name]
	if !ok && f.err == nil {
		f.refuse(field, compact(f.object[field].JSON))
	}
	a := Activation{Kind: kind}
	if kind == FATReLU {
		f.want("hidden_act_param", &a.Threshold)
	}
	return a
}
