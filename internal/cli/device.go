package cli

import (
	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/devicemodels"
)

func deviceCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:  "device",
		Usage: "look at device models",
		Subcommands: []*cli.Command{
			{
				Name: "list", Usage: "the presets and where their numbers come from",
				Description: examples("windrow device list"),
				Action: func(c *cli.Context) error {
					t, err := presetTable(devicemodels.Presets())
					if err != nil {
						return err
					}
					return t.Text(e.stdout)
				},
			},
			{
				Name: "show", Usage: "one device model, as a file would hold it", ArgsUsage: "DEVICE",
				Description: examples("windrow device show m1-max"),
				Flags:       []cli.Flag{jsonFlag()},
				Action: func(c *cli.Context) error {
					if err := needArgs(c, 1, "a device file or a preset"); err != nil {
						return err
					}
					d, err := loadDevice(c.Args().First())
					if err != nil {
						return err
					}
					if c.Bool("json") {
						return printJSON(e.stdout, d)
					}
					text, err := devicemodels.Marshal(d)
					if err != nil {
						return err
					}
					_, err = e.stdout.Write(text)
					return err
				},
			},
		},
	}
}
