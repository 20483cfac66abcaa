package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/cmd/windrow/report"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/replay/validate/demo"
	"github.com/windrow-sim/windrow/traces"
)

func demoCommand(e *env) *cli.Command {
	def := demo.DefaultConfig()
	return &cli.Command{
		Name:  "demo",
		Usage: "the whole loop on the shipped model and this machine's own disk",
		Description: "Packs and runs the shipped model, records its trace, and checks that a " +
			"flash-resident run equals the dense one bit by bit. Then makes a\n" +
			"random model of OPT-1.3B's shape (fewer layers where space or write speed is " +
			"short; removed at the end), measures the disk,\n" +
			"predicts how a trace runs on it, runs it for real, and compares. About a minute.\n\n" +
			examples("windrow demo --like opt-125m --measure-tokens 12 --budget 1s --dir "+
				"demo-small"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "source", Value: def.Source,
				Usage: "Hugging Face `DIR` of the model that runs"},
			preset(shared("prompts"), def.Prompts),
			shared("max-input"),
			&cli.StringFlag{Name: "dir", Value: def.Dir, Usage: "`DIR` on the disk to measure, " +
				"for everything that the demo makes"},
			preset(shared("like"), def.Like),
			shared("measure-tokens"),
			shared("window"),
			defaulting(shared("budget"), def.Budget),
			shared("seed"),
		},
		Action: e.demo,
	}
}

// demo runs the loop and reports it. Counters or bytes that differ are a failure; a noisy disk is
// none, and neither is an error of the simulated time: the verdict says so.
func (e *env) demo(c *cli.Context) error {
	cfg := demo.Config{Source: c.String("source"), Prompts: c.String("prompts"),
		Dir: c.String("dir"), Like: c.String("like"), MeasureTokens: c.Int("measure-tokens"),
		Window: c.Int("window"), Budget: c.Duration("budget"), Seed: c.Uint64("seed"), Tool: Tool}
	var err error
	if cfg.MaxInput, err = maxInput(c); err != nil {
		return err
	}
	var done func()
	cfg.Tell, done = e.tell()
	r, err := demo.Run(c.Context, cfg)
	done()
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("the same command starts anew: %w", err)
	}
	if err != nil {
		return err
	}
	if err := e.reportDemo(c, &cfg, r); err != nil {
		return err
	}
	if err := e.put(c, r.Document()); err != nil {
		return err
	}
	if !r.CountersEqual || !r.BytesEqual {
		return fmt.Errorf("demo: counters equal: %v; bytes equal: %v; simulation and replay must "+
			"agree on both", r.CountersEqual, r.BytesEqual)
	}
	return nil
}

// reportDemo writes report.html with its twins.
func (e *env) reportDemo(c *cli.Context, cfg *demo.Config, r *demo.Result) error {
	tr, err := traces.Open(c.Context, r.Trace)
	if err != nil {
		return err
	}
	defer tr.Close()
	stats, err := summarise(tr)
	if err != nil {
		return err
	}
	r.Report = filepath.Join(cfg.Dir, "report.html")
	data := &report.Data{
		Name: "report", Title: "windrow demo", Comparison: r.Comparison, Trace: stats,
		FlashRate: r.Device.Flash.LinkRate,
		Warnings:  r.Runs[1].Meta.Warnings,
		Runs: []report.LabeledRun{{Label: "simulated", Run: r.Runs[0]}, {Label: "measured",
			Run: r.Runs[1]}},
		Facts: []document.Fact{
			{Key: "trace statistics", Value: "recorded on " + r.Model}, {Key: "model of the runs",
				Value: r.Large},
			{Key: "reads", Value: r.Mode}, {Key: "window", Value: fmt.Sprint(cfg.Window)},
			{Key: "seed", Value: fmt.Sprint(cfg.Seed)},
			{Key: "flash-resident equals dense", Value: fmt.Sprint(r.DenseEqual)},
			{Key: "device model", Value: fmt.Sprintf("%s, mean fit error %s %%, drift during "+
				"the probe %s %%", r.Device.Name, document.Sig3(r.Device.Fit.MeanAbsPct),
				document.Sig3(r.Device.Fit.DriftPct))},
		},
	}
	quiet := *e
	quiet.stdout = io.Discard // the path goes to the end of the demo
	for _, name := range []string{"report.html", "report.md", "report.json"} {
		if err := quiet.writeReport(c, data, filepath.Join(cfg.Dir, name)); err != nil {
			return err
		}
	}
	return nil
}
