package cli

import (
	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/replay/probe"
)

func doctorCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "doctor", Usage: "what this host can do, why not, and what to run about it",
		ArgsUsage: "[PATH]",
		Description: "PATH is a file or folder on the disk in question (default: the working " +
			"folder).\n\n" + examples("windrow doctor", "windrow doctor --json ."),
		Flags:  nil,
		Action: e.doctor,
	}
}

func (e *env) doctor(c *cli.Context) error {
	path := "."
	if c.NArg() == 1 {
		path = c.Args().First()
	} else if c.NArg() > 1 {
		return usageError("doctor takes one path, got %d", c.NArg())
	}
	x, err := probe.Examine(c.Context, path)
	if err != nil {
		return err
	}
	return e.put(c, x.Document())
}
