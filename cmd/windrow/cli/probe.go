package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/replay/probe"
	"github.com/windrow-sim/windrow/replay/probe/gpu"
	"github.com/windrow-sim/windrow/replay/validate"
)

// probeBudget is enough for most of the grid, with both engines, on a drive.
const probeBudget = time.Minute

func probeCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:      "probe",
		Usage:     "measure this machine and write a device model",
		ArgsUsage: "PATH",
		Description: "PATH is a folder on the disk to measure (a temporary file is made there " +
			"and removed) or a file, which is only read. Reads directly, in chunks\n" +
			"of 4 KiB to 1 MiB at depths of 1 to 256, where it tells most, or exactly as " +
			"--chunks and --depths say; measures the host with the engine's kernels;\n" +
			"fits the flash model and says how well it fits. Also found are a limit on the rate " +
			"(of a cloud volume or a control group), the distribution of the\n" +
			"latency, and whether reads all over the file are slower than close ones.\n\n" +
			"A disk that the page cache or memory served is refused, and so is one whose speed " +
			"drifts while it is measured: --max-drift says by how much.\n\n" +
			"--samples keeps every batch as it was measured; an interrupted probe of a file " +
			"goes on from it with --resume.\n\n" +
			"Given a flash image, it measures the read sizes of its records; with --trace also " +
			"what the engine costs on this host.\n\n" +
			"With --backend cuda it also measures the GPU, for sim --backend cuda: transfers, " +
			"the scatter of rows, mat-vecs and sparse feed-forward parts by the\n" +
			"device's own clock, and what a launch and a wait cost the host. Without PATH the " +
			"GPU is added to the device file -o, which stays as it is otherwise,\n" +
			"or only shown. A stand-in for a GPU has no clock: nothing is written of it.\n\n" +
			examples("# the disk under a folder",
				"windrow probe . --budget 1s --file-size 64MiB --max-drift 1000 -o "+
					"here.device.yaml",
				"# as a model reads it: its image, its records, its trace's requests",
				"windrow probe tales.flash.safetensors -t tales.trace.arrow "+
					"--budget 1s --max-drift 1000 -o tales.device.yaml",
				"# one read engine; keep every sample",
				"windrow probe tales.flash.safetensors --io pread --budget 1s --max-drift 1000 "+
					"--samples tales.samples.jsonl -o again.device.yaml",
				"# what was measured",
				"windrow device show here.device.yaml"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "out", Aliases: []string{"o"},
				Usage: "`DEVICE` file to write (*.device.yaml); needed with PATH"},
			shared("backend"),
			shared("verify"),
			defaulting(shared("budget"), probeBudget),
			defaulting(shared("io"), "all that work here"),
			defaulting(shared("chunks"), "from 4KiB to 1MiB, or about the image's records"),
			defaulting(shared("depths"), "from 1 to 256"),
			&cli.StringFlag{Name: "file-size", Value: "256MiB",
				Usage: "`SIZE` of the temporary file"},
			defaulting(shared("max-drift"), "the fit's limit"),
			shared("trace"),
			&cli.BoolFlag{Name: "mmap", Usage: "also measure mapped files: what a fault fetches " +
				"and costs, for sim --io mmap"},
			shared("name"),
			&cli.StringFlag{Name: "samples", Usage: "new `FILE` for every batch as it was " +
				"measured (JSON lines)"},
			shared("resume"),
			shared("seed"),
		},
		Action: e.probe,
	}
}

func (e *env) probe(c *cli.Context) error {
	withGPU, err := probesGPU(c)
	if err != nil {
		return err
	}
	if withGPU && c.NArg() == 0 {
		return e.probeGPUAlone(c)
	}
	if err := needArgs(c, 1, "a folder or a file"); err != nil {
		return err
	}
	if !c.IsSet("out") {
		return usageError("-o names the device file to write; give it")
	}
	if err := e.claim(c, c.String("out"), ""); err != nil {
		return err
	}
	cfg, err := probeConfig(c)
	if err != nil {
		return err
	}
	var g *devicemodels.GPU
	if withGPU {
		if g, err = e.probeGPU(c); err != nil {
			return err
		}
	}
	device, err := e.probeDisk(c, cfg)
	if err != nil {
		return err
	}
	if g != nil {
		gpu.Put(device, g, e.now())
	}
	if name := c.String("name"); name != "" {
		device.Name = name
	}
	if err := devicemodels.Save(c.String("out"), device); err != nil {
		return err
	}
	d := deviceDocument(device)
	if g != nil {
		addGPUSections(d, g)
	}
	return e.put(c, d)
}

// probeDisk measures the host and the disk of PATH. Of an image it measures reads about as large as
// its records; with a trace it also replays on the image.
func (e *env) probeDisk(c *cli.Context, cfg probe.Config) (*devicemodels.Device, error) {
	image, err := e.openImage(c, cfg.Path)
	damage := (*model.Damage)(nil)
	switch {
	case err != nil && c.String("trace") != "":
		return nil, fmt.Errorf("probe --trace: PATH must be the flash image of the trace: %w", err)
	case err != nil && (c.Bool("verify") || errors.As(err, &damage) || c.Context.Err() != nil):
		return nil, err
	}
	if err == nil {
		defer image.Close()
		if !c.IsSet("chunks") {
			if cfg.Chunks, err = probe.ChunksAbout(cfg.Path, image.Geometry().Record); err != nil {
				return nil, err
			}
		}
	}
	p := e.startProgress("probe")
	cfg.Progress = func(stage string, done, total int) {
		p.label = "probe " + stage
		p.update(done, total)
	}
	device, err := probe.Run(c.Context, cfg)
	p.done()
	if errors.Is(err, context.Canceled) {
		again := "nothing is kept; the same command starts anew"
		if cfg.Samples != "" {
			again = cfg.Samples + " keeps what was measured; of a file, --resume goes on with it"
		}
		return nil, fmt.Errorf("%s: %w", again, err)
	}
	if err != nil || c.String("trace") == "" {
		return device, err
	}
	tr, err := e.openTrace(c.Context, c.String("trace"))
	if err != nil {
		return nil, err
	}
	defer tr.Close()
	return device, validate.CalibrateByTrace(c.Context, device, tr, image)
}

// probeConfig reads the flags.
func probeConfig(c *cli.Context) (cfg probe.Config, err error) {
	cfg = probe.DefaultConfig(c.Args().First())
	cfg.Budget, cfg.Seed, cfg.MaxDriftPct = c.Duration("budget"), c.Uint64("seed"),
		c.Float64("max-drift")
	cfg.Samples, cfg.Resume, cfg.Mapped = c.String("samples"), c.Bool("resume"), c.Bool("mmap")
	if cfg.Resume && cfg.Samples == "" {
		return cfg, usageError("--resume goes on with a file of --samples; name it")
	}
	if c.IsSet("io") {
		for name := range strings.SplitSeq(c.String("io"), ",") {
			cfg.Engines = append(cfg.Engines, flashio.Engine(name))
		}
	}
	for _, s := range c.StringSlice("chunks") {
		v, err := units.ParseBytes(s)
		if err != nil {
			return cfg, usageError("--chunks: %v", err)
		}
		cfg.Chunks = append(cfg.Chunks, v)
	}
	if cfg.Depths, err = depthsOf(c, cfg.Depths); err != nil {
		return cfg, err
	}
	if cfg.FileSize, err = units.ParseBytes(c.String("file-size")); err != nil {
		return cfg, usageError("--file-size: %v", err)
	}
	return cfg, nil
}

// flashText is the shape of a flash device in words.
func flashText(f *flash.Spec) string {
	text := fmt.Sprintf("%d servers, LTFB %v, %v per server, link %v", f.Servers, f.LTFB,
		f.ServerRate, f.LinkRate)
	switch f.Placement {
	case flash.PlaceByAddress:
		text = fmt.Sprintf("%d servers chosen by address, LTFB %v, %v per server, link %v",
			f.Servers, f.LTFB, f.ServerRate, f.LinkRate)
	case flash.PlaceInRounds:
		text = fmt.Sprintf("one server that works in rounds, LTFB %v, link %v", f.LTFB, f.LinkRate)
	}
	if f.MaxIOPS > 0 {
		text += fmt.Sprintf(", at most %d reads/s", f.MaxIOPS)
	}
	return text
}

// deviceDocument puts the measured grid beside the fit.
func deviceDocument(device *devicemodels.Device) *document.Document {
	d := &document.Document{Name: "probe", Title: "windrow probe", Result: device,
		Headline: device.Name + ": " + flashText(&device.Flash)}
	fit := device.Fit
	if fit == nil {
		return d
	}
	d.Warnings = fit.Warnings
	d.Fact("reads", "%s", fit.Mode)
	f, h := &device.Flash, &device.Host
	if l := f.Limit; l != nil {
		d.Fact("limit", "%s, credit every %v, burst %v (0 = one interval's)", limitRate(l),
			l.Interval, l.Burst)
	}
	for _, s := range f.Spans {
		if s.Within == 0 {
			d.Fact("span", "reads all over the file take %v longer", s.ExtraLTFB)
		}
	}
	if m := f.PageCache; m != nil {
		d.Fact("mapped", "a fault fetches %v and costs %v and %v, copies from memory %v, memory "+
			"%v (0 = not known)", m.ReadAhead, m.Fault, m.FillRate, m.HitRate, m.Capacity)
	}
	d.Fact("host", "%d cores, memory %v, dense mat-vec %v, rows %v, copies %v", h.Cores,
		h.MemoryRate, h.DenseRate, h.RowRate, h.CopyRate)
	d.Fact("fit", "mean |error| %s %%, worst %s %%, drift during the probe %s %%",
		document.Sig3(fit.MeanAbsPct), document.Sig3(fit.WorstAbsPct), document.Sig3(fit.DriftPct))
	if loo, interval := fit.LeaveOneOutPct, fit.IntervalPct; loo != nil && interval != nil {
		d.Fact("unseen cells", "mean |error| %s %%, nine of ten within %s %%",
			document.Sig3(*loo), document.Sig3(*interval))
	}
	t := document.NewTable(document.Text("engine"), document.Number("chunk", ""),
		document.Number("depth", ""), document.Number("measured", "MB/s"),
		document.Number("+/-", "%"), document.Number("model", "MB/s"),
		document.Number("P50", "us"), document.Number("P99", "us"), document.Text("note"))
	mb := func(r units.Rate) string { return document.Sig3(float64(r) / 1e6) }
	for _, c := range fit.Cells {
		interval := ""
		if c.RateLow > 0 && c.Rate > 0 {
			interval = document.Sig3(50 * float64(c.RateHigh-c.RateLow) / float64(c.Rate))
		}
		note := c.Quality
		if c.Tainted != "" {
			note = "left out: " + c.Tainted
		}
		t.Add(c.Engine, c.Chunk.String(), fmt.Sprint(c.Depth), mb(c.Rate), interval, mb(c.Model),
			document.Sig3(float64(c.P50)/1e3), document.Sig3(float64(c.P99)/1e3), note)
	}
	d.Add("Measured and modelled", "", *t)
	return d
}
