package cli

import (
	"errors"
	"io/fs"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/engine/tokenizer"
	"github.com/windrow-sim/windrow/traces/arrivals"
)

// arrivalsCommand is the verb that looks at a trace of requests.
func arrivalsCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "arrivals", Usage: "what a trace of requests holds", ArgsUsage: "FILE",
		Description: "Reads the traces of Azure (2023, 2024), BurstGPT, Mooncake, Bailian, vidur " +
			"and the texts of ShareGPT in one pass and constant memory. Lines that\n" +
			"are not as the format has them are refused with their number; requests without " +
			"prompt or output tokens are left out and counted.\n" +
			"--keep-failed keeps those that have a prompt. JSON lines with unknown keys are " +
			"refused: their times may be in seconds or milliseconds.\n\n" +
			examples("windrow trace arrivals azure.csv", "windrow trace arrivals azure.csv --json",
				"windrow trace arrivals chats.json --tokenizer examples/models/tales"),
		Flags: []cli.Flag{
			shared("arrivals-format"),
			shared("sort"),
			shared("skip-bad"),
			shared("keep-failed"),
			shared("tokenizer"),
		},
		Action: e.traceArrivals,
	}
}

func (e *env) traceArrivals(c *cli.Context) error {
	if err := needArgs(c, 1, "one file"); err != nil {
		return err
	}
	o, err := arrivalsOptions(c)
	if err != nil {
		return err
	}
	r, err := arrivals.Open(c.Context, c.Args().First(), o)
	if err != nil {
		return arrivalsError(err)
	}
	defer r.Close()
	s, err := arrivals.Summarize(c.Context, r)
	if err != nil {
		return arrivalsError(err)
	}
	return e.put(c, s.Document())
}

// arrivalsOptions reads the flags that say how to read a file of requests.
func arrivalsOptions(c *cli.Context) (o arrivals.Options, err error) {
	o.Sort, o.SkipBad, o.KeepFailed = c.Bool("sort"), c.Int("skip-bad"), c.Bool("keep-failed")
	if name := c.String("arrivals-format"); name != "" {
		if o.Format, err = arrivals.ParseFormat(name); err != nil {
			return o, usageError("--arrivals-format: %v", err)
		}
	}
	if folder := c.String("tokenizer"); folder != "" {
		t, err := tokenizer.Load(c.Context, folder)
		if err != nil {
			return o, err
		}
		o.Count = func(text string) int { return len(t.EncodePlain(text)) }
	}
	return o, nil
}

// arrivalsError says that it is the input that is bad, and which flag might help.
func arrivalsError(err error) error {
	remedy := ""
	if errors.Is(err, arrivals.ErrUnknown) {
		remedy = "; if you know what it is, say so with --arrivals-format"
	}
	if bad, ok := errors.AsType[*arrivals.LineError](err); ok {
		remedy = "; --skip-bad N leaves out up to N bad lines"
		if bad.Reason == arrivals.Unsorted {
			remedy = "; --sort sorts the requests by time"
		}
	}
	if errors.Is(err, arrivals.ErrFormat) || errors.Is(err, arrivals.ErrUnsupported) ||
		errors.As(err, new(*fs.PathError)) {
		return inputError("%v%s", err, remedy)
	}
	return err
}
