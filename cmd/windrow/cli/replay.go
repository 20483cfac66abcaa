package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/replay"
	"github.com/windrow-sim/windrow/traces"
)

func replayCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:  "replay",
		Usage: "drive the real engine from a trace and measure it",
		Description: "Reads, row-cache copies, mat-vecs and attention really happen; the masks " +
			"come from the trace. The result says how the reads\n" +
			"were done (direct or buffered) and how far the device drifted meanwhile.\n\n" +
			examples("windrow replay -t tales.trace.arrow -m tales.flash.safetensors --window 4 "+
				"-o tales.run.arrow",
				"windrow replay -t tales.trace.arrow -m tales.flash.safetensors --dram 75%"),
		Flags: with(take("trace!", "model!", "predicted", "window", "policy"),
			take(readingFlags...), take(engineFlags...),
			take("schedule", "dense-prefix", "staging", "backend", "device-memory", "max-tokens",
				"seed"),
			[]cli.Flag{
				&cli.IntFlag{Name: "reference-every", Value: 16,
					Usage: "read the reference pattern every `N` tokens, to see drift; 0 = " +
						"never, as for reads through the page cache"},
				runOutput(),
			}),
		Action: e.replay,
	}
}

func (e *env) replay(c *cli.Context) error {
	if err := checkRunOutput(c); err != nil {
		return err
	}
	m, err := openModel(c.String("model"))
	if err != nil {
		return err
	}
	defer m.close()
	if err := e.useBackend(c, m); err != nil {
		return err
	}
	tr, err := e.openTrace(c.String("trace"))
	if err != nil {
		return err
	}
	defer tr.Close()
	cfg := replay.Config{Bundles: m.bundles, Threads: c.Int("threads"),
		MaxTokens: c.Int("max-tokens"), ReferenceEvery: c.Int("reference-every"),
		Seed: c.Uint64("seed"), Predicted: c.Bool("predicted")}
	cfg.Backend, cfg.Store = m.backend(), m.store()
	if cfg.Layout, err = layoutOptions(c); err != nil {
		return err
	}
	if cfg.Policy, err = residency(c, tr.Header()); err != nil {
		return err
	}
	if cfg.Schedule, err = scheduleSpec(c); err != nil {
		return err
	}
	opt, err := readOptions(c)
	if err != nil {
		return err
	}
	reader, err := flashio.Open(m.image.Path, opt)
	if err != nil {
		return err
	}
	mode := reader.Mode()
	e.note("%s: %s", m.image.Name, modeLine(mode))
	tokens := tr.Tokens()
	if cfg.MaxTokens > 0 {
		tokens = min(tokens, cfg.MaxTokens)
	}
	sized := cfg
	sized.Layout.Align = max(sized.Layout.Align, mode.Align)
	if c.IsSet("dram") {
		if cfg.Policy, err = e.budgetWindow(c, m, tr, tokens, sized); err != nil {
			reader.Close()
			return err
		}
	}
	state := ""
	if !mode.Direct && !mode.MemoryBacked {
		if state = coldStart(m.image.Path); !c.IsSet("reference-every") {
			cfg.ReferenceEvery = 0 // its reads would bring the image into memory
		}
	}
	p := e.startProgress("replay (tokens)")
	cfg.Progress = p.update
	result, err := replay.Run(c.Context, tr, m.weights, m.image.Geometry(), reader, cfg)
	p.done()
	if result == nil {
		return err
	}
	run := result.Run
	run.Meta.Tool, run.Meta.Trace, run.Meta.TraceSHA256, run.Meta.Device = Tool,
		filepath.Base(c.String("trace")), tr.SHA256(), modeLine(mode)
	if h := tr.Header(); !h.Synthetic && h.ModelSHA256 != m.image.Hash {
		run.Meta.Warnings = append(run.Meta.Warnings,
			fmt.Sprintf("the trace was recorded on %s, replayed on %s of the same shape: times "+
				"hold, values do not", h.Model, m.image.Name))
	}
	run.Meta.Model = m.image.Name
	if m.device != nil {
		run.Meta.Warnings = append(run.Meta.Warnings, computedOn(m.device))
	}
	if state != "" {
		run.Meta.Warnings = append(run.Meta.Warnings, state)
	}
	out := c.String("out")
	if errors.Is(err, context.Canceled) && len(run.Rows) > 0 {
		run.Meta.Warnings = append(run.Meta.Warnings, "interrupted: this run is not whole")
		if out != "" {
			out = strings.TrimSuffix(out, runSuffix) + ".partial" + runSuffix
			err = fmt.Errorf("what was measured so far is in %s: %w", out, err)
		}
	} else if err != nil {
		return err
	}
	if put := e.putRun(c, run, out, 0); put != nil {
		return put
	}
	return err
}

// coldStart drops the pages of an image that is read through the page cache, and says in which
// state the run begins.
func coldStart(path string) string {
	if err := flashio.DropCache(path); err != nil {
		return fmt.Sprintf("cache state unknown: the pages of the image that are in memory "+
			"stayed there (%v)", err)
	}
	return "cold: the image's pages were dropped from memory before the run; what is read again " +
		"may come from memory"
}

// readRuns loads Run files with the labels of a report.
func readRuns(paths []string) ([]*traces.Run, error) {
	var runs []*traces.Run
	for _, path := range paths {
		r, err := traces.ReadRun(path)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return runs, nil
}
