package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/windrow-sim/windrow/engine/chat"
	"github.com/windrow-sim/windrow/engine/checkpoint/gguf"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/engine/tokenizer"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/tell"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// PackConfig says of what to make a flash image.
type PackConfig struct {
	Source      string // Hugging Face folder, or GGUF file
	Out         string // image to write
	Name        string // of the model; "" = the source's
	Dtype       string // f16, bf16, f32, q8 or q4; "" = as the weights are stored
	Tokenizer   string // folder or GGUF file; "" = Source
	IgnoreIndex bool   // take every weights file of the folder, whatever its index says
	// IgnoreKey are fields of config.json that are not known, and change nothing of what the model
	// computes.
	IgnoreKey    []string
	RecordStride units.Bytes
	Tell         tell.Tell
}

// Check refuses a source that there is not, and a type that is not known.
func (c *PackConfig) Check() error {
	if info, err := os.Stat(c.Source); err != nil {
		return fmt.Errorf("pack: %w", err)
	} else if !info.IsDir() && !isGGUF(c.Source) {
		return refusal.Input("pack: %s is not a folder; name the one that holds the model's "+
			"config.json, or a GGUF file", c.Source)
	}
	if _, known := ref.ParseFormat(strings.ToUpper(c.Dtype)); c.Dtype != "" && !known {
		return refusal.Config("{Dtype} %s: f16, bf16, f32, q8 and q4 are known", c.Dtype)
	}
	return nil
}

// Pack turns a model, with its tokenizer, into a flash image.
func Pack(ctx context.Context, cfg PackConfig) (*model.PackReport, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	text, err := cfg.tokenizer(ctx)
	if err != nil {
		return nil, err
	}
	template, err := cfg.chat(ctx)
	if err != nil {
		return nil, err
	}
	opt := model.PackOptions{Name: cfg.Name, Tokenizer: text, Chat: template,
		IgnoreIndex: cfg.IgnoreIndex, IgnoreKeys: cfg.IgnoreKey, Stride: cfg.RecordStride}
	if opt.Name == "" {
		opt.Name = filepath.Base(filepath.Clean(cfg.Source))
		if isGGUF(cfg.Source) {
			opt.Name = gguf.BaseName(cfg.Source)
		}
	}
	if cfg.Dtype != "" {
		format, _ := ref.ParseFormat(strings.ToUpper(cfg.Dtype))
		opt.Format = &format
	}
	opt.Progress = cfg.Tell.MiB("pack (MiB)")
	return model.Pack(ctx, cfg.Source, cfg.Out, opt)
}

// chat finds the model's chat template, and says where it is.
func (c *PackConfig) chat(ctx context.Context) (t model.ChatTemplate, err error) {
	from := c.Tokenizer
	if from == "" {
		from = c.Source
	}
	found := chat.Source{}
	if isGGUF(from) {
		found, err = listedChat(ctx, from)
	} else {
		found, err = chat.Find(ctx, from)
	}
	switch {
	case err != nil:
		return t, fmt.Errorf("pack: %w", err)
	case found.Text != "":
		c.Tell.Notef("chat template: %s", found.From)
	case found.From != "":
		c.Tell.Notef("no chat template: %s", found.From)
		return t, nil
	}
	return model.ChatTemplate(found), nil
}

// listedChat is the chat template of a GGUF file.
func listedChat(ctx context.Context, path string) (chat.Source, error) {
	f, err := gguf.Open(ctx, path)
	if err != nil {
		return chat.Source{}, err
	}
	defer f.Close()
	const key = "tokenizer.chat_template"
	text, ok, err := gguf.Get[string](f, key)
	if err != nil || !ok {
		return chat.Source{}, err
	}
	return chat.FromText(text, filepath.Base(path)+", "+key)
}

// GGUFArchitectures lists the architectures of GGUF files that can be packed.
func GGUFArchitectures() []string { return gguf.Architectures() }

func isGGUF(path string) bool { return strings.EqualFold(filepath.Ext(path), ".gguf") }

// tokenizer is the text form of the model's tokenizer; nil for a GGUF file without one, or with one
// that is not supported.
func (c *PackConfig) tokenizer(ctx context.Context) ([]byte, error) {
	from := c.Tokenizer
	if from == "" {
		from = c.Source
	}
	load := tokenizer.Load
	if isGGUF(from) {
		load = loadListed
	}
	tok, err := load(ctx, from)
	if isGGUF(from) && c.Tokenizer == "" && errors.Is(err, fs.ErrNotExist) {
		c.Tell.Notef("note: there is no tokenizer inside the GGUF file, so that the image cannot " +
			"read text; name the folder of the original with {Tokenizer}")
		return nil, nil
	}
	if isGGUF(from) && errors.Is(err, tokenizer.ErrUnsupported) {
		c.Tell.Notef("note: the tokenizer inside the GGUF file is not one that this program has, "+
			"so that the image cannot read text; name the folder of the original with "+
			"{Tokenizer} (%v)", err)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	return tok.MarshalText()
}

// loadListed makes the tokenizer that a GGUF file lists.
func loadListed(ctx context.Context, path string) (*tokenizer.Tokenizer, error) {
	f, err := gguf.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	v, err := f.Vocabulary()
	if err != nil {
		return nil, err
	}
	return tokenizer.FromList(tokenizer.Listed{
		File: filepath.Base(path), Model: v.Model, Pre: v.Pre, Tokens: v.Tokens, Types: v.Types,
		Merges: v.Merges, Scores: v.Scores,
		BOS: v.BOS, EOS: v.EOS, Unknown: v.Unknown, Padding: v.Padding, AddBOS: v.AddBOS,
		AddEOS:      v.AddEOS,
		SpacePrefix: v.SpacePrefix,
	})
}

// SynthConfig says which random image to make.
type SynthConfig struct {
	Shape model.Shape
	Like  string // name of the model whose shape it is
	Seed  uint64
	Out   string // image to write
	Tell  tell.Tell
}

// Synth writes a random image of a shape and opens it.
func Synth(ctx context.Context, cfg SynthConfig) (*model.Image, error) {
	err := model.Synth(ctx, cfg.Shape, "synthetic "+cfg.Like, cfg.Seed, cfg.Out,
		model.SynthOptions{Progress: cfg.Tell.MiB("synth model (MiB)")})
	if err != nil {
		return nil, err
	}
	return model.OpenImage(ctx, cfg.Out)
}
