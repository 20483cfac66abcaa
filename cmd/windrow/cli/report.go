package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/cmd/windrow/report"
	"github.com/windrow-sim/windrow/internal/output"
	"github.com/windrow-sim/windrow/internal/plain"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/compare"
	"github.com/windrow-sim/windrow/traces/stats"
)

func reportCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:      "report",
		Usage:     "one self-contained page from one or two Runs",
		ArgsUsage: "RUN [RUN]",
		Description: "The format follows the name: report.html, .md, .json, .csv; " +
			"*.perfetto.json is a Chrome trace for Perfetto. With a simulated and a\n" +
			"measured run of one trace the report compares them.\n\n" +
			examples("# one page for a browser, no network needed",
				"windrow report opt.run.arrow --trace opt.trace.arrow -o report.html",
				"# the same for a pull request",
				"windrow report opt.run.arrow -o report.md"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "out", Aliases: []string{"o"},
				Usage: "`FILE` to write; report.html unless --format prints the report"},
			shared("trace"),
			&cli.StringFlag{Name: "title", Value: "windrow report", Usage: "`TITLE`"},
		},
		Action: e.report,
	}
}

func (e *env) report(c *cli.Context) error {
	if c.NArg() < 1 || c.NArg() > 2 {
		return usageError("report needs one or two runs, got %d arguments", c.NArg())
	}
	out := c.String("out")
	if !c.IsSet("out") {
		out = "report.html"
	}
	if _, ok := formatOf(out); !ok {
		return unknownReport(out)
	}
	printed := !c.IsSet("out") && (c.IsSet("format") || c.Bool("json"))
	if !printed && out != "-" {
		if err := e.claim(c, out, ""); err != nil {
			return err
		}
	}
	runs, err := readRuns(c.Context, c.Args().Slice())
	if err != nil {
		return err
	}
	data := &report.Data{Name: "report", Title: c.String("title"), Facts: runFacts(runs[0])}
	for i, r := range runs {
		data.Runs = append(data.Runs, report.LabeledRun{
			Label: strings.TrimSuffix(filepath.Base(c.Args().Get(i)), ".run.arrow"), Run: r})
	}
	if len(runs) == 2 && runs[0].Meta.Simulated && !runs[1].Meta.Simulated {
		if data.Comparison, err = compare.Compare(runs[0], runs[1], compare.Options{}); err != nil {
			return usageError("%v", err)
		}
	}
	if path := c.String("trace"); path != "" {
		if data.Trace, err = e.traceStatsOf(c.Context, path); err != nil {
			return err
		}
	}
	if printed {
		return e.putRuns(c, data)
	}
	return e.writeReport(c, data, out)
}

func (e *env) traceStatsOf(ctx context.Context, path string) (*report.TraceStats, error) {
	r, err := e.openTrace(ctx, path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return summarise(r)
}

// summarise computes what a report shows of a trace.
func summarise(src traces.Source) (*report.TraceStats, error) {
	s, err := stats.Compute(src, stats.Options{})
	if err != nil {
		return nil, err
	}
	t := &report.TraceStats{Units: s.Units}
	for _, p := range s.PerLayer {
		t.ActiveShare = append(t.ActiveShare, p.Active.Mean)
	}
	for k, full := range s.Total.Window.Full {
		if full == 0 {
			break // no sequence is that long
		}
		t.SAgg = append(t.SAgg, s.Total.Window.SAgg[k])
	}
	return t, nil
}

// writeReport writes a report in the format of its name, atomically.
func (e *env) writeReport(c *cli.Context, data *report.Data, out string) error {
	format, ok := formatOf(out)
	if !ok {
		return unknownReport(out)
	}
	options, err := e.options(c, format)
	if err != nil {
		return err
	}
	if out == "-" {
		return data.Write(e.stdout, options)
	}
	err = output.Write(out, func(f *output.File) error { return data.Write(f, options) })
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	fmt.Fprintln(e.stdout, plain.Line(out))
	return nil
}

func unknownReport(out string) error {
	return usageError("%s: a report ends in .html, .md, .json, .csv, .txt or .perfetto.json", out)
}

func formatOf(path string) (string, bool) {
	if path == "-" || strings.HasSuffix(path, ".html") {
		return "html", true
	}
	if strings.HasSuffix(path, ".perfetto.json") {
		return "perfetto", true
	}
	format, ok := map[string]string{".md": "md", ".json": "json", ".csv": "csv",
		".txt": "text"}[filepath.Ext(path)]
	return format, ok
}
