package cli

import (
	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim/answers"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/batch"
)

func batchCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:  "batch",
		Usage: "what several sequences at once need and cost, and where flash stops paying",
		Description: "A step of B sequences reads the union of what they need. Batches are " +
			"formed of the trace's generated tokens, cut into equal lanes: its\n" +
			"sequences, or evenly spaced places where it has too few. Hybrid reads the whole " +
			"FFN sequentially in every step, or (same memory) what\n" +
			"the window does not hold; compute is charged once per step on both sides. " +
			"--at-least leaves out units that fewer of the\n" +
			"sequences need, which changes the output. Prompts are measured as unions over " +
			"consecutive tokens.\n\n" +
			examples("windrow batch -t opt.trace.arrow -d m1-max --predicted",
				"windrow batch -t opt.trace.arrow -d m1-max --sizes 2,4,8 --window 4 --at-least "+
					"2 --group --json"),
		Flags: append(simFlags(),
			&cli.StringFlag{Name: "sizes", Usage: "`N` sequences in step: numbers and ranges, " +
				"1,2,4 or 1..8", DefaultText: "1,2,4,… 64, as far as the trace goes"},
			&cli.BoolFlag{Name: "group", Usage: "also measure batches of sequences chosen for " +
				"alike masks"},
			&cli.IntFlag{Name: "at-least", Value: 1, Usage: "read units that `M` or more of the " +
				"sequences need, 1 to 4"}),
		Action: e.batch,
	}
}

func (e *env) batch(c *cli.Context) error {
	tr, err := e.openTrace(c.Context, c.String("trace"))
	if err != nil {
		return err
	}
	defer tr.Close()
	cfg, err := e.batchConfig(c, tr.Header())
	if err != nil {
		return err
	}
	var done func()
	cfg.Tell, done = e.tell()
	result, err := answers.StudyBatches(c.Context, tr, cfg)
	done()
	if err != nil {
		return err
	}
	return e.put(c, result.Document())
}

// batchConfig reads the flags; no sizes leave the choice to the study.
func (e *env) batchConfig(c *cli.Context, head *traces.Header) (cfg answers.BatchConfig,
	err error) {
	cfg.AtLeast = c.Int("at-least")
	if cfg.AtLeast < 1 || cfg.AtLeast > batch.MaxAtLeast {
		return cfg, usageError("--at-least %d: it is 1 to %d", cfg.AtLeast, batch.MaxAtLeast)
	}
	if c.IsSet("sizes") {
		if cfg.Sizes, err = units.ParseInts(c.String("sizes")); err != nil {
			return cfg, usageError("--sizes: %v", err)
		}
	}
	cfg.Group = c.Bool("group")
	cfg.Sim, err = e.simConfig(c, head)
	return cfg, err
}
