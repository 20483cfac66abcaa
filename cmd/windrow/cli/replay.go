package cli

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/replay"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
)

func replayCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:  "replay",
		Usage: "drive the real engine from a trace and measure it",
		Description: "Reads, row-cache copies, mat-vecs and attention really happen; the masks " +
			"come from the trace. The result says how the reads\n" +
			"were done (direct or buffered) and how far the device drifted meanwhile.\n\n" +
			examples("# measure a window of four tokens; keep the Run",
				"windrow replay -t tales.trace.arrow -m tales.flash.safetensors --window 4 "+
					"-o tales.run.arrow",
				"# the window that fits three quarters of the model",
				"windrow replay -t tales.trace.arrow -m tales.flash.safetensors --dram 75%"),
		Flags: with(take("trace!", "model!", "verify", "predicted", "window", "policy"),
			take(readingFlags...), take(engineFlags...),
			take("schedule", "dense-prefix", "staging", "backend", "device-memory", "max-tokens",
				"seed"),
			[]cli.Flag{
				&cli.IntFlag{Name: "reference-every", Value: replay.DefaultReferenceEvery,
					Usage: "read the reference pattern every `N` tokens, to see drift; 0 = " +
						"never, as for reads through the page cache"},
				runOutput(),
			}),
		Action: e.replay,
	}
}

func (e *env) replay(c *cli.Context) error {
	if err := e.claimFlag(c, "out", runSuffix); err != nil {
		return err
	}
	m, err := e.openSession(c)
	if err != nil {
		return err
	}
	defer m.Close()
	tr, err := e.openTrace(c.Context, c.String("trace"))
	if err != nil {
		return err
	}
	defer tr.Close()
	cfg, err := replayConfig(c, tr)
	if err != nil {
		return err
	}
	p := e.startProgress("replay (tokens)")
	cfg.Progress = p.update
	result, err := replay.Measure(c.Context, m, tr, cfg)
	p.done()
	if result == nil {
		return err
	}
	run := result.Run
	run.Meta.Trace = filepath.Base(c.String("trace"))
	out := c.String("out")
	if err != nil && out != "" { // interrupted
		out = traces.PartialRun(out)
		err = fmt.Errorf("what was measured so far is in %s; the same command starts anew: %w", out,
			err)
	}
	if put := e.putRun(c, run, out, 0); put != nil {
		return put
	}
	return err
}

// replayConfig reads the flags.
func replayConfig(c *cli.Context, tr *traces.Reader) (cfg replay.MeasureConfig, err error) {
	cfg = replay.MeasureConfig{Config: replay.Config{Threads: c.Int("threads"),
		MaxTokens: c.Int("max-tokens"), ReferenceEvery: replay.Auto, Seed: c.Uint64("seed"),
		Predicted: c.Bool("predicted")}, DRAM: c.String("dram"), Tool: Tool}
	if c.IsSet("reference-every") {
		cfg.ReferenceEvery = c.Int("reference-every")
	}
	if err := windowOrBudget(c); err != nil {
		return cfg, err
	}
	if err = onePolicy(c); err != nil {
		return cfg, err
	}
	if cfg.Policy, err = sim.Residency(c.String("policy"), c.Int("window"),
		tr.Header()); err != nil {
		return cfg, err
	}
	if cfg.Schedule, err = scheduleSpec(c); err != nil {
		return cfg, err
	}
	cfg.Reads, err = readsOf(c)
	return cfg, err
}

// readRuns loads Run files with the labels of a report.
func readRuns(ctx context.Context, paths []string) ([]*traces.Run, error) {
	var runs []*traces.Run
	for _, path := range paths {
		r, err := traces.ReadRun(ctx, path)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return runs, nil
}
