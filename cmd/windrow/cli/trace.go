package cli

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/record"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/shapes"
	"github.com/windrow-sim/windrow/traces/stats"
	"github.com/windrow-sim/windrow/traces/synth"
)

func traceCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:  "trace",
		Usage: "look at traces",
		Subcommands: []*cli.Command{
			{
				Name: "info", Usage: "what a trace is of", ArgsUsage: "TRACE",
				Description: examples("windrow trace info tales.trace.arrow",
					"windrow trace info tales.trace.arrow --json"),
				Flags: nil, Action: e.traceInfo,
			},
			{
				Name: "check", Usage: "read every row of a trace that nobody vouches for",
				ArgsUsage: "TRACE",
				Description: "The file is parsed in a child process with a memory limit, so " +
					"that a corrupt one can do no harm.\n\n" +
					examples("windrow trace check tales.trace.arrow"),
				Flags:  []cli.Flag{&cli.BoolFlag{Name: "child", Hidden: true}},
				Action: e.traceCheck,
			},
			{
				Name: "stats", Usage: "sparsity, windows and reuse, in one pass",
				ArgsUsage: "TRACE",
				Description: "s_agg(k) is the mean number of distinct units in k consecutive " +
					"tokens; new(k) the mean number that a token needs beyond\n" +
					"the k before it, which is what a window of k tokens loads.\n\n" +
					examples("windrow trace stats tales.trace.arrow",
						"windrow trace stats tales.trace.arrow --json"),
				Flags: []cli.Flag{
					shared("predicted"),
					shared("workers"),
				},
				Action: e.traceStats,
			},
			{
				Name: "cat", Usage: "print rows", ArgsUsage: "TRACE",
				Description: examples("windrow trace cat tales.trace.arrow --count 2",
					"windrow trace cat tales.trace.arrow --count 1 --units --jsonl"),
				Flags: []cli.Flag{
					&cli.IntFlag{Name: "from", Usage: "first token `N`"}, &cli.IntFlag{
						Name: "count", Usage: "`N` tokens", DefaultText: "all"},
					&cli.BoolFlag{Name: "units", Usage: "list the active units, and the codes " +
						"of their magnitudes (features are not printed)"}, &cli.BoolFlag{
						Name: "jsonl", Usage: "JSON lines instead of CSV"},
				},
				Action: e.traceCat,
			},
			{
				Name: "merge", Usage: "join traces of one model", ArgsUsage: "TRACE...",
				Description: examples("windrow trace merge tales.trace.arrow tales.trace.arrow " +
					"-o twice.trace.arrow"),
				Flags: []cli.Flag{&cli.StringFlag{Name: "out", Aliases: []string{"o"},
					Required: true, Usage: "`TRACE` to write"}},
				Action: e.traceMerge,
			},
			whatifCommand(e),
			arrivalsCommand(e),
		},
	}
}

// traceArgument opens the trace that is a verb's only argument.
func (e *env) traceArgument(c *cli.Context) (*traces.Reader, error) {
	if err := needArgs(c, 1, "one trace"); err != nil {
		return nil, err
	}
	return e.openTrace(c.Context, c.Args().First())
}

func (e *env) traceInfo(c *cli.Context) error {
	r, err := e.traceArgument(c)
	if err != nil {
		return err
	}
	defer r.Close()
	return e.put(c, traceDocument(c.Args().First(), r))
}

// traceDocument describes a trace by its header.
func traceDocument(path string, r *traces.Reader) *document.Document {
	h := r.Header()
	kind := "recorded"
	if h.Synthetic {
		kind = "synthetic"
	}
	if h.DerivedBy != "" {
		kind += ", derived"
	}
	d := &document.Document{Name: "trace-info", Title: "windrow trace info",
		Headline: fmt.Sprintf("%s: %d tokens of %s, %s", path, r.Tokens(), h.Model, kind),
		Result: map[string]any{"header": h, "tokens": r.Tokens(), "sha256": r.SHA256(),
			"verified": r.Verified(), "complete": r.Complete()}}
	t := document.NewTable(document.Text("property"), document.Text("value"))
	add := func(name, value string) {
		if value != "" {
			t.Add(name, value)
		}
	}
	add("model", h.Model)
	if h.Host[record.HostBare] != "" {
		add("beginning of texts", "left out (--no-bos)")
	}
	add("tokens", fmt.Sprint(r.Tokens()))
	add("layers", fmt.Sprint(h.Layers))
	add(string(h.UnitKind)+"s per layer", fmt.Sprint(h.Units))
	add("bytes per "+string(h.UnitKind), h.UnitBytes.String())
	add("activation", h.Activation)
	add("sampling", h.Sampling)
	add("seed", fmt.Sprint(h.Seed))
	add("predicted masks", fmt.Sprint(h.HasPredicted))
	add("magnitudes", fmt.Sprint(h.HasMagnitude))
	if h.FeatureKind != "" {
		add("features", fmt.Sprintf("%s, %d numbers (float16) per layer", h.FeatureKind,
			h.FeatureWidth))
	}
	add("prompts per batch", h.Host[record.HostBatch])
	add("prefill chunk", h.Host[record.HostChunk])
	add("derived by", h.DerivedBy)
	add("derived from sha256", h.DerivedFrom)
	add("complete", fmt.Sprint(r.Complete()))
	add("verified by manifest", fmt.Sprint(r.Verified()))
	add("sha256", r.SHA256())
	d.Add("", "", *t)
	return d
}

func (e *env) traceCheck(c *cli.Context) error {
	if err := needArgs(c, 1, "one trace"); err != nil {
		return err
	}
	path := c.Args().First()
	if c.Bool("child") {
		return traces.ServeCheck(c.Context, path, e.stdout)
	}
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("trace check: cannot find this program to start it again: %w", err)
	}
	rep, err := traces.GuardedCheck(c.Context, path, []string{exe, "trace", "check", "--child",
		path})
	if err != nil {
		return err
	}
	return e.put(c, rep.Document())
}

func (e *env) traceStats(c *cli.Context) error {
	r, err := e.traceArgument(c)
	if err != nil {
		return err
	}
	defer r.Close()
	p := e.startProgress("stats (tokens)")
	s, err := stats.Compute(r, stats.Options{Predicted: c.Bool("predicted"),
		Workers: c.Int("workers"), Progress: p.update})
	p.done()
	if err != nil {
		return err
	}
	d := s.Document()
	if h := r.Header(); h.Synthetic && h.DerivedBy == "" {
		if err := addTargets(d, strings.TrimPrefix(h.Model, "synthetic "), s); err != nil {
			return err
		}
	}
	return e.put(c, d)
}

// addTargets puts the published numbers that a synthetic trace was made to match beside its own.
func addTargets(d *document.Document, name string, s *stats.Stats) error {
	_, info, err := shapes.Lookup(name)
	if err != nil {
		return nil // of a shape without a name nothing is published
	}
	targets, err := synth.Targets(info.Name)
	if err != nil {
		return err
	}
	t := document.NewTable(document.Text("quantity"), document.Number("published", "%"),
		document.Number("this trace", "%"), document.Text("source"))
	for _, target := range targets {
		if value, ok := target.Measured(s); ok {
			t.Add(target.Quantity+", "+target.Layer, document.Sig3(target.Percent),
				document.Sig3(100*value), target.Source)
		}
	}
	d.Add("Published of "+info.Name, "", *t)
	return nil
}

func (e *env) traceCat(c *cli.Context) error {
	r, err := e.traceArgument(c)
	if err != nil {
		return err
	}
	defer r.Close()
	if from := c.Int("from"); from > r.Tokens() {
		return usageError("--from %d: the trace has %d tokens", from, r.Tokens())
	}
	opt := traces.CatOptions{From: c.Int("from"), Count: c.Int("count"), Units: c.Bool("units")}
	switch e.format(c) {
	case "text", "csv": // rows are written as they are read, however many there are
		if c.Bool("jsonl") {
			return traces.WriteJSONL(e.stdout, r, opt)
		}
		return traces.WriteCSV(e.stdout, r, opt)
	}
	if c.Bool("jsonl") {
		return usageError("--jsonl and --format %s: give one of them", e.format(c))
	}
	d, err := rowsDocument(r, opt)
	if err != nil {
		return err
	}
	return e.put(c, d)
}

// rowsDocument holds rows of a trace for the formats that need all of them at once.
func rowsDocument(r *traces.Reader, opt traces.CatOptions) (*document.Document, error) {
	var table, lines bytes.Buffer
	if err := errors.Join(traces.WriteCSV(&table, r, opt),
		traces.WriteJSONL(&lines, r, opt)); err != nil {
		return nil, err
	}
	records, err := csv.NewReader(&table).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("trace cat: %w", err)
	}
	t := document.NewTable()
	for _, head := range records[0] {
		t.Columns = append(t.Columns, document.Text(head))
	}
	t.Rows = records[1:]
	rows := []json.RawMessage{}
	for line := range bytes.Lines(lines.Bytes()) {
		rows = append(rows, json.RawMessage(bytes.TrimSpace(line)))
	}
	d := &document.Document{Name: "trace-cat", Title: "windrow trace cat",
		Headline: fmt.Sprintf("%d rows", len(rows)), Result: map[string]any{"rows": rows}}
	d.Add("Rows", "", *t)
	return d, nil
}

func (e *env) traceMerge(c *cli.Context) error {
	if c.NArg() < 2 {
		return usageError("trace merge needs two or more traces, got %d", c.NArg())
	}
	out := c.String("out")
	if err := e.claim(c, out, traceSuffix); err != nil {
		return err
	}
	if err := traces.Merge(c.Context, out, c.Args().Slice()...); err != nil {
		return err
	}
	return e.put(c, &document.Document{Name: "trace-merge", Title: "windrow trace merge",
		Headline: fmt.Sprintf("%s: %s", out, strings.Join(c.Args().Slice(), " + ")),
		Result:   map[string]any{"trace": out, "merged": c.Args().Slice()}})
}
