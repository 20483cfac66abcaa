package cli

import (
	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim/speculative"
	"github.com/windrow-sim/windrow/traces"
)

func speculateCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "speculate",
		Usage: "what drafting tokens with a small model gains, how many to draft, and from " +
			"which acceptance on",
		Description: "A verification of --lambda tokens and one more reads the union of their " +
			"rows once; of its rows, those of the --window tokens that end with its\n" +
			"token α·(λ+1) stay (LLM in a flash, section 5.2). It yields 1 + α + … + α^λ " +
			"tokens, or with --drawn as many as seeded draws accept.\n" +
			"Compute is charged once per verification, a lower bound where arithmetic limits; " +
			"the memory of the draft model is not counted. With the mean,\n" +
			"rejected tokens are later ones of the trace, which reads too much; with draws, " +
			"places verified again need the same rows, which reads too\n" +
			"little. Break-even is the mean acceptance at which speculation is as fast as " +
			"none.\n\n" +
			examples("windrow speculate -t opt.trace.arrow -d m1-max --predicted --lambda 4 "+
				"--acceptance 0.7 --draft-ratio 0.05",
				"windrow speculate -t opt.trace.arrow -d m1-max --lambda 3 --acceptance 0.8 "+
					"--draft-time 2ms --drawn --seed 7 --json"),
		Flags: append(simFlags(), shared("lambda"),
			&cli.Float64Flag{Name: "acceptance", Value: 0.7,
				Usage: "`α`: probability that a drafted token is accepted after those before it " +
					"were"},
			&cli.StringFlag{Name: "draft-time", Usage: "`TIME` of a drafted token, for example 5ms",
				DefaultText: "none"},
			&cli.Float64Flag{Name: "draft-ratio", Usage: "in its place, `SHARE` of the large " +
				"model's compute per token", DefaultText: "none"},
			&cli.IntFlag{Name: "most", Value: 8, Usage: "table of λ from 1 to `N`; 0: --lambda " +
				"alone"},
			&cli.BoolFlag{Name: "drawn", Usage: "draw for every drafted token whether it is " +
				"accepted, instead of the mean"},
			defaulting(shared("skip"), "the window"), shared("seed")),
		Action: e.speculate,
	}
}

func (e *env) speculate(c *cli.Context) error {
	tr, err := e.openTrace(c.Context, c.String("trace"))
	if err != nil {
		return err
	}
	defer tr.Close()
	cfg, err := e.speculateConfig(c, tr.Header())
	if err != nil {
		return err
	}
	p := e.startProgress("speculate (λ)")
	cfg.Progress = p.update
	r, err := speculative.Run(c.Context, tr, cfg)
	p.done()
	if err != nil {
		return err
	}
	return e.put(c, r.Document())
}

// speculateConfig reads the flags.
func (e *env) speculateConfig(c *cli.Context, head *traces.Header) (cfg speculative.Config,
	err error) {
	cfg = speculative.Config{
		Draft: c.Int("lambda"), Most: c.Int("most"), Acceptance: c.Float64("acceptance"),
		Drawn: c.Bool("drawn"), Seed: c.Uint64("seed"),
		Skip: c.Int("skip"), DraftRatio: c.Float64("draft-ratio"),
	}
	if cfg.Sim, err = e.simConfig(c, head); err != nil {
		return cfg, err
	}
	if !c.IsSet("skip") {
		cfg.Skip = max(cfg.Sim.Policy.Window, 0)
	}
	if text := c.String("draft-time"); text != "" {
		if cfg.DraftTime, err = units.ParseNanos(text); err != nil || cfg.DraftTime < 0 ||
			cfg.DraftTime > maxDraftTime {
			return cfg, usageError("--draft-time %q: a time of up to %v like 5ms is wanted", text,
				maxDraftTime)
		}
	}
	return cfg, nil
}

// maxDraftTime keeps sums of times far from overflow.
const maxDraftTime = units.Nanos(3_600_000_000_000)
