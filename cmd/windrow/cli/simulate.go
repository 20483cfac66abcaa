package cli

import (
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/cmd/windrow/report"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
)

// runOutput names the Run to write.
func runOutput() cli.Flag {
	return &cli.StringFlag{Name: "out", Aliases: []string{"o"},
		Usage: "also write the whole `RUN` (*.run.arrow and *.run.json)"}
}

func simCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:  "sim",
		Usage: "predict how a trace runs on a device",
		Description: "The device is a *.device.yaml from probe or the name of a preset (windrow " +
			"device list). With --model the layout is the image's;\n" +
			"without it, units lie densely. Residency and requests are decided by the engine's " +
			"own code; only time is modelled.\n" +
			"Every prediction carries an interval that holds nine of ten results, and says " +
			"whether it is measured, interpolated, extrapolated or a bound.\n\n" +
			examples("# one answer: speed, interval, what bounds it",
				"windrow sim -t opt.trace.arrow -d m1-max --predicted",
				"# another window and queue depth; keep the Run for a report",
				"windrow sim -t opt.trace.arrow -d m1-max --predicted --window 8 --parallel 64 "+
					"-o opt.run.arrow",
				"# rows kept by recency instead of a window",
				"windrow sim -t opt.trace.arrow -d m1-max --predicted --policy lru:2000",
				"# read ahead with a predictor that misses a tenth",
				"windrow sim -t opt.trace.arrow -d m1-max --predicted --schedule lookahead "+
					"--recall 0.9 --overfetch 0.02",
				"# NeuroPrefetcher: delta buffers, dense prefix, one batch per token",
				"windrow sim -t opt.trace.arrow -d m1-max --predicted --policy delta:2000 "+
					"--schedule token --dense-prefix 2 --staging 64MiB"),
		Flags:  append(simFlags(), runOutput()),
		Action: e.simulate,
	}
}

func (e *env) simulate(c *cli.Context) error {
	if err := e.claimFlag(c, "out", runSuffix); err != nil {
		return err
	}
	tr, err := e.openTrace(c.Context, c.String("trace"))
	if err != nil {
		return err
	}
	defer tr.Close()
	cfg, err := e.simConfig(c, tr.Header())
	if err != nil {
		return err
	}
	run, err := sim.Run(c.Context, tr, cfg)
	if err != nil {
		return err
	}
	headroom, err := cfg.Headroom(tr)
	if err != nil {
		return err
	}
	run.Meta.Headroom = &headroom
	run.Meta.Tool, run.Meta.Trace, run.Meta.TraceSHA256 = Tool, filepath.Base(c.String("trace")),
		tr.SHA256()
	return e.putRun(c, run, c.String("out"), cfg.Device.Flash.LinkRate)
}

// putRun prints the Run in the format of the flags and writes it to out, unless that is empty.
func (e *env) putRun(c *cli.Context, run *traces.Run, out string, rate units.Rate) error {
	if out != "" {
		if err := traces.WriteRun(out, run); err != nil {
			return err
		}
	}
	label := "measured"
	if run.Meta.Simulated {
		label = "simulated"
	} else if run.Meta.Emulated {
		label = "emulated"
	}
	return e.putRuns(c, &report.Data{
		Name: c.Command.Name, Title: "windrow " + c.Command.Name, FlashRate: rate,
		Facts: runFacts(run), Runs: []report.LabeledRun{{Label: label, Run: run}},
	})
}

// runFacts are the setting of a run.
func runFacts(run *traces.Run) []document.Fact {
	return []document.Fact{{Key: "model", Value: run.Meta.Model},
		{Key: "device", Value: run.Meta.Device}, {Key: "trace", Value: run.Meta.Trace}}
}
