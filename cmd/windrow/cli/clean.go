package cli

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/output"
	"github.com/windrow-sim/windrow/internal/units"
)

func cleanCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:      "clean",
		Usage:     "remove what stopped processes left unfinished",
		ArgsUsage: "[FOLDER...]",
		Description: "A file that is being written is called NAME.PID-N.partial until it is " +
			"whole. When its process is stopped the hard way, that file stays;\n" +
			"this verb removes it, in the folders that are named or in the current one. Files of " +
			"living processes are left alone, and so are\n" +
			"those that a verb goes on with: RESULTS.partial (sweep --resume), " +
			"*.partial.trace.arrow, *.partial.run.arrow.\n\n" +
			examples("# look first", "windrow clean --dry-run", "windrow clean"),
		Flags: []cli.Flag{&cli.BoolFlag{Name: "dry-run",
			Usage: "list the files and remove none"}},
		Action: e.clean,
	}
}

// cleaned is the result of clean.
type cleaned struct {
	Removed units.Bytes    `json:"removed_bytes"`
	DryRun  bool           `json:"dry_run"`
	Files   []cleanedEntry `json:"files"`
}

type cleanedEntry struct {
	Path  string      `json:"path"`
	Size  units.Bytes `json:"size_bytes"`
	State string      `json:"state"`
}

func (e *env) clean(c *cli.Context) error {
	folders := c.Args().Slice()
	if len(folders) == 0 {
		folders = []string{"."}
	}
	r := cleaned{DryRun: c.Bool("dry-run"), Files: []cleanedEntry{}}
	t := document.NewTable(document.Text("file"), document.Number("size", "B"),
		document.Text("state"))
	says := map[output.State]string{output.Dead: "removed", output.Held: "being written",
		output.Resumable: "kept, to be gone on with"}
	if r.DryRun {
		says[output.Dead] = "would be removed"
	}
	for _, dir := range folders {
		list, err := output.Clean(dir, r.DryRun)
		for _, l := range list {
			if l.State == output.Dead {
				r.Removed += units.Bytes(l.Size)
			}
			r.Files = append(r.Files, cleanedEntry{l.Path, units.Bytes(l.Size), string(l.State)})
			t.Add(l.Path, fmt.Sprint(l.Size), says[l.State])
		}
		if err != nil {
			return err
		}
	}
	d := &document.Document{Name: "clean", Title: "windrow clean", Result: r,
		Headline: fmt.Sprintf("%v %s", r.Removed, says[output.Dead])}
	if len(r.Files) > 0 {
		d.Add("Unfinished files", "", *t)
	}
	return e.put(c, d)
}
