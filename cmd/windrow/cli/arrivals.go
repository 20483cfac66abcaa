package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/cmd/windrow/report"
	"github.com/windrow-sim/windrow/engine/tokenizer"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/traces/arrivals"
)

// arrivalsCommand is the verb that looks at a trace of requests.
func arrivalsCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "arrivals", Usage: "what a trace of requests holds", ArgsUsage: "FILE",
		Description: "Reads the traces of Azure (2023, 2024), BurstGPT, Mooncake, vidur and the " +
			"texts of ShareGPT in one pass and constant memory. Lines that\n" +
			"are not as the format has them are refused with their number; requests without " +
			"prompt or output tokens are left out and counted.\n\n" +
			examples("windrow trace arrivals azure.csv", "windrow trace arrivals azure.csv --json",
				"windrow trace arrivals chats.json --tokenizer examples/models/tales"),
		Flags: []cli.Flag{
			shared("arrivals-format"),
			shared("sort"),
			shared("skip-bad"),
			shared("tokenizer"),
		},
		Action: e.traceArrivals,
	}
}

func (e *env) traceArrivals(c *cli.Context) error {
	if err := needArgs(c, 1, "one file"); err != nil {
		return err
	}
	o := arrivals.Options{Sort: c.Bool("sort"), SkipBad: c.Int("skip-bad")}
	var err error
	if name := c.String("arrivals-format"); name != "" {
		if o.Format, err = arrivals.ParseFormat(name); err != nil {
			return usageError("--format: %v", err)
		}
	}
	if folder := c.String("tokenizer"); folder != "" {
		t, err := tokenizer.Load(folder)
		if err != nil {
			return err
		}
		o.Count = func(text string) int { return len(t.EncodePlain(text)) }
	}
	r, err := arrivals.Open(c.Args().First(), o)
	if err != nil {
		return arrivalsError(err)
	}
	defer r.Close()
	s, err := arrivals.Summarize(c.Context, r)
	if err != nil {
		return arrivalsError(err)
	}
	if c.Bool("json") {
		return printJSON(e.stdout, s)
	}
	return e.printArrivals(c.Args().First(), s)
}

// arrivalsError says that it is the input that is bad, and which flag might help.
func arrivalsError(err error) error {
	remedy := ""
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

// printArrivals prints what became of the lines, when requests came, and how long they are.
func (e *env) printArrivals(path string, s *arrivals.Summary) error {
	t := &document.Table{Columns: []document.Column{{Name: "requests"}, {Name: path}}}
	t.Add("format", string(s.Format))
	unit := "lines"
	if !s.Format.HasTimes() {
		unit = "conversations"
	}
	t.Add(unit, fmt.Sprint(s.Lines))
	t.Add("requests", fmt.Sprint(s.Requests))
	if s.Sessions > 0 {
		t.Add("sessions", fmt.Sprint(s.Sessions))
	}
	if s.Span != nil {
		t.Add("span", document.Sig3(s.Span.Seconds())+" s")
		if s.Rate != nil {
			t.Add("mean rate", document.Sig3(*s.Rate)+" /s")
		}
		t.Add("busiest second", fmt.Sprint(*s.Peak))
	} else {
		t.Add("times", "none")
	}
	t.Add("of one output token", fmt.Sprintf("%d, which have no time per output token",
		s.SingleToken))
	for _, why := range slices.Sorted(maps.Keys(s.Skipped)) {
		t.Add("left out: "+string(why), fmt.Sprint(s.Skipped[why]))
	}
	if len(s.Ignored) > 0 {
		t.Add("not used", strings.Join(s.Ignored, ", "))
	}
	if err := report.TableText(e.stdout, t); err != nil {
		return err
	}
	right := document.Right
	tokens := &document.Table{Columns: []document.Column{
		{Name: "tokens"}, {Name: "least", Align: right}, {Name: "P50", Align: right},
		{Name: "P90", Align: right}, {Name: "P99", Align: right},
		{Name: "most", Align: right}, {Name: "all", Align: right}}}
	for _, row := range []struct {
		name string
		n    arrivals.Tokens
	}{{"prompt", s.Prompt}, {"output", s.Output}} {
		tokens.Add(row.name, decimal(row.n.Min), decimal(row.n.P50), decimal(row.n.P90),
			decimal(row.n.P99), decimal(row.n.Max), fmt.Sprint(row.n.Total))
	}
	fmt.Fprintln(e.stdout)
	return report.TableText(e.stdout, tokens)
}
