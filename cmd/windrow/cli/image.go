package cli

import (
	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/engine/session"
)

func imageCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:  "image",
		Usage: "look at flash images",
		Subcommands: []*cli.Command{
			{
				Name: "check", Usage: "compare every byte of images with their hashes",
				ArgsUsage: "IMAGE...",
				Description: "An image has a hash of its header and of every 256 KiB of its " +
					"tensors. Damage is named by tensor and place, and the exit code is 5: the " +
					"answer is no.\n" +
					"Other verbs compare what they load, and of rows on flash a sample; " +
					"with --verify they compare all, and end with 3.\n\n" +
					examples("windrow image check tales.flash.safetensors",
						"windrow image check tales.flash.safetensors --json"),
				Action: e.imageCheck,
			},
		},
	}
}

func (e *env) imageCheck(c *cli.Context) error {
	if c.NArg() < 1 {
		return usageError("image check needs one image or more; see \"windrow image check --help\"")
	}
	to, done := e.tell()
	r, err := session.CheckImages(c.Context, c.Args().Slice(), to)
	done()
	if err != nil {
		return err
	}
	return e.putAnswer(c, r.Document(), r.No())
}
