package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/engine/tokenizer"
	"github.com/windrow-sim/windrow/internal/report"
	"github.com/windrow-sim/windrow/internal/units"
)

func packCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:      "pack",
		Usage:     "turn a Hugging Face folder into a flash image",
		ArgsUsage: "DIR",
		Description: "Writes a valid safetensors file: the tensors that stay in memory first, then each layer's neurons as bundles (up row and\n" +
			"down column together), on 4096-byte boundaries. Memory stays bounded for any model size, and the image appears only when it is whole.\n" +
			"Architectures: OPT.\n\n" +
			examples("windrow pack examples/models/tales -o tales.flash.safetensors"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "out", Aliases: []string{"o"}, Required: true, Usage: "`IMG` to write (*.flash.safetensors)"},
			&cli.StringFlag{Name: "name", Usage: "`NAME` of the model", DefaultText: "the folder's"},
			&cli.BoolFlag{Name: "convert", Usage: "round F32 and BF16 weights to F16 instead of refusing them"},
			&cli.BoolFlag{Name: "ignore-index", Usage: "take every safetensors file of the folder, whatever its index says"},
			&cli.StringFlag{Name: "stride", Usage: "`SIZE` between records, for example 4KiB", DefaultText: "no padding"},
			jsonFlag(),
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
	} else if !info.IsDir() {
		return inputError("pack: %s is not a folder; name the one that holds the model's config.json", dir)
	}
	if err := checkOutput(out, ""); err != nil {
		return err
	}
	tok, err := tokenizer.Load(dir)
	if err != nil {
		return fmt.Errorf("pack: %w", err)
	}
	text, err := tok.MarshalText()
	if err != nil {
		return err
	}
	opt := model.PackOptions{Name: c.String("name"), Tokenizer: text, Convert: c.Bool("convert"), IgnoreIndex: c.Bool("ignore-index")}
	if opt.Name == "" {
		opt.Name = filepath.Base(filepath.Clean(dir))
	}
	if s := c.String("stride"); s != "" {
		if opt.Stride, err = units.ParseBytes(s); err != nil {
			return usageError("--stride: %v", err)
		}
	}
	p := e.startProgress("pack (MiB)")
	opt.Progress = func(done, total int64) { p.update(int(done>>20), int(total>>20)) }
	r, err := model.Pack(c.Context, dir, out, opt)
	p.done()
	if err != nil {
		return err
	}
	for _, n := range r.Notes {
		e.note("note: %s", n)
	}
	if c.Bool("json") {
		return printJSON(e.stdout, map[string]any{
			"path": r.Path, "model": r.Name, "shape": r.Shape, "bytes": r.Bytes, "resident_bytes": int64(r.Resident),
			"bundle_bytes": int64(r.Bundles), "record_bytes": int64(r.Shape.RecordBytes()), "source_sha256": r.SourceSHA256,
		})
	}
	return imageTable(r.Name, r.Shape, r.Bytes, r.Resident, r.Bundles).Text(e.stdout)
}

// imageTable describes an image.
func imageTable(name string, s model.Shape, total, resident, bundles units.Bytes) *report.Table {
	t := &report.Table{Columns: []report.Column{
		{Name: "model"}, {Name: "layers", Align: report.Right}, {Name: "d_model", Align: report.Right}, {Name: "d_ffn", Align: report.Right},
		{Name: "record", Align: report.Right}, {Name: "image", Align: report.Right}, {Name: "in memory", Align: report.Right}, {Name: "on flash", Align: report.Right},
	}}
	t.Add(name, fmt.Sprint(s.Layers), fmt.Sprint(s.DModel), fmt.Sprint(s.DFFN), s.RecordBytes().String(),
		report.IEC(total), report.IEC(resident), report.IEC(bundles))
	return t
}
