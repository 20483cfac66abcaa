package cli

import (
	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/output"
	"github.com/windrow-sim/windrow/internal/units"
)

func deviceCompareCommand(e *env) *cli.Command {
	def := devicemodels.DefaultCompare()
	return &cli.Command{
		Name: "compare", Usage: "throughput of device models over read size and depth, side by " +
			"side", ArgsUsage: "DEVICE DEVICE...",
		Description: "Rates are the closed form's: a loop of depth requests at random places " +
			"spread over all of the device, which is fresh. The second table on\n" +
			"compares each device with the first. What no measurement of a device covers is " +
			"marked.\n\n" +
			examples("# two presets, request by request",
				"windrow device compare m1-max samsung-860pro-sata",
				"# chosen sizes and depths, drawn",
				"windrow device compare m1-max intel-p5800x-pcie4 --chunks 4KiB,16KiB,64KiB "+
					"--depths 8,32 -o devices.svg"),
		Flags: []cli.Flag{
			defaulting(shared("chunks"), listed(def.Chunks)),
			defaulting(shared("depths"), listed(def.Depths)),
			shared("io"),
			&cli.StringFlag{Name: "out", Aliases: []string{"o"},
				Usage: "draw it as well: `FILE`.svg"},
		},
		Action: e.deviceCompare,
	}
}

func (e *env) deviceCompare(c *cli.Context) error {
	cfg, err := compareConfig(c)
	if err != nil {
		return err
	}
	if err := e.claimFlag(c, "out", ".svg"); err != nil {
		return err
	}
	cmp, err := devicemodels.Compare(cfg)
	if err != nil {
		return err
	}
	if c.IsSet("out") {
		if err := output.Write(c.String("out"), func(f *output.File) error {
			return drawComparison(f, cmp)
		}); err != nil {
			return err
		}
	}
	return e.put(c, cmp.Document())
}

// compareConfig reads the command line.
func compareConfig(c *cli.Context) (cfg devicemodels.CompareConfig, err error) {
	if c.NArg() < 2 {
		return cfg, usageError("device compare needs two or more devices, got %d; see \"%s "+
			"--help\"", c.NArg(), c.Command.HelpName)
	}
	cfg = devicemodels.DefaultCompare()
	cfg.IO = c.String("io")
	if list := c.StringSlice("chunks"); len(list) > 0 {
		cfg.Chunks = nil
		for _, s := range list {
			v, err := units.ParseBytes(s)
			if err != nil || v < 1 {
				return cfg, usageError("--chunks %q: sizes of 1B or more are wanted, like "+
					"4KiB,64KiB", s)
			}
			cfg.Chunks = append(cfg.Chunks, v)
		}
	}
	if cfg.Depths, err = depthsOf(c, cfg.Depths); err != nil {
		return cfg, err
	}
	cfg.Devices = make([]*devicemodels.Device, c.NArg())
	if err := cfg.Check(); err != nil {
		return cfg, err
	}
	cfg.Devices, err = devicemodels.FindAll(c.Context, c.Args().Slice())
	return cfg, err
}
