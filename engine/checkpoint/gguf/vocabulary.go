package gguf

import (
	"fmt"
	"io/fs"
)

// Vocabulary is the tokenizer that a GGUF file carries.
type Vocabulary struct {
	Model  string // "gpt2" for byte-level BPE, "llama" for SentencePiece
	Pre    string // the pre-tokenizer; may be empty
	Tokens []string
	Merges []string  // pairs of tokens with a space between them, best first; BPE only
	Scores []float32 // of the tokens; nil when there are none
	// llama.cpp's kinds of tokens (1 normal, 2 unknown, 3 control, 6 byte); nil when there are none
	Types []int32
	// The ids of special tokens, −1 for those that the file does not have.
	BOS, EOS, Unknown, Padding int64
	// put BOS in front, EOS at the end; nil if the file does not say
	AddBOS, AddEOS *bool
	SpacePrefix    *bool // put a space in front; nil when the file does not say
}

// Vocabulary returns the tokenizer. A file without one is an fs.ErrNotExist. A tokenizer that
// cannot work, such as byte-level BPE without merges (it would split everything into single bytes),
// is a checkpoint.ErrFormat: call this when a model is imported.
func (f *File) Vocabulary() (Vocabulary, error) {
	v, err := f.readVocabulary()
	if err == nil {
		err = v.check()
	}
	if err != nil {
		return Vocabulary{}, fmt.Errorf("gguf: %s: tokenizer: %w", f.Name(), err)
	}
	return v, nil
}

func (f *File) readVocabulary() (v Vocabulary, err error) {
	const prefix = "tokenizer.ggml."
	var hasModel, hasTokens bool
	if v.Model, hasModel, err = Get[string](f, prefix+"model"); err != nil {
		return v, err
	}
	if v.Tokens, hasTokens, err = Get[[]string](f, prefix+"tokens"); err != nil {
		return v, err
	}
	if !hasModel || !hasTokens {
		return v, fmt.Errorf("%w: no %smodel with %stokens; take the tokenizer of the original "+
			"model", fs.ErrNotExist, prefix, prefix)
	}
	if v.Pre, _, err = Get[string](f, prefix+"pre"); err != nil {
		return v, err
	}
	if v.Merges, _, err = Get[[]string](f, prefix+"merges"); err != nil {
		return v, err
	}
	if v.Scores, _, err = Get[[]float32](f, prefix+"scores"); err != nil {
		return v, err
	}
	if v.Types, _, err = Get[[]int32](f, prefix+"token_type"); err != nil {
		return v, err
	}
	for _, flag := range []struct {
		key string
		dst **bool
	}{{"add_bos_token", &v.AddBOS}, {"add_eos_token", &v.AddEOS}, {"add_space_prefix",
		&v.SpacePrefix}} {
		yes, ok, err := Get[bool](f, prefix+flag.key)
		if err != nil {
			return v, err
		}
		if ok {
			*flag.dst = &yes
		}
	}
	for _, id := range []struct {
		key string
		dst *int64
	}{{"bos", &v.BOS}, {"eos", &v.EOS}, {"unknown", &v.Unknown}, {"padding", &v.Padding}} {
		n, ok, err := f.Int(prefix + id.key + "_token_id")
		switch {
		case err != nil:
			return v, err
		case !ok || n == 1<<32-1: // llama.cpp's −1
			n = -1
		case n < 0 || n >= int64(len(v.Tokens)):
			return v, fmt.Errorf("%w: %s token %d of %d", errFormat, id.key, n, len(v.Tokens))
		}
		*id.dst = n
	}
	return v, nil
}

// check demands everything that a tokenizer needs to work.
func (v Vocabulary) check() error {
	switch n := len(v.Tokens); {
	case n == 0:
		return fmt.Errorf("%w: no tokens", errFormat)
	case v.Scores != nil && len(v.Scores) != n:
		return fmt.Errorf("%w: %d tokens, %d scores", errFormat, n, len(v.Scores))
	case v.Types != nil && len(v.Types) != n:
		return fmt.Errorf("%w: %d tokens, %d types", errFormat, n, len(v.Types))
	case v.Model == "gpt2" && len(v.Merges) == 0:
		return fmt.Errorf("%w: byte-level BPE without merges; convert the model again with its "+
			"merges.txt or tokenizer.json beside it", errFormat)
	case v.Model == "llama" && v.Scores == nil:
		return fmt.Errorf("%w: SentencePiece without scores; convert the model again with its "+
			"tokenizer.model beside it", errFormat)
	}
	return nil
}
