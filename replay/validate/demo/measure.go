package demo

import (
	"context"
	"path/filepath"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/replay"
	"github.com/windrow-sim/windrow/replay/probe"
	"github.com/windrow-sim/windrow/replay/validate"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
)

// measure probes the disk on the large image, which is only read.
func (d *demo) measure(ctx context.Context) error {
	cfg := probe.DefaultConfig(d.image.Path)
	cfg.Budget, cfg.Seed, cfg.MaxDriftPct = d.Budget, d.Seed, anyDrift
	var err error
	if cfg.Chunks, err = probe.ChunksAbout(d.image.Path, d.image.Geometry().Record); err != nil {
		return err
	}
	cfg.Depths = []int{1, parallel / 4, parallel, 2 * parallel}
	cfg.Engines = []flashio.Engine{flashio.Best()}
	cfg.Progress = func(stage string, done, total int) { d.Tell.At("probe "+stage, done, total) }
	device, err := probe.Run(ctx, cfg)
	if err != nil {
		return err
	}
	d.device = device
	engineName, err := device.ReadEngine(ioengine.Auto)
	if err != nil {
		return err
	}
	d.engine = flashio.Engine(engineName)
	d.Tell.Notef("disk: %s, LTFB %v, link %v, fit within %s %% on average", device.Fit.Mode,
		device.Flash.LTFB, device.Flash.LinkRate, document.Sig3(device.Fit.MeanAbsPct))
	return nil
}

const (
	// anyDrift keeps a restless disk: the demo goes on, and the verdict says what the disk did.
	anyDrift = 1e6
	// parallel is the number of threads, or the queue depth, of reads.
	parallel = 32
)

// predictAndRun calibrates the host on a few tokens with another window, simulates, and replays.
func (d *demo) predictAndRun(ctx context.Context) error {
	w, err := d.image.Weights(ctx)
	if err != nil {
		return err
	}
	options := layout.Options{Coalesce: true, Align: 4096}
	window := d.Window - 1 // shorter, so that rows leave within the few tokens
	if window < 1 {
		window = d.Window + 1
	}
	io := flashio.Options{Engine: d.engine, Parallel: parallel}
	if err := validate.CalibrateDevice(ctx, d.device, d.trace, d.image, w, io, window); err != nil {
		return err
	}
	if err := devicemodels.Save(filepath.Join(d.Dir, "this.device.yaml"), d.device); err != nil {
		return err
	}
	d.simulated, err = sim.Run(ctx, d.trace, sim.Config{
		Policy: policy.SlidingWindow(d.Window), Engine: string(d.engine), Parallel: parallel,
		Layout: options,
		Device: d.device, Geometry: d.image.Geometry()})
	if err != nil {
		return err
	}
	reader, err := flashio.Open(d.image.Path, io)
	if err != nil {
		return err
	}
	d.measured, err = replay.Run(ctx, d.trace, w, d.image.Geometry(), reader, replay.Config{
		Policy: policy.SlidingWindow(d.Window), Layout: options, MaxTokens: d.MeasureTokens,
		ReferenceEvery: 4, Seed: d.Seed,
		Progress: d.Tell.Stage("replay (tokens)")})
	if err != nil {
		return err
	}
	d.simulated.Meta.Tool, d.measured.Run.Meta.Tool = d.Tool, d.Tool
	d.measured.Run.Meta.Device = d.measured.Mode.String()
	if err := traces.WriteRun(filepath.Join(d.Dir, "simulated.run.arrow"),
		d.simulated); err != nil {
		return err
	}
	return traces.WriteRun(filepath.Join(d.Dir, "measured.run.arrow"), d.measured.Run)
}
