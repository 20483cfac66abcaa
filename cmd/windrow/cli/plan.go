package cli

import (
	"math"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/sim/answers"
	"github.com/windrow-sim/windrow/sim/cost"
)

func planCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "plan",
		Usage: "the best configuration for a memory budget and a target, what the target needs, " +
			"and what to change first",
		Description: "Windows, I/O engines, reads in flight and chunks are simulated on the " +
			"first tokens of the trace, the best windows on all of it. Speed leaves\n" +
			"out the first tokens of each sequence, which fill the window. For a target, each " +
			"property of the device, the memory and the active share\n" +
			"is then moved by itself until it is reached. Elasticities say by how many percent " +
			"speed rises with one percent more. --dram is all memory:\n" +
			"weights, predictor, row cache at its fullest, KV cache, activations, buffers and " +
			"bookkeeping. The program itself is not in it. A budget that nothing fits into, " +
			"and a " +
			"target that is not reached within it, are answers: exit code 5.\n\n" +
			examples("# what 20 tokens/s in 80 % of the memory would take",
				"windrow plan -t opt.trace.arrow -d m1-max --dram 80% --target 20 --prefix 24",
				"# what another drive and a predictor would change, with joules",
				"windrow plan -t opt.trace.arrow -d m1-max --dram 4GiB --predicted "+
					"--predictor-rank 128 --others samsung-860pro-sata --prefix 24 --energy "+
					"--json"),
		Flags: []cli.Flag{
			shared("trace!"),
			shared("device!"),
			shared("backend"),
			shared("dram!"),
			&cli.Float64Flag{Name: "target", Usage: "`TOKENS/s` to reach", DefaultText: "none"},
			shared("predicted"),
			shared("predictor-rank"),
			defaulting(shared("context"), "those of the trace"),
			shared("io"),
			&cli.IntFlag{Name: "prefix", Usage: "search on the first `N` tokens",
				DefaultText: "48, or twice the longest window"},
			shared("max-tokens"),
			&cli.StringSliceFlag{Name: "others", Usage: "try the flash of `DEVICE` in this " +
				"machine, repeated or with commas", DefaultText: "all presets"},
			&cli.BoolFlag{Name: "energy", Usage: "with joules per token: published nvme-ssd and " +
				"lpddr5, a lower bound without processor"},
		},
		Action: e.plan,
	}
}

func (e *env) plan(c *cli.Context) error {
	cfg := answers.PlanConfig{
		Target: c.Float64("target"), Predicted: c.Bool("predicted"),
		PredictorRank: c.Int("predictor-rank"), Positions: c.Int("context"),
		Prefix: c.Int("prefix"), MaxTokens: c.Int("max-tokens"),
	}
	if !(cfg.Target >= 0 && cfg.Target <= math.MaxInt32) {
		return usageError("--target %g: tokens per second, 0 or more, are wanted", cfg.Target)
	}
	for _, name := range []string{"predictor-rank", "context", "prefix", "max-tokens"} {
		if n := c.Int(name); n < 0 || n > 1<<24 {
			return usageError("--%s %d: it is from 0 to %d", name, n, 1<<24)
		}
	}
	var err error
	if cfg.Device, err = devicemodels.Find(c.Context, c.String("device")); err != nil {
		return err
	}
	if cfg.Backend, err = simBackend(c, cfg.Device); err != nil {
		return err
	}
	if io := c.String("io"); io != "auto" {
		if _, err := cfg.Device.ReadEngine(io); err != nil {
			return err
		}
		cfg.Engines = []string{io}
	}
	if cfg.Others, err = otherDevices(c, cfg.Device.Name); err != nil {
		return err
	}
	tr, err := e.openTrace(c.Context, c.String("trace"))
	if err != nil {
		return err
	}
	defer tr.Close()
	cfg.Trace, cfg.Model = tr, answers.ModelOf(tr.Header())
	if cfg.Budget, err = sizeOrShare(c, "dram", cfg.Model.Bytes()); err != nil {
		return err
	}
	if c.Bool("energy") {
		if cfg.Energy, err = cost.FlashAndDRAM(tr.Header()); err != nil {
			return err
		}
	}
	var done func()
	cfg.Tell, done = e.tell()
	plan, err := answers.MakePlan(c.Context, cfg)
	done()
	if err != nil {
		return err
	}
	return e.putAnswer(c, plan.Document(), plan.No())
}

// otherDevices reads the devices whose flash is tried; the presets unless some are named.
func otherDevices(c *cli.Context, own string) ([]*devicemodels.Device, error) {
	names := c.StringSlice("others")
	if len(names) == 0 {
		names = devicemodels.Presets()
	}
	list, err := devicemodels.FindAll(c.Context, names)
	return slices.DeleteFunc(list, func(d *devicemodels.Device) bool { return d.Name == own }), err
}
