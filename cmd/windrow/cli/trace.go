package cli

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/cmd/windrow/report"
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
	return e.openTrace(c.Args().First())
}

func (e *env) traceInfo(c *cli.Context) error {
	r, err := e.traceArgument(c)
	if err != nil {
		return err
	}
	defer r.Close()
	h := r.Header()
	if c.Bool("json") {
		return printJSON(e.stdout, map[string]any{"header": h, "tokens": r.Tokens(),
			"sha256": r.SHA256(), "verified": r.Verified(), "complete": r.Complete(),
			"warnings": append([]string{}, r.Warnings()...)})
	}
	t := &document.Table{Columns: []document.Column{{Name: "trace"}, {Name: c.Args().First()}}}
	kind := "recorded"
	if h.Synthetic {
		kind = "synthetic"
	}
	if h.Host[record.HostBare] != "" {
		t.Add("beginning of texts", "left out (--no-bos)")
	}
	if h.DerivedBy != "" {
		kind += ", derived"
	}
	t.Add("kind", kind)
	t.Add("model", h.Model)
	t.Add("tokens", fmt.Sprint(r.Tokens()))
	t.Add("layers", fmt.Sprint(h.Layers))
	t.Add(string(h.UnitKind)+"s per layer", fmt.Sprint(h.Units))
	t.Add("bytes per "+string(h.UnitKind), h.UnitBytes.String())
	t.Add("activation", h.Activation)
	t.Add("sampling", h.Sampling)
	t.Add("seed", fmt.Sprint(h.Seed))
	t.Add("predicted masks", fmt.Sprint(h.HasPredicted))
	t.Add("magnitudes", fmt.Sprint(h.HasMagnitude))
	if h.FeatureKind != "" {
		t.Add("features", fmt.Sprintf("%s, %d numbers (float16) per layer", h.FeatureKind,
			h.FeatureWidth))
	}
	if batch := h.Host[record.HostBatch]; batch != "" {
		t.Add("recorded in batches of", batch)
	}
	if chunk := h.Host[record.HostChunk]; chunk != "" {
		t.Add("prompts in chunks of", chunk)
	}
	if h.DerivedBy != "" {
		t.Add("derived by", h.DerivedBy)
		t.Add("derived from sha256", h.DerivedFrom)
	}
	t.Add("complete", fmt.Sprint(r.Complete()))
	t.Add("verified by manifest", fmt.Sprint(r.Verified()))
	t.Add("sha256", r.SHA256())
	return report.TableText(e.stdout, t)
}

func (e *env) traceCheck(c *cli.Context) error {
	if err := needArgs(c, 1, "one trace"); err != nil {
		return err
	}
	path := c.Args().First()
	if c.Bool("child") {
		return traces.ServeCheck(path, e.stdout)
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
	for _, w := range rep.Warnings {
		e.note("warning: %s", w)
	}
	if c.Bool("json") {
		return printJSON(e.stdout, rep)
	}
	state := "unverified: no manifest"
	if rep.Verified {
		state = "verified by its manifest"
	}
	if !rep.Complete {
		state += ", not whole"
	}
	fmt.Fprintf(e.stdout, "%s: %d tokens, %d rows, %d active units, %s\n", path, rep.Tokens,
		rep.Rows, rep.Active, state)
	return nil
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
	if c.Bool("json") {
		return printJSON(e.stdout, s)
	}
	if err := e.printStats(s); err != nil {
		return err
	}
	if h := r.Header(); h.Synthetic && h.DerivedBy == "" {
		return e.printTargets(strings.TrimPrefix(h.Model, "synthetic "), s)
	}
	return nil
}

// printTargets prints the published numbers that a synthetic trace was made to match beside its
// own.
func (e *env) printTargets(name string, s *stats.Stats) error {
	_, info, err := shapes.Lookup(name)
	if err != nil {
		return nil // of a shape without a name: nothing is published
	}
	targets, err := synth.Targets(info.Name)
	if err != nil {
		return err
	}
	t := &document.Table{Columns: []document.Column{
		{Name: "published of " + info.Name}, {Name: "published", Unit: "%", Align: document.Right},
		{Name: "this trace", Unit: "%", Align: document.Right}, {Name: "source"}}}
	for _, target := range targets {
		if value, ok := measuredTarget(target, s); ok {
			t.Add(target.Quantity+", "+target.Layer, document.Sig3(target.Percent),
				document.Sig3(100*value), target.Source)
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	fmt.Fprintln(e.stdout)
	return report.TableText(e.stdout, t)
}

// measuredTarget returns the share that the trace has where a share was published, if the analysed
// masks tell it. Layers are counted from 1 in papers and from 0 in traces; a trace of fewer layers
// is spread over the depth of the model, so that only means are compared then.
func measuredTarget(t synth.Target, s *stats.Stats) (float64, bool) {
	part := &s.Total
	if t.Layer != "mean" {
		l, err := strconv.Atoi(t.Layer)
		if err != nil || l > len(s.PerLayer) || len(s.PerLayer) < 32 {
			return 0, false
		}
		part = &s.PerLayer[l-1]
	}
	predicted := s.Mask == "predicted"
	w, units := &part.Window, float64(s.Units)
	switch {
	case t.Quantity == "active_share" && !predicted:
		return part.Active.Mean, true
	case t.Quantity == "active_share" && part.Predictor != nil:
		return part.Predictor.TrueShare, true
	case t.Quantity == "predicted_share" && part.Predictor != nil:
		return part.Predictor.PredictedShare, true
	case t.Quantity == "false_negative" && part.Predictor != nil:
		return 1 - part.Predictor.Recall, true
	case t.Quantity == "false_positive" && part.Predictor != nil:
		return part.Predictor.FalsePositive, true
	case t.Quantity == "predicted_s_agg_5" && predicted:
		return w.SAgg[5] / units, true
	case t.Quantity == "predicted_delta_4" && predicted:
		return w.Delta[4] / units, true
	}
	return 0, false
}

// printStats prints the share per layer and the windows.
func (e *env) printStats(s *stats.Stats) error {
	fmt.Fprintf(e.stdout, "%d tokens in %d sequences, %d layers of %d units, %s masks\n\n",
		s.Tokens, s.Sequences, s.Layers, s.Units, s.Mask)
	percent := func(v float64) string { return document.Sig3(100 * v) }
	right := document.Right
	layers := &document.Table{Columns: []document.Column{
		{Name: "layer", Align: right}, {Name: "active", Unit: "%", Align: right}, {Name: "least",
			Unit: "%", Align: right}, {Name: "most", Unit: "%", Align: right},
		{Name: "never", Unit: "%", Align: right}, {Name: "s_agg(5)", Unit: "%", Align: right},
		{Name: "new(5)", Unit: "%", Align: right},
	}}
	line := func(name string, p *stats.Part) {
		units := float64(s.Units)
		layers.Add(name, percent(p.Active.Mean), percent(p.Active.Min), percent(p.Active.Max),
			percent(p.NeverActive),
			percent(p.Window.SAgg[5]/units), percent(p.Window.Delta[5]/units))
	}
	for l := range s.PerLayer {
		line(fmt.Sprint(l), &s.PerLayer[l])
	}
	line("mean", &s.Total)
	if err := report.TableText(e.stdout, layers); err != nil {
		return err
	}
	if p := s.Total.Predictor; p != nil {
		fmt.Fprintf(e.stdout, "\npredictor: recall %s %%, precision %s %%, predicted/true %s\n",
			percent(p.Recall), percent(p.Precision), document.Sig3(p.Ratio))
	}
	fmt.Fprintln(e.stdout)
	windows := &document.Table{Columns: []document.Column{
		{Name: "k", Align: right}, {Name: "s_agg(k)", Unit: "%", Align: right}, {Name: "new(k)",
			Unit: "%", Align: right},
		{Name: "hit ratio", Align: right}, {Name: "reuse at k", Unit: "%", Align: right},
	}}
	w := &s.Total.Window
	for k := range w.SAgg {
		if k > 8 && k&(k-1) != 0 { // all of 0…8, then powers of two
			continue
		}
		reuse := ""
		if k > 0 {
			reuse = percent(float64(s.Total.Reuse.Exact[k-1]) / float64(max(s.Accesses, 1)))
		}
		hit := float64(w.Hits[k]) / float64(max(w.Hits[k]+w.Misses[k], 1))
		windows.Add(fmt.Sprint(k), percent(w.SAgg[k]/float64(s.Units)),
			percent(w.Delta[k]/float64(s.Units)), document.Sig3(hit), reuse)
	}
	return report.TableText(e.stdout, windows)
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
	if c.Bool("jsonl") {
		return traces.WriteJSONL(e.stdout, r, opt)
	}
	return traces.WriteCSV(e.stdout, r, opt)
}

func (e *env) traceMerge(c *cli.Context) error {
	if c.NArg() < 2 {
		return usageError("trace merge needs two or more traces, got %d", c.NArg())
	}
	out := c.String("out")
	if err := checkOutput(out, traceSuffix); err != nil {
		return err
	}
	if err := traces.Merge(out, c.Args().Slice()...); err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "%s: %s\n", out, strings.Join(c.Args().Slice(), " + "))
	return nil
}
