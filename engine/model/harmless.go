package model

import "strings"

// harmlessFields are fields of config.json that change nothing of what a trained model computes
// for a text, and why.
type harmlessFields struct {
	why string
	// names, separated by blanks. NAME=VALUE is harmless with that value alone.
	names string
}

// harmless is the one list of them for all families. A field that a family reads itself is not
// here.
func harmless() []harmlessFields {
	return []harmlessFields{
		{"names of the model, of its code and of the program that saved it",
			"_name_or_path _commit_hash transformers_version model_type architectures auto_map " +
				"_from_model_config is_llama_config unsloth_version unsloth_fixed " +
				"transformers.js_config"},
		{"the type of the weights: the tensors' own counts", "torch_dtype dtype"},
		{"dropout happens in training", "dropout attention_dropout activation_dropout " +
			"hidden_dropout classifier_dropout resid_pdrop embd_pdrop layerdrop"},
		{"how weights were initialised and trained", "init_std initializer_range " +
			"gradient_checkpointing is_decoder tie_encoder_decoder neftune_noise_alpha"},
		{"how the reference computes the same sums", "use_cache pretraining_tp " +
			"chunk_size_feed_forward _attn_implementation_autoset _attn_implementation " +
			"attn_implementation _flash_attn_2_enabled"},
		{"how long texts were in training: max_position_embeddings counts",
			"max_sequence_length model_max_length seq_length"},
		{"left over from fairseq, which OPT was trained with: no part of transformers reads it",
			"output_projection share_decoder_input_output_embed"},
		{"ids and texts of the tokenizer, whose own files count", "bos_token_id pad_token_id " +
			"sep_token_id unk_token_id decoder_start_token_id prefix tokenizer_class"},
		{"what the reference returns beside logits", "return_dict output_hidden_states " +
			"output_attentions torchscript tf_legacy_loss"},
		{"heads of classifiers", "finetuning_task id2label label2id num_labels " +
			"task_specific_params problem_type"},
		{"defaults of generation: the flags of generate count", "max_length min_length " +
			"do_sample early_stopping num_beams num_beam_groups diversity_penalty temperature " +
			"top_k top_p typical_p repetition_penalty length_penalty no_repeat_ngram_size " +
			"encoder_no_repeat_ngram_size bad_words_ids num_return_sequences output_scores " +
			"return_dict_in_generate forced_bos_token_id forced_eos_token_id " +
			"remove_invalid_values exponential_decay_length_penalty suppress_tokens " +
			"begin_suppress_tokens"},
		{"an option of the reference that is off", "is_encoder_decoder=false " +
			"add_cross_attention=false pruned_heads={} use_bfloat16=false " +
			"rope_interleaved=false"},
	}
}

// ignoreHarmless marks the harmless fields as known.
func (f *fields) ignoreHarmless() {
	for _, group := range harmless() {
		for _, name := range strings.Fields(group.names) {
			if name, value, only := strings.Cut(name, "="); only {
				f.only(name, value)
			} else {
				f.ignore(name)
			}
		}
	}
}
