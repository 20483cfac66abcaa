package cli

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/sim/reproduce"
)

func deviceCalibrateCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "calibrate", Usage: "fit the host of presets to published times by running the " +
			"simulator", ArgsUsage: "[PRESET]",
		Description: "The numbers of a published machine that no table states are chosen so that " +
			"\"sim\" gives the times of named rows (\"windrow reproduce\" has the rows). The " +
			"preset holds the result, under calibrated. All other rows are the test. Each of " +
			"several rows is also predicted by a calibration without it.\n\n" +
			examples("windrow device calibrate m1-max", "windrow device calibrate --json"),
		Flags:  []cli.Flag{shared("seed")},
		Action: e.deviceCalibrate,
	}
}

func (e *env) deviceCalibrate(c *cli.Context) error {
	preset := c.Args().First()
	switch {
	case c.NArg() > 1:
		return usageError("device calibrate takes one preset, got %d arguments", c.NArg())
	case preset != "" && !slices.Contains(devicemodels.Presets(), preset):
		return usageError("there is no preset %q; known are %s", preset,
			strings.Join(devicemodels.Presets(), ", "))
	}
	result, err := reproduce.Calibrate(c.Context, preset, c.Uint64("seed"))
	if err != nil {
		return err
	}
	return e.put(c, result.Document())
}
