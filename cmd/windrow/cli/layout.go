package cli

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/cmd/windrow/report"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim/placement"
	"github.com/windrow-sim/windrow/traces"
)

func layoutCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "layout",
		Usage: "where neurons should lie on flash: split, bundled, hot first, in chains, with " +
			"friends; and which gap pays",
		Description: "The first half of the trace is the training split, the second the test " +
			"split. " +
			"Split: the rows of a neuron lie apart. Bundled: together, the\n" +
			"baseline. Joined: neighbours are one read. Gap g: up to g records between two " +
			"wanted ones are read and discarded; the best of --gaps\n" +
			"is shown. Hot first: by how often they are read. Linear: chains of neurons that " +
			"are read together. Friends: copies of its closest\n" +
			"friends' bundles follow every bundle. Oracle: chains learned from the test split, " +
			"a bound on what learning can gain.\n\n" +
			examples("windrow layout -t opt.trace.arrow -d m1-max --gaps 0..4",
				"windrow layout -t opt.trace.arrow -d ufs40-8gen3 --predicted --window 0 --gaps "+
					"0,1,2,4 --max-tokens 8 --json"),
		// The study compares the ways to join neighbours.
		Flags: append(less(simFlags(), "gap", "no-coalesce"),
			&cli.StringFlag{Name: "gaps", Value: "0..16",
				Usage: "gaps to look at, in `RECORDS`: numbers and ranges, ascending from 0"},
			&cli.IntFlag{Name: "friends", Value: 1,
				Usage: fmt.Sprintf("copies of `N` closest friends behind every bundle, 1 to %d",
					placement.MaxFriends)}),
		Action: e.layout,
	}
}

// layoutResult is the document of --json.
type layoutResult struct {
	Tool   string `json:"tool"`
	Trace  string `json:"trace"`
	SHA256 string `json:"trace_sha256"`
	Model  string `json:"model"`
	Device string `json:"device"`
	Engine string `json:"engine"`
	Depth  int    `json:"parallel"`
	Window int    `json:"window_tokens"`
	Synth  bool   `json:"synthetic"`
	*placement.Result
}

func (e *env) layout(c *cli.Context) error {
	format := e.format(c)
	tr, err := e.openTrace(c.String("trace"))
	if err != nil {
		return err
	}
	defer tr.Close()
	cfg, err := e.placementConfig(c, tr.Header())
	if err != nil {
		return err
	}
	r := layoutResult{
		Tool: Tool, Trace: filepath.Base(c.String("trace")), SHA256: tr.SHA256(),
		Model: tr.Header().Model, Device: cfg.Sim.Device.Name,
		Engine: cfg.Sim.Engine, Depth: cfg.Sim.Parallel, Window: cfg.Sim.Policy.Window,
		Synth: tr.Header().Synthetic,
	}
	p := e.startProgress("layout (steps)")
	cfg.Progress = p.update
	r.Result, err = placement.Run(tr, cfg)
	p.done()
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return printJSON(e.stdout, r)
	}
	for _, w := range r.Warnings {
		e.note("warning: %s", w)
	}
	return r.print(e.stdout, format)
}

// placementConfig reads the flags.
func (e *env) placementConfig(c *cli.Context, head *traces.Header) (cfg placement.Config,
	err error) {
	cfg.Friends = c.Int("friends")
	if cfg.Friends < 1 || cfg.Friends > placement.MaxFriends {
		return cfg, usageError("--friends %d: it is 1 to %d", cfg.Friends, placement.MaxFriends)
	}
	if n := c.Int("max-tokens"); n < 0 {
		return cfg, usageError("--max-tokens %d: it must be 0 or more", n)
	}
	if cfg.Gaps, err = gapList(c.String("gaps")); err != nil {
		return cfg, err
	}
	cfg.Sim, err = e.simConfig(c, head)
	cfg.Sim.Layout.Coalesce = false // both are compared
	return cfg, err
}

// gapList reads numbers and ranges that ascend from 0.
func gapList(text string) ([]int, error) {
	gaps, err := units.ParseInts(text)
	if err != nil || gaps[0] != 0 || gaps[len(gaps)-1] > placement.MaxGap {
		return nil, usageError("--gaps %s: numbers of records like 0,1,2 or a range like 0..16 "+
			"are wanted, ascending from 0 to %d at most", text, placement.MaxGap)
	}
	return gaps, nil
}

// print writes the tables.
func (r *layoutResult) print(w io.Writer, format string) error {
	if format == "csv" {
		return report.TableCSV(w, r.table())
	}
	write := report.TableText
	if format == "md" {
		write = report.TableMarkdown
	}
	boundary := "they share a sequence"
	if r.Apart {
		boundary = "no sequence is in both"
	}
	fmt.Fprintf(w, "%s on %s (%s ×%d), %s masks, window of %d tokens: training split of %d "+
		"tokens, "+
		"test split of the %d after them; %s\n", r.Model, r.Device, r.Engine, r.Depth, r.Mask,
		r.Window, r.Train, r.Test, boundary)
	fmt.Fprintf(w, "%s units are read per token\n\n", document.Sig3(r.Loads))
	if err := write(w, r.table()); err != nil {
		return err
	}
	fmt.Fprint(w, "\nI/O time by gap:\n\n")
	if err := write(w, r.gapTable()); err != nil {
		return err
	}
	fmt.Fprint(w, "\nThe gap that pays:")
	for i, s := range r.Sweeps {
		if i > 0 {
			fmt.Fprint(w, ";")
		}
		most := s.Rows[len(s.Rows)-1].Gap
		fmt.Fprintf(w, " %s %s (closed form %s, rule of a pair %s)", s.Layout, atMost(s.Best, most),
			atMost(s.Closed, most), atMost(s.Pair, most))
	}
	fmt.Fprint(w, "\n\n")
	if err := write(w, r.copiesTable()); err != nil {
		return err
	}
	r.printFriends(w)
	if r.Synth {
		fmt.Fprintln(w, "synthetic: units share nothing but popularity, so that what chains "+
			"gain over hotness is chance, a sequence in both parts, or, with a window, cold starts")
	}
	return nil
}

// atMost marks a number that may be larger than the most that was looked at.
func atMost(n, most int) string {
	if n >= most && most > 0 {
		return fmt.Sprintf("%d or more", n)
	}
	return fmt.Sprint(n)
}

// table compares the layouts.
func (r *layoutResult) table() *document.Table {
	t := numbers("layout", "neighbours", "flash|GiB", "reads/token", "read|MiB", "wasted|%",
		"units/read", "KiB/read", "I/O|ms", "token|ms", "I/O gain|×", "token gain|×")
	t.Columns[0].Align, t.Columns[1].Align = document.Left, document.Left
	for i := range r.Rows {
		row := &r.Rows[i]
		wasted := 0.0
		if row.Bytes > 0 {
			wasted = row.Wasted / row.Bytes
		}
		t.Add(row.Layout, neighbours(row), document.Sig3(float64(row.Flash)/float64(units.GiB)),
			document.Sig3(row.Reads), document.Sig3(row.Bytes/float64(units.MiB)), percent(wasted),
			document.Sig3(row.Run), document.Sig3(row.Read/float64(units.KiB)), milli(row.IO),
			milli(row.Token), document.Sig3(row.IOGain), document.Sig3(row.Gain))
	}
	return t
}

// neighbours says how a layout is read.
func neighbours(row *placement.Row) string {
	switch {
	case !row.Joined:
		return "apart"
	case row.Gap == 0:
		return "joined"
	}
	return fmt.Sprintf("gap %d", row.Gap)
}

// gapTable is the I/O time of every order under every gap.
func (r *layoutResult) gapTable() *document.Table {
	heads := []string{"gap"}
	for _, s := range r.Sweeps {
		heads = append(heads, s.Layout+"|ms")
	}
	t := numbers(heads...)
	for i := range r.Sweeps[0].Rows {
		line := []string{fmt.Sprint(r.Sweeps[0].Rows[i].Gap)}
		for _, s := range r.Sweeps {
			line = append(line, milli(s.Rows[i].IO))
		}
		t.Add(line...)
	}
	return t
}

// copiesTable says what friends bring.
func (r *layoutResult) copiesTable() *document.Table {
	t := numbers("records per token", "brought", "needed", "repeated", "not needed",
		"each of the hottest 1 %")
	t.Columns[0].Align = document.Left
	t.Add("bundled", document.Sig3(r.Loads), document.Sig3(r.Loads), "0", "0",
		document.Sig3(r.Hottest))
	for i := range r.Rows {
		if c := r.Rows[i].Copies; c != nil {
			t.Add(r.Rows[i].Layout, document.Sig3(c.Fetched), document.Sig3(c.Needed),
				document.Sig3(c.Repeated), document.Sig3(c.Unneeded), document.Sig3(c.Hottest))
		}
	}
	return t
}

// printFriends says who is needed with whom.
func (r *layoutResult) printFriends(w io.Writer) {
	f := &r.Companion
	if f.Units == 0 {
		fmt.Fprint(w, "\nfriends: no unit is needed often enough to tell who its friends are\n")
		return
	}
	fmt.Fprintf(w, "\nfriends, of the %d units that 8 or more tokens of the training split "+
		"need: the "+
		"closest is needed with %s %% of a unit's uses (%s %% at least), the fourth with %s %%, "+
		"the eighth with %s %%;\n"+
		"one unit is the closest friend of %s %% of a layer, and %s %% of the units are "+
		"anybody's\n",
		f.Units, percent(f.Closest[0]), percent(f.Least), percent(f.Closest[3]),
		percent(f.Closest[7]), percent(f.Popular), percent(f.Distinct))
	if r.Sampled > 1 {
		fmt.Fprintf(w, "pairs are counted in one of %d tokens\n", r.Sampled)
	}
}
