package cli

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/engine/session"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/units"
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
			"config.json that is not honoured is an error.\n" +
			"GGUF files: " + strings.Join(session.GGUFArchitectures(), ", ") +
			"; quantised weights are decoded, and of a model in several files any one finds the " +
			"others.\n\n" +
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
			&cli.StringSliceFlag{Name: "ignore-key", Usage: "take a model with the field `NAME` " +
				"in config.json, which windrow does not know; say so of fields that change " +
				"nothing. OBJECT.NAME for one inside an object. May be repeated"},
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
	if err := e.claim(c, c.String("out"), ""); err != nil {
		return err
	}
	cfg := session.PackConfig{Source: c.Args().First(), Out: c.String("out"),
		Name: c.String("name"), Dtype: c.String("dtype"), Tokenizer: c.String("tokenizer"),
		IgnoreIndex: c.Bool("ignore-index"), IgnoreKey: c.StringSlice("ignore-key")}
	if err := sizeFlag(c, "record-stride", &cfg.RecordStride); err != nil {
		return err
	}
	if err := cfg.Check(); err != nil {
		return err
	}
	var done func()
	cfg.Tell, done = e.tell()
	r, err := session.Pack(c.Context, cfg)
	done()
	if err != nil {
		return err
	}
	d := imageDocument("pack", r.Path, r.Name, r.Arch.Shape, r.Record, r.Bytes, r.Resident,
		r.Bundles)
	d.Notes = r.Notes
	d.Fact("precision", "%v in memory, %v on flash", r.Precision.Resident, r.Precision.Bundles)
	if len(r.Ignored) > 0 {
		d.Fact("ignored", "%s of config.json", strings.Join(r.Ignored, ", "))
	}
	d.Result = map[string]any{
		"path": r.Path, "model": r.Name, "family": r.Arch.Family,
		"activation": r.Arch.Activation.String(), "shape": r.Arch.Shape,
		"dtype": r.Precision.Resident.String(), "bundle_format": r.Precision.Bundles.String(),
		"bytes": r.Bytes, "resident_bytes": int64(r.Resident),
		"bundle_bytes": int64(r.Bundles), "record_bytes": int64(r.Record),
		"source_sha256": r.SourceSHA256,
		"eos_token_ids": append([]uint32{}, r.Ends...), // [], not null
		"ignored_keys":  append([]string{}, r.Ignored...),
	}
	return e.put(c, d)
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
