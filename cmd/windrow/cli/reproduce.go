package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/cmd/windrow/report"
	"github.com/windrow-sim/windrow/sim/reproduce"
)

func reproduceCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:  "reproduce",
		Usage: "the tables of both papers beside our numbers",
		Description: "Each row is one published number: what the paper has, what this program " +
			"computes, how far they are apart and how good the published\n" +
			"value is. A calibrated row fixed a parameter and proves nothing, a predicted row " +
			"was computed without its own number, and a miss is a\n" +
			"prediction outside its tolerance that is known, with what was tried to explain it. " +
			"Tables: " + tableNames() + ".\n" +
			"With --check the exit code is 5 when a row that is not a known miss is outside its " +
			"tolerance.\n\n" +
			examples("windrow reproduce --check", "windrow reproduce --table table2 --inputs",
				"windrow reproduce --table neuro --json"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "table", Usage: "one `TABLE`", DefaultText: "all"},
			&cli.BoolFlag{Name: "check", Usage: "fail when a row that is not a known miss is " +
				"outside its tolerance"},
			&cli.BoolFlag{Name: "inputs", Usage: "also print what each of our numbers was " +
				"computed from"},
			&cli.StringFlag{Name: "format", Value: "text", Usage: "`FORMAT`: text or md"},
			seedFlag(), jsonFlag(),
		},
		Action: e.reproduce,
	}
}

func tableNames() string {
	var names []string
	for _, t := range reproduce.Tables() {
		names = append(names, t.Name)
	}
	return strings.Join(names, ", ")
}

func (e *env) reproduce(c *cli.Context) error {
	if err := needArgs(c, 0, "no arguments"); err != nil {
		return err
	}
	format := c.String("format")
	if !slices.Contains([]string{"text", "md"}, format) {
		return usageError("--format %q: it is text or md; --json prints JSON", format)
	}
	result, err := reproduce.Run(reproduce.Options{Table: c.String("table"),
		Seed: c.Uint64("seed")})
	if errors.Is(err, reproduce.ErrTable) {
		return usageError("--table %q: known are %s", c.String("table"), tableNames())
	}
	if err != nil {
		return err
	}
	if c.Bool("json") {
		err = printJSON(e.stdout, result)
	} else {
		err = writeReproduction(e.stdout, result, format, c.Bool("inputs"))
	}
	if err != nil || !c.Bool("check") {
		return err
	}
	return checkReproduction(result)
}

// checkReproduction names the rows that are outside their tolerance without being known misses.
func checkReproduction(result *reproduce.Result) error {
	var list []string
	for _, r := range result.Outside() {
		list = append(list, fmt.Sprintf("%s is off by %+.1f %% (tolerance %g %%)", r.ID,
			r.ErrorPercent, r.TolerancePercent))
	}
	if list == nil {
		return nil
	}
	return &verdict{fmt.Sprintf("%d of %d rows are outside their tolerance: %s", len(list),
		len(result.Rows), strings.Join(list, "; "))}
}

// writeReproduction writes the rows grouped by table, each table with its calibrations and misses
// below it.
func writeReproduction(w io.Writer, result *reproduce.Result, format string, inputs bool) error {
	title, item := "", "  "
	if format == "md" {
		title, item = "## ", "- "
	}
	for _, t := range result.Tables {
		table := report.Table{Columns: []report.Column{
			{Name: "what"}, {Name: "paper", Align: report.Right}, {Name: "ours",
				Align: report.Right},
			{Name: "error", Unit: "%", Align: report.Right}, {Name: "tolerance", Unit: "%",
				Align: report.Right}, {Name: "quality"}, {Name: "status"},
		}}
		var below []string
		for _, r := range result.Rows {
			if r.Table != t.Name {
				continue
			}
			table.Add(r.Cells()...)
			below = append(below, remarks(&r, inputs)...)
		}
		fmt.Fprintf(w, "%s%s\n\n", title, t.Title)
		write := table.Text
		if format == "md" {
			write = table.Markdown
		}
		if err := write(w); err != nil {
			return err
		}
		fmt.Fprintln(w)
		for _, line := range below {
			fmt.Fprintf(w, "%s%s\n", item, line)
		}
		if below != nil {
			fmt.Fprintln(w)
		}
	}
	_, err := fmt.Fprintf(w, "%d rows: %d calibrated, %d predicted, %d known misses, %d others "+
		"outside their tolerance\n", len(result.Rows),
		result.Count(reproduce.Calibrated), result.Count(reproduce.Predicted),
		result.Count(reproduce.Miss), len(result.Outside()))
	return err
}

// remarks are what is said of a row below its table.
func remarks(r *reproduce.Row, inputs bool) []string {
	var list []string
	add := func(kind, text string) {
		if text != "" {
			list = append(list, fmt.Sprintf("%s: %s%s", r.What, kind, text))
		}
	}
	add("fixes ", r.Fixes)
	add("miss. ", r.Reason)
	add("", r.Note)
	if inputs {
		for _, in := range r.Inputs {
			from := in.From
			if in.Calibrated {
				from = "calibrated on " + from
			}
			add("", fmt.Sprintf("%s = %s (%s)", in.Name, in.Value, from))
		}
	}
	return list
}
