package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/sim/reproduce"
)

func reproduceCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:  "reproduce",
		Usage: "the tables of both papers beside our numbers",
		Description: "Each row is one published number: what the paper has, what this program " +
			"has, how far they are apart and how good the published value is. A simulated row is " +
			"a run of \"sim\" with a preset that ships; only these are predictions. An " +
			"arithmetic row follows from shapes, a calibrated one fixed a number of a preset, an " +
			"identity repeats or adds up other rows. A row outside its tolerance says what was " +
			"tried to explain it; one that is not reproduced says why. Tables: " +
			tableNames() + ".\n" +
			"With --check the exit code is 5 when a row without such a reason is outside its " +
			"tolerance.\n\n" +
			examples("windrow reproduce --check", "windrow reproduce --table table2 --inputs",
				"windrow reproduce --table neuro --json"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "table", Usage: "one `TABLE`", DefaultText: "all"},
			&cli.BoolFlag{Name: "check", Usage: "fail when a row without a reason is " +
				"outside its tolerance"},
			&cli.BoolFlag{Name: "inputs", Usage: "also print what each of our numbers was " +
				"computed from"},
			shared("seed"),
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
	result, err := reproduce.Run(c.Context, reproduce.Options{Table: c.String("table"),
		Seed: c.Uint64("seed"), Inputs: c.Bool("inputs")})
	if errors.Is(err, reproduce.ErrTable) {
		return usageError("--table %q: known are %s", c.String("table"), tableNames())
	}
	if err != nil {
		return err
	}
	if err := e.put(c, result.Document()); err != nil || !c.Bool("check") {
		return err
	}
	return checkReproduction(result)
}

// checkReproduction names the rows that are outside their tolerance without a reason.
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
