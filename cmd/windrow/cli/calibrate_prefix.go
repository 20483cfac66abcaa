package cli

import (
	"encoding/json"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/internal/output"
	"github.com/windrow-sim/windrow/replay"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
)

func calibrateCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:  "calibrate",
		Usage: "measure how many layers should be dense when reads go ahead for the whole token",
		Description: "Replays the first tokens of a trace with --schedule token and every dense " +
			"prefix that fits into --dram, and names the fastest (d* of\n" +
			"NeuroPrefetcher). More dense layers leave less to read and more compute to hide it " +
			"behind, and take more memory. A prefix is bound by\n" +
			"reads while compute waits for them, by compute when it does not, and does not fit " +
			"when memory is short.\n\n" +
			examples("windrow calibrate -t tales.trace.arrow -m tales.flash.safetensors --dram "+
				"95% --measure-tokens 8 -o prefix.json"),
		Flags: with(take("trace!", "model!", "verify", "window", "policy"), take(readingFlags...),
			take(engineFlags...), take("staging", "seed"), []cli.Flag{
				defaulting(shared("measure-tokens"), replay.DefaultPrefixTokens),
				&cli.IntFlag{Name: "step", Value: 1, Usage: "try every `N`th prefix, and the " +
					"largest that fits"},
				&cli.StringFlag{Name: "out", Aliases: []string{"o"},
					Usage: "also write the result to `FILE` (*.json)"},
			}),
		Action: e.calibrate,
	}
}

func (e *env) calibrate(c *cli.Context) error {
	if err := e.claimFlag(c, "out", ".json"); err != nil {
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
	cfg, err := prefixConfig(c, tr)
	if err != nil {
		return err
	}
	p := e.startProgress("calibrate (prefixes)")
	cfg.Tried = p.update
	doc, err := replay.SearchPrefix(c.Context, m, tr, cfg)
	p.done()
	if err != nil {
		return err
	}
	if path := c.String("out"); path != "" {
		if err := output.Write(path, func(f *output.File) error {
			encoder := json.NewEncoder(f)
			encoder.SetIndent("", "  ")
			return encoder.Encode(doc)
		}); err != nil {
			return err
		}
	}
	return e.put(c, doc.Document())
}

// prefixConfig reads the flags.
func prefixConfig(c *cli.Context, tr *traces.Reader) (cfg replay.PrefixConfig, err error) {
	cfg = replay.PrefixConfig{Config: replay.Config{Threads: c.Int("threads"),
		MaxTokens: c.Int("measure-tokens"), Seed: c.Uint64("seed")}, DRAM: c.String("dram"),
		Step: c.Int("step"), Tool: Tool}
	if err = onePolicy(c); err != nil {
		return cfg, err
	}
	if cfg.Policy, err = sim.Residency(c.String("policy"), c.Int("window"),
		tr.Header()); err != nil {
		return cfg, err
	}
	if cfg.Schedule.Staging, err = stagingOf(c); err != nil {
		return cfg, err
	}
	if cfg.Reads, err = readsOf(c); err != nil {
		return cfg, err
	}
	return cfg, cfg.Check()
}
