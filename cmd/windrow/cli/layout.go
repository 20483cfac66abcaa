package cli

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim/placement"
	"github.com/windrow-sim/windrow/traces"
)

func layoutCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "layout",
		Usage: "where neurons should lie on flash: split, bundled, hot first, in chains, with " +
			"friends; and which gap pays",
		Description: "The first half of the trace is the training split, the second the test " +
			"split. " +
			"Split: the rows of a neuron lie apart. Bundled: together, the\n" +
			"baseline. Joined: neighbours are one read. Gap g: up to g records between two " +
			"wanted ones are read and discarded; the best of --gaps\n" +
			"is shown. Hot first: by how often they are read. Linear: chains of neurons that " +
			"are read together. Friends: copies of its closest\n" +
			"friends' bundles follow every bundle. Oracle: chains learned from the test split, " +
			"a bound on what learning can gain.\n\n" +
			examples("windrow layout -t opt.trace.arrow -d m1-max --gaps 0..4",
				"windrow layout -t opt.trace.arrow -d ufs40-8gen3 --predicted --window 0 --gaps "+
					"0,1,2,4 --max-tokens 8 --json"),
		// The study compares the ways to join neighbours.
		Flags: append(less(simFlags(), "gap", "no-coalesce"),
			&cli.StringFlag{Name: "gaps", Value: "0..16",
				Usage: "gaps to look at, in `RECORDS`: numbers and ranges, ascending from 0"},
			&cli.IntFlag{Name: "friends", Value: 1,
				Usage: fmt.Sprintf("copies of `N` closest friends behind every bundle, 1 to %d",
					placement.MaxFriends)}),
		Action: e.layout,
	}
}

func (e *env) layout(c *cli.Context) error {
	tr, err := e.openTrace(c.Context, c.String("trace"))
	if err != nil {
		return err
	}
	defer tr.Close()
	cfg, err := e.placementConfig(c, tr.Header())
	if err != nil {
		return err
	}
	p := e.startProgress("layout (steps)")
	cfg.Progress = p.update
	r, err := placement.Run(c.Context, tr, cfg)
	p.done()
	if err != nil {
		return err
	}
	return e.put(c, r.Document())
}

// placementConfig reads the flags.
func (e *env) placementConfig(c *cli.Context, head *traces.Header) (cfg placement.Config,
	err error) {
	cfg.Friends = c.Int("friends")
	if cfg.Friends < 1 || cfg.Friends > placement.MaxFriends {
		return cfg, usageError("--friends %d: it is 1 to %d", cfg.Friends, placement.MaxFriends)
	}
	if n := c.Int("max-tokens"); n < 0 {
		return cfg, usageError("--max-tokens %d: it must be 0 or more", n)
	}
	if cfg.Gaps, err = gapList(c.String("gaps")); err != nil {
		return cfg, err
	}
	cfg.Sim, err = e.simConfig(c, head)
	cfg.Sim.Layout.Coalesce = false // both are compared
	return cfg, err
}

// gapList reads numbers and ranges that ascend from 0.
func gapList(text string) ([]int, error) {
	gaps, err := units.ParseInts(text)
	if err != nil || gaps[0] != 0 || gaps[len(gaps)-1] > placement.MaxGap {
		return nil, usageError("--gaps %s: numbers of records like 0,1,2 or a range like 0..16 "+
			"are wanted, ascending from 0 to %d at most", text, placement.MaxGap)
	}
	return gaps, nil
}
