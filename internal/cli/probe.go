package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/internal/report"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/replay/probe"
)

func probeCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:      "probe",
		Usage:     "measure this machine and write a device model",
		ArgsUsage: "PATH",
		Description: "PATH is a folder on the disk to measure (a temporary file is made there and removed) or a file, which is only read. Measures a grid of\n" +
			"chunk sizes and depths with direct reads, and the host with the engine's kernels; fits the flash model and says how well it fits.\n" +
			"A disk that the page cache or memory served is refused, and so is one whose speed drifts while it is measured: --max-drift says by how much.\n\n" +
			"Given a flash image, it measures the read sizes of its records; with --trace also what the engine costs on this host.\n\n" +
			examples("windrow probe . --budget 3s --file-size 64MiB --max-drift 1000 -o here.device.yaml", "windrow probe tales.flash.safetensors -t tales.trace.arrow --budget 3s --max-drift 1000 -o tales.device.yaml",
				"windrow device show here.device.yaml"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "out", Aliases: []string{"o"}, Required: true, Usage: "`DEVICE` file to write (*.device.yaml)"},
			&cli.DurationFlag{Name: "budget", Value: probe.DefaultConfig("").Budget, Usage: "time to measure, `DURATION`"},
			&cli.StringFlag{Name: "io", Value: "auto", Usage: "`ENGINE` that reads: auto, pread, uring"},
			&cli.StringSliceFlag{Name: "chunk", Usage: "read `SIZE`, repeated or with commas", DefaultText: "4KiB,16KiB,64KiB,256KiB"},
			&cli.IntSliceFlag{Name: "depth", Usage: "threads or queue depth `N`, repeated or with commas", DefaultText: "1,4,16,32"},
			&cli.StringFlag{Name: "file-size", Value: "256MiB", Usage: "`SIZE` of the temporary file"},
			&cli.Float64Flag{Name: "max-drift", Usage: "refuse a device that drifts by more than `PERCENT`", DefaultText: "the fit's limit"},
			&cli.StringFlag{Name: "trace", Aliases: []string{"t"}, Usage: "also replay the start of `TRACE` on the image PATH, to learn what the engine itself costs here"},
			&cli.StringFlag{Name: "name", Usage: "`NAME` of the device", DefaultText: "the host's"},
			jsonFlag(), seedFlag(),
		},
		Action: e.probe,
	}
}

func (e *env) probe(c *cli.Context) error {
	if err := needArgs(c, 1, "a folder or a file"); err != nil {
		return err
	}
	if err := checkOutput(c.String("out"), ""); err != nil {
		return err
	}
	cfg := probe.DefaultConfig(c.Args().First())
	cfg.Engine, cfg.Budget, cfg.Seed, cfg.MaxDriftPct = flashio.Engine(c.String("io")), c.Duration("budget"), c.Uint64("seed"), c.Float64("max-drift")
	if list := c.StringSlice("chunk"); len(list) > 0 {
		cfg.Chunks = nil
		for _, s := range list {
			v, err := units.ParseBytes(s)
			if err != nil {
				return usageError("--chunk: %v", err)
			}
			cfg.Chunks = append(cfg.Chunks, v)
		}
	}
	image, err := model.OpenImage(cfg.Path)
	if err != nil && c.String("trace") != "" {
		return fmt.Errorf("probe --trace: PATH must be the flash image of the trace: %w", err)
	}
	if err == nil {
		defer image.Close()
		if !c.IsSet("chunk") {
			if cfg.Chunks, err = chunksAbout(cfg.Path, image.Geometry().Record); err != nil {
				return err
			}
		}
	}
	if list := c.IntSlice("depth"); len(list) > 0 {
		cfg.Depths = slices.Clone(list)
		if slices.Min(list) < 1 {
			return usageError("--depth %d: it must be 1 or more", slices.Min(list))
		}
	}
	if cfg.FileSize, err = units.ParseBytes(c.String("file-size")); err != nil {
		return usageError("--file-size: %v", err)
	}
	device, err := e.probeDevice(c.Context, cfg)
	if err != nil {
		return err
	}
	if path := c.String("trace"); path != "" {
		if err := e.calibrateOn(c.Context, device, image, path); err != nil {
			return err
		}
	}
	if name := c.String("name"); name != "" {
		device.Name = name
	}
	if err := devicemodels.Save(c.String("out"), device); err != nil {
		return err
	}
	if c.Bool("json") {
		return printJSON(e.stdout, device)
	}
	return e.printDevice(device)
}

// probeDevice runs a probe with progress.
func (e *env) probeDevice(ctx context.Context, cfg probe.Config) (*devicemodels.Device, error) {
	p := e.startProgress("probe")
	defer p.done()
	cfg.Progress = func(stage string, done, total int) {
		p.label = "probe " + stage
		p.update(done, total)
	}
	return probe.Run(ctx, cfg)
}

// calibrateOn sets the host constants by the start of a trace, replayed on its image.
func (e *env) calibrateOn(ctx context.Context, device *devicemodels.Device, image *model.Image, path string) error {
	tr, err := e.openTrace(path)
	if err != nil {
		return err
	}
	defer tr.Close()
	w, err := image.Weights()
	if err != nil {
		return err
	}
	engineName, err := engineOf(device, string(flashio.EngineAuto))
	if err != nil {
		return err
	}
	const window = 3
	if err := calibrateHost(ctx, &device.Host, tr, image, w, flashio.Options{Engine: flashio.Engine(engineName)}, window); err != nil {
		return err
	}
	if device.Sources == nil {
		device.Sources = map[string]string{}
	}
	device.Sources["host"] = fmt.Sprintf("the start of a trace of %s replayed on %s; memory_rate by a timed kernel", tr.Header().Model, image.Name)
	return nil
}

// printDevice prints the measured grid beside the fit.
func (e *env) printDevice(d *devicemodels.Device) error {
	if d.Fit == nil {
		return nil
	}
	for _, w := range d.Fit.Warnings {
		e.note("warning: %s", w)
	}
	right := report.Right
	t := &report.Table{Columns: []report.Column{
		{Name: "engine"}, {Name: "chunk", Align: right}, {Name: "depth", Align: right}, {Name: "measured", Unit: "MB/s", Align: right},
		{Name: "model", Unit: "MB/s", Align: right}, {Name: "P50", Unit: "us", Align: right}, {Name: "P99", Unit: "us", Align: right}, {Name: "left out"},
	}}
	mb := func(r units.Rate) string { return report.Sig3(float64(r) / 1e6) }
	for _, c := range d.Fit.Cells {
		t.Add(c.Engine, c.Chunk.String(), fmt.Sprint(c.Depth), mb(c.Rate), mb(c.Model), report.Sig3(float64(c.P50)/1e3), report.Sig3(float64(c.P99)/1e3), c.Tainted)
	}
	if err := t.Text(e.stdout); err != nil {
		return err
	}
	f, h := &d.Flash, &d.Host
	fmt.Fprintf(e.stdout, "\n%s: %s\n", d.Name, d.Fit.Mode)
	fmt.Fprintf(e.stdout, "flash: %d servers, LTFB %v, %v per server, link %v\n", f.Servers, f.LTFB, f.ServerRate, f.LinkRate)
	fmt.Fprintf(e.stdout, "host: %d cores, memory %v, dense mat-vec %v, rows %v, copies %v\n", h.Cores, h.MemoryRate, h.DenseRate, h.RowRate, h.CopyRate)
	fmt.Fprintf(e.stdout, "fit: mean |error| %s %%, worst %s %%, drift during the probe %s %%\n",
		report.Sig3(d.Fit.MeanAbsPct), report.Sig3(d.Fit.WorstAbsPct), report.Sig3(d.Fit.DriftPct))
	return nil
}
