package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/engine/checkpoint/gguf"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/engine/tokenizer"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/ref"
)

func packCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:      "pack",
		Usage:     "turn a Hugging Face folder, or a GGUF file, into a flash image",
		ArgsUsage: "DIR|FILE.gguf",
		Description: "Writes a valid safetensors file: the tensors that stay in memory first, " +
			"then each layer's neurons as bundles (gate and up rows and\n" +
			"the down column together), on 4096-byte boundaries. Memory stays bounded for any " +
			"model size, and the image appears only when it is whole.\n" +
			"Families: " + strings.Join(model.Families(), ", ") + "; a field of " +
			"config.json that is not honoured is an error.\n\n" +
			examples("# as the weights are stored",
				"windrow pack examples/models/tales -o tales.flash.safetensors",
				"# rows on flash in 8 bits",
				"windrow pack examples/models/tales -o tales.q8.flash.safetensors --dtype q8"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "out", Aliases: []string{"o"}, Required: true,
				Usage: "`IMG` to write (*.flash.safetensors)"},
			shared("name"),
			&cli.StringFlag{Name: "dtype", Usage: "convert weights to `TYPE`: f16, bf16, f32, " +
				"or the rows on flash to q8 or q4 (a scale per 32 weights)",
				DefaultText: "as they are stored"},
			shared("tokenizer"),
			&cli.BoolFlag{Name: "ignore-index", Usage: "take every weights file of the folder, " +
				"whatever its index says"},
			&cli.StringFlag{Name: "record-stride", Usage: "`SIZE` between records, for example " +
				"4KiB",
				DefaultText: "no padding"},
		},
		Action: e.pack,
	}
}

func (e *env) pack(c *cli.Context) error {
	if err := needArgs(c, 1, "one folder"); err != nil {
		return err
	}
	dir, out := c.Args().First(), c.String("out")
	if info, err := os.Stat(dir); err != nil {
		return fmt.Errorf("pack: %w", err)
	} else if !info.IsDir() && !isGGUF(dir) {
		return inputError("pack: %s is not a folder; name the one that holds the model's "+
			"config.json, or a GGUF file", dir)
	}
	if err := checkOutput(out, ""); err != nil {
		return err
	}
	text, err := e.packTokenizer(c, dir)
	if err != nil {
		return err
	}
	opt := model.PackOptions{Name: c.String("name"), Tokenizer: text,
		IgnoreIndex: c.Bool("ignore-index")}
	if opt.Name == "" {
		opt.Name = filepath.Base(filepath.Clean(dir))
	}
	if s := c.String("record-stride"); s != "" {
		if opt.Stride, err = units.ParseBytes(s); err != nil {
			return usageError("--record-stride: %v", err)
		}
	}
	if name := c.String("dtype"); name != "" {
		f, known := ref.ParseFormat(strings.ToUpper(name))
		if !known {
			return usageError("--dtype %s: f16, bf16, f32, q8 and q4 are known", name)
		}
		opt.Format = &f
	}
	p := e.startProgress("pack (MiB)")
	opt.Progress = func(done, total int64) { p.update(int(done>>20), int(total>>20)) }
	r, err := model.Pack(c.Context, dir, out, opt)
	p.done()
	if err != nil {
		return err
	}
	d := imageDocument("pack", r.Path, r.Name, r.Arch.Shape, r.Record, r.Bytes, r.Resident,
		r.Bundles)
	d.Notes = r.Notes
	d.Fact("precision", "%v in memory, %v on flash", r.Precision.Resident, r.Precision.Bundles)
	d.Result = map[string]any{
		"path": r.Path, "model": r.Name, "family": r.Arch.Family,
		"activation": r.Arch.Activation.String(), "shape": r.Arch.Shape,
		"dtype": r.Precision.Resident.String(), "bundle_format": r.Precision.Bundles.String(),
		"bytes": r.Bytes, "resident_bytes": int64(r.Resident),
		"bundle_bytes": int64(r.Bundles), "record_bytes": int64(r.Record),
		"source_sha256": r.SourceSHA256,
	}
	return e.put(c, d)
}

func isGGUF(path string) bool { return strings.EqualFold(filepath.Ext(path), ".gguf") }

// packTokenizer is the text form of the tokenizer: that of the folder or GGUF file, or of the
// folder that --tokenizer names.
func (e *env) packTokenizer(c *cli.Context, from string) ([]byte, error) {
	if named := c.String("tokenizer"); named != "" {
		from = named
	}
	load := tokenizer.Load
	if isGGUF(from) {
		load = loadListed
	}
	tok, err := load(from)
	if isGGUF(from) && errors.Is(err, tokenizer.ErrUnsupported) {
		e.note("note: the tokenizer inside the GGUF file is not one that this program has, so "+
			"that the image cannot read text; name the folder of the original with --tokenizer "+
			"(%v)", err)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	return tok.MarshalText()
}

// loadListed makes the tokenizer that a GGUF file lists.
func loadListed(path string) (*tokenizer.Tokenizer, error) {
	f, err := gguf.Open(path)
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
		BOS: v.BOS, EOS: v.EOS, Padding: v.Padding, AddBOS: v.AddBOS, AddEOS: v.AddEOS,
		SpacePrefix: v.SpacePrefix,
	})
}

// imageDocument describes an image that was written.
func imageDocument(name, path, model string, s model.Shape, record, total, resident,
	bundles units.Bytes) *document.Document {
	d := &document.Document{Name: name, Title: "windrow " + strings.ReplaceAll(name, "-", " "),
		Headline: fmt.Sprintf("%s: %s, %s in memory and %s on flash", path, model,
			document.IEC(resident), document.IEC(bundles))}
	t := document.NewTable(document.Text("model"), document.Number("layers", ""),
		document.Number("d_model", ""), document.Number("d_ffn", ""),
		document.Number("record", ""), document.Number("image", ""),
		document.Number("in memory", ""), document.Number("on flash", ""))
	t.Add(model, fmt.Sprint(s.Layers), fmt.Sprint(s.DModel), fmt.Sprint(s.DFFN), record.String(),
		document.IEC(total), document.IEC(resident), document.IEC(bundles))
	d.Add("", "", *t)
	return d
}
