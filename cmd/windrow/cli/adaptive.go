package cli

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/internal/input"
	"github.com/windrow-sim/windrow/internal/output"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim/adaptive"
	"github.com/windrow-sim/windrow/sim/answers"
	"github.com/windrow-sim/windrow/traces"
)

func adaptiveCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:  "adaptive",
		Usage: "a window that follows a budget of memory which changes over time",
		Description: "The budget is of all memory: weights, predictor, row cache, KV cache, " +
			"activations, buffers and bookkeeping. It is SIZE, or FROM:SIZE,FROM:SIZE,…\n" +
			"from the first token that begins at or after FROM on: bare numbers are tokens of " +
			"the trace, times have a unit (0s:6GiB,2.5s:3GiB). SIZE may be\n" +
			"a share of the weights. FILE.csv holds lines FROM,SIZE. The adaptive window " +
			"shrinks at once, before anything is read, and grows by one\n" +
			"token after --hysteresis tokens in a row with room; beside it stand a fixed " +
			"fraction of the room, the static window of the smallest budget,\n" +
			"and an oracle that knows what will fit. No token is above its budget. Where not " +
			"even --min-window fits, the exit code is 5.\n\n" +
			examples("windrow adaptive -t opt.trace.arrow -d m1-max --predicted --dram-over-time "+
				"0:75%,24:60%,44:75%",
				"windrow adaptive -t opt.trace.arrow -d m1-max --dram-over-time "+
					"0s:1.5GiB,200ms:1.1GiB "+
					"--max-window 12 --hysteresis 4 -o over-time.csv --json"),
		// The study chooses the window.
		Flags: append(less(simFlags(), "window", "policy"),
			&cli.StringFlag{Name: "dram-over-time", Required: true,
				Usage: "`SPEC` of all memory over time, or a FILE.csv with it"},
			&cli.IntFlag{Name: "min-window", Usage: "never shorter than `K` tokens"},
			&cli.IntFlag{Name: "max-window", Value: 32, Usage: "never longer than `K` tokens, " +
				"and so long at first"},
			&cli.IntFlag{Name: "hysteresis", Value: 8, Usage: "grow after `N` tokens in a row " +
				"with room"},
			&cli.Float64Flag{Name: "fraction", Value: 0.8,
				Usage: "`SHARE` of the room that the strategy \"fraction\" fills"},
			defaulting(shared("context"), "it grows with the text"),
			defaulting(shared("skip"), 8),
			&cli.StringFlag{Name: "out", Aliases: []string{"o"},
				Usage: "also write the window over time to `FILE`, *.csv or *.jsonl"}),
		Action: e.adaptive,
	}
}

func (e *env) adaptive(c *cli.Context) error {
	out := c.String("out")
	suffix := ".csv"
	if strings.HasSuffix(out, ".jsonl") {
		suffix = ".jsonl"
	}
	if err := e.claimFlag(c, "out", suffix); err != nil {
		return err
	}
	tr, err := e.openTrace(c.Context, c.String("trace"))
	if err != nil {
		return err
	}
	defer tr.Close()
	cfg, err := e.adaptiveConfig(c, tr.Header())
	if err != nil {
		return err
	}
	cfg.Model = answers.ModelOf(tr.Header())
	if cfg.Budget, err = budgetOverTime(c.Context, c.String("dram-over-time"),
		cfg.Model.Bytes()); err != nil {
		return err
	}
	p := e.startProgress("adaptive (tokens)")
	cfg.Progress = p.update
	r, err := adaptive.Run(c.Context, tr, cfg)
	p.done()
	if err != nil {
		return err
	}
	if out != "" && r.Below == nil {
		if err := writeWindows(out, r); err != nil {
			return err
		}
	}
	return e.putAnswer(c, r.Document(), r.No())
}

// adaptiveConfig reads all but the budget.
func (e *env) adaptiveConfig(c *cli.Context, head *traces.Header) (cfg adaptive.Config, err error) {
	for _, name := range []string{"min-window", "max-window", "hysteresis", "predictor-rank",
		"context", "skip"} {
		if n := c.Int(name); n < 0 || n > 1<<24 {
			return cfg, usageError("--%s %d: it is from 0 to %d", name, n, 1<<24)
		}
	}
	cfg.Bounds.Min, cfg.Bounds.Max, cfg.Bounds.Calm = c.Int("min-window"), c.Int("max-window"),
		c.Int("hysteresis")
	cfg.Fraction, cfg.Skip, cfg.Positions = c.Float64("fraction"), c.Int("skip"), c.Int("context")
	cfg.Sim, err = e.simConfig(c, head)
	return cfg, err
}

// budgetOverTime reads --dram-over-time, or the file that it names.
func budgetOverTime(ctx context.Context, text string,
	weights units.Bytes) (*adaptive.Schedule, error) {
	if !strings.HasSuffix(text, ".csv") {
		s, err := adaptive.Parse(text, weights)
		if err != nil {
			return nil, usageError("--dram-over-time %.60q: %v", text, err)
		}
		return s, nil
	}
	data, err := input.ReadDocument(ctx, text, input.Limit{Most: adaptive.MaxFile})
	if err != nil {
		return nil, fmt.Errorf("--dram-over-time: %w", err)
	}
	s, err := adaptive.ParseCSV(bytes.NewReader(data), weights)
	if err != nil {
		return nil, inputError("%s: %v", text, err)
	}
	return s, nil
}

// writeWindows writes the tokens of all strategies in the form that the name of the file says.
func writeWindows(path string, r *adaptive.Result) error {
	return output.Write(path, func(f *output.File) error {
		if strings.HasSuffix(path, ".csv") {
			return r.WriteCSV(f)
		}
		return r.WriteJSONLines(f)
	})
}
