package cli

import (
	"math"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/sim/answers"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/shapes"
	"github.com/windrow-sim/windrow/traces/stats"
)

func breakevenCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "breakeven",
		Usage: "the active share, and the batch, at which selective reads cost as much as " +
			"hybrid ones",
		Description: "Hybrid reads the weights that do not fit into --weights for every " +
			"token, in " +
			"reads of 1 MiB one after the other. Selective keeps all but the\n" +
			"FFN in memory and reads the rows of the active neurons that the window does not " +
			"hold. Compared is the time of the reads alone; compute\n" +
			"is taken as equal. Three answers each: in closed form, by simulation, and " +
			"simulated with the copies of rows inside memory. The closed\n" +
			"form takes the neurons of a layer as alike, which makes the union of a batch too " +
			"large; the simulation has popular ones. Simulated\n" +
			"are synthetic traces of --like, also with -t, whose own reuse is in the closed " +
			"form only. Where --weights do not hold what is not FFN, the exit code is 5.\n\n" +
			examples("windrow breakeven -d m1-max --like opt-6.7b --simulated-layers 2 "+
				"--largest-batch 16",
				"windrow breakeven -d emmc-64gb-sige5 -t opt.trace.arrow --no-coalesce --window "+
					"2 --largest-batch 16 --json"),
		Flags: []cli.Flag{
			shared("device"),
			&cli.BoolFlag{Name: "presets", Usage: "all presets"},
			shared("trace"),
			shared("like"),
			shared("predicted"),
			&cli.StringFlag{Name: "weights", Value: "50%",
				Usage: "weights in memory, on both sides: " +
					"`SIZE` or a share of the model's weights (52%)"},
			shared("active"),
			shared("window"),
			shared("io"),
			shared("parallel"),
			shared("chunk"),
			shared("no-coalesce"),
			&cli.IntFlag{Name: "simulated-layers", Value: 4,
				Usage: "simulate `N` layers and scale"},
			&cli.IntFlag{Name: "largest-batch", Value: 64,
				Usage: "look at batches of up to `N` sequences"},
			shared("seed"),
		},
		Action: e.breakeven,
	}
}

func (e *env) breakeven(c *cli.Context) error {
	devices, err := breakevenDevices(c)
	if err != nil {
		return err
	}
	cfg, err := e.breakevenQuestion(c)
	if err != nil {
		return err
	}
	result := &answers.BreakEvens{}
	for _, d := range devices {
		p := e.startProgress("break-even of " + d.Name)
		one := *cfg
		one.Device, one.Progress = d, p.update
		if one.Engine, err = d.ReadEngine(c.String("io")); err != nil {
			return err
		}
		if one.Parallel == 0 {
			one.Parallel = ioengine.DefaultParallel(one.Engine)
		}
		b, err := answers.FindBreakEven(c.Context, one)
		p.done()
		if err != nil {
			return err
		}
		result.List = append(result.List, b)
	}
	return e.putAnswer(c, result.Document(), result.No())
}

// breakevenDevices reads the devices of the command line.
func breakevenDevices(c *cli.Context) ([]*devicemodels.Device, error) {
	var names []string
	if c.IsSet("device") {
		names = strings.Split(c.String("device"), ",")
	}
	if c.Bool("presets") {
		names = append(names, devicemodels.Presets()...)
	}
	if len(names) == 0 {
		return nil, usageError("breakeven needs --device or --presets; see \"windrow breakeven " +
			"--help\"")
	}
	return devicemodels.FindAll(c.Context, names)
}

// breakevenQuestion reads what is asked, all but the device.
func (e *env) breakevenQuestion(c *cli.Context) (*answers.BreakEvenConfig, error) {
	cfg := &answers.BreakEvenConfig{
		Like: c.String("like"), Window: c.Int("window"), Parallel: c.Int("parallel"),
		Share:  c.Float64("active"),
		Layers: c.Int("simulated-layers"), MostBatch: c.Int("largest-batch"),
		Seed: c.Uint64("seed"),
	}
	const mostSimulated = 256 // sequences, each with masks of its own in memory
	for _, f := range []struct {
		name string
		most int
	}{{"largest-batch", mostSimulated}, {"simulated-layers", math.MaxInt16}} {
		if n := c.Int(f.name); n < 1 || n > f.most {
			return nil, usageError("--%s %d: it is from 1 to %d", f.name, n, f.most)
		}
	}
	var err error
	if cfg.Layout, err = layoutOptions(c); err != nil {
		return nil, err
	}
	if path := c.String("trace"); path != "" {
		err = e.breakevenTrace(c, path, cfg)
	} else if c.Bool("predicted") {
		err = usageError("--predicted is about the masks of a trace; give one with -t")
	} else if cfg.Model, err = answers.ModelLike(cfg.Like); err != nil {
		err = usageError("--like: %v", err)
	}
	if err != nil {
		return nil, err
	}
	cfg.Budget, err = sizeOrShare(c, "weights", cfg.Model.Bytes())
	return cfg, err
}

// breakevenTrace takes model, share and reuse from a trace, and the process of the model that it is
// of, if there is one.
func (e *env) breakevenTrace(c *cli.Context, path string, cfg *answers.BreakEvenConfig) error {
	tr, err := e.openTrace(c.Context, path)
	if err != nil {
		return err
	}
	defer tr.Close()
	head := tr.Header()
	if head.UnitKind == traces.Expert {
		return usageError("--trace %s: its units are experts, of which no process is known; "+
			"give a trace of neurons", path)
	}
	cfg.Model = answers.ModelOf(head)
	if name := answers.PublishedName(head.Model); !c.IsSet("like") &&
		slices.ContainsFunc(shapes.Names(), func(n string) bool {
			return strings.EqualFold(n,
				name)
		}) {
		cfg.Like = name
	}
	p := e.startProgress("trace stats")
	cfg.Measured, err = stats.Compute(tr, stats.Options{Predicted: c.Bool("predicted"),
		Progress: p.update})
	p.done()
	return err
}
