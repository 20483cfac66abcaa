package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/cmd/windrow/report"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim/answers"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/batch"
	"github.com/windrow-sim/windrow/traces/stats"
)

func batchCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:  "batch",
		Usage: "what several sequences at once need and cost, and where flash stops paying",
		Description: "A step of B sequences reads the union of what they need. Batches are " +
			"formed of the trace's generated tokens, cut into equal lanes: its\n" +
			"sequences, or evenly spaced places where it has too few. Hybrid reads the whole " +
			"FFN sequentially in every step, or (same memory) what\n" +
			"the window does not hold; compute is charged once per step on both sides. " +
			"--at-least leaves out units that fewer of the\n" +
			"sequences need, which changes the output. Prompts are measured as unions over " +
			"consecutive tokens.\n\n" +
			examples("windrow batch -t opt.trace.arrow -d m1-max --predicted",
				"windrow batch -t opt.trace.arrow -d m1-max --sizes 2,4,8 --window 4 --at-least "+
					"2 --group --json"),
		Flags: append(simFlags(),
			&cli.StringFlag{Name: "sizes", Usage: "`N` sequences in step: numbers and ranges, " +
				"1,2,4 or 1..8", DefaultText: "1,2,4,… 64, as far as the trace goes"},
			&cli.BoolFlag{Name: "group", Usage: "also measure batches of sequences chosen for " +
				"alike masks"},
			&cli.IntFlag{Name: "at-least", Value: 1, Usage: "read units that `M` or more of the " +
				"sequences need, 1 to 4"}),
		Action: e.batch,
	}
}

// batchResult is the document of --json.
type batchResult struct {
	Tool   string           `json:"tool"`
	Trace  string           `json:"trace"`
	SHA256 string           `json:"trace_sha256"`
	Model  string           `json:"model"`
	Device string           `json:"device"`
	Unions *stats.Unions    `json:"unions"`
	Times  *answers.Batches `json:"times"`
	Prompt []stats.Chunk    `json:"prompt_chunks"`
}

func (e *env) batch(c *cli.Context) error {
	tr, err := e.openTrace(c.String("trace"))
	if err != nil {
		return err
	}
	defer tr.Close()
	cfg, err := e.batchConfig(c, tr.Header())
	if err != nil {
		return err
	}
	stream, err := batch.NewStream(tr)
	if err != nil {
		return err
	}
	if cfg.Sizes, err = batchSizes(c, stream.Tokens()); err != nil {
		return err
	}
	result := batchResult{Tool: Tool, Trace: filepath.Base(c.String("trace")), SHA256: tr.SHA256(),
		Model: tr.Header().Model, Device: cfg.Sim.Device.Name}
	p := e.startProgress("batch (steps)")
	result.Unions, err = stats.ComputeUnions(stream, stats.UnionOptions{Sizes: cfg.Sizes,
		Predicted: cfg.Sim.Predicted, Group: c.Bool("group"), Progress: p.update})
	p.done()
	if err != nil {
		return err
	}
	if result.Prompt, err = stats.ComputeChunks(tr, cfg.Sim.Predicted); err != nil {
		return err
	}
	p = e.startProgress("batch (sizes)")
	cfg.Progress = p.update
	result.Times, err = answers.SimulateBatches(stream, cfg)
	p.done()
	if errors.Is(err, answers.ErrInput) {
		return usageError("%v", err)
	} else if err != nil {
		return err
	}
	if c.Bool("json") {
		return printJSON(e.stdout, result)
	}
	for _, w := range result.Times.Warnings {
		e.note("warning: %s", w)
	}
	return result.print(e.stdout)
}

// batchConfig reads all but the sizes.
func (e *env) batchConfig(c *cli.Context, head *traces.Header) (cfg answers.BatchConfig,
	err error) {
	cfg.AtLeast = c.Int("at-least")
	if cfg.AtLeast < 1 || cfg.AtLeast > batch.MaxAtLeast {
		return cfg, usageError("--at-least %d: it is 1 to %d", cfg.AtLeast, batch.MaxAtLeast)
	}
	cfg.Sim, err = e.simConfig(c, head)
	return cfg, err
}

// batchSizes reads --sizes. Without it, they are powers of two from --at-least on that leave a step
// after the window has filled, and two for grouping.
func batchSizes(c *cli.Context, tokens int) (sizes []int, err error) {
	most := tokens / max(c.Int("window")+1, 2)
	if !c.IsSet("sizes") {
		for b := 1; b <= min(most, stats.MaxBatch); b *= 2 {
			if b >= c.Int("at-least") {
				sizes = append(sizes, b)
			}
		}
		if len(sizes) == 0 {
			return nil, usageError("%s: %d tokens are too few for any batch; record more, or "+
				"name --sizes", c.String("trace"), tokens)
		}
		return sizes, nil
	}
	if sizes, err = units.ParseInts(c.String("sizes")); err != nil {
		return nil, usageError("--sizes: %v", err)
	}
	for _, b := range sizes {
		switch {
		case b < 1:
			return nil, usageError("--sizes %s: 1 or more sequences are wanted", c.String("sizes"))
		case b < c.Int("at-least"):
			return nil, usageError("--sizes %s: of %d sequences, no unit is needed by "+
				"--at-least %d", c.String("sizes"), b, c.Int("at-least"))
		case b > tokens || c.Bool("group") && 2*b > tokens:
			return nil, usageError("--sizes %s: the trace has %d tokens to form batches of, too "+
				"few for steps of %d", c.String("sizes"), tokens, b)
		}
	}
	return sizes, nil
}

// print writes the tables.
func (r *batchResult) print(w io.Writer) error {
	fmt.Fprintf(w, "%s on %s, %s masks, window of %d steps; %s\n\n", r.Model, r.Device,
		r.Unions.Mask, r.Times.Window, r.Unions.Formed)
	if err := report.TableText(w, r.costTable()); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%s\n", r.stops("hybrid that keeps nothing", r.Times.StopsAt))
	if r.Times.Window > 0 {
		fmt.Fprintln(w, r.stops("hybrid with the same memory", r.Times.StopsResident))
	}
	fmt.Fprintf(w, "hybrid reads %s in %s ms; compute is charged once per step\n\n",
		document.IEC(r.Times.FFNBytes), milli(r.Times.FFNRead))
	if err := report.TableText(w, r.leastTable()); err != nil {
		return err
	}
	if len(r.Unions.Groups) > 0 {
		fmt.Fprintln(w)
		if err := report.TableText(w, r.groupTable()); err != nil {
			return err
		}
	}
	fmt.Fprintln(w)
	return report.TableText(w, r.promptTable())
}

// stops says at which batch flash is no longer faster.
func (r *batchResult) stops(than string, size int) string {
	switch {
	case r.Times.NotWarm == len(r.Times.Rows):
		return fmt.Sprintf("against %s: not known, no size has more steps than the window", than)
	case size == 0:
		return fmt.Sprintf("against %s: flash pays at every measured size", than)
	}
	return fmt.Sprintf("against %s: flash stops paying at %d", than, size)
}

func milli(t units.Nanos) string { return document.Sig3(float64(t) / 1e6) }

func percent(share float64) string { return document.Sig3(100 * share) }

// numbers are right-aligned columns of "name" or "name|unit".
func numbers(names ...string) *document.Table {
	t := &document.Table{}
	for _, n := range names {
		name, unit, _ := strings.Cut(n, "|")
		t.Columns = append(t.Columns, document.Column{Name: name, Unit: unit,
			Align: document.Right})
	}
	return t
}

// costTable is about time per token.
func (r *batchResult) costTable() *document.Table {
	heads := []string{"B", "steps", "union|%"}
	if r.Times.AtLeast > 1 {
		heads = append(heads, "kept|%")
	}
	if r.Times.Window > 0 {
		heads = append(heads, "resident|%")
	}
	heads = append(heads, "read|MiB", "I/O|ms", "decide|ms", "copies|ms", "compute|ms", "flash|ms",
		"hybrid|ms")
	if r.Times.Window > 0 {
		heads = append(heads, "same memory|ms")
	}
	t := numbers(append(heads, "basis")...)
	for i := range r.Times.Rows {
		row := &r.Times.Rows[i]
		line := []string{fmt.Sprint(row.Size), fmt.Sprint(row.Warm),
			percent(r.Unions.Batches[i].Union().Share)}
		if row.Warm == 0 {
			for len(line) < len(t.Columns) {
				line = append(line, "n/a")
			}
			t.Add(line...)
			continue
		}
		if r.Times.AtLeast > 1 {
			line = append(line, percent(row.Needed))
		}
		if r.Times.Window > 0 {
			line = append(line, percent(row.Resident))
		}
		line = append(line, document.Sig3(row.Bytes/float64(units.MiB)), milli(row.IO),
			milli(row.Decide), milli(row.Memory), milli(row.Compute), milli(row.Flash),
			milli(row.Hybrid))
		if r.Times.Window > 0 {
			line = append(line, milli(row.HybridResident))
		}
		t.Add(append(line, row.Basis)...)
	}
	return t
}

// leastTable is about units that at least M of the sequences need.
func (r *batchResult) leastTable() *document.Table {
	t := numbers("B", "needed by 1+|%", "by 2+|%", "by 3+|%", "by 4+|%", "dropped 2+|%",
		"dropped 3+|%", "dropped 4+|%")
	for i := range r.Unions.Batches {
		b := &r.Unions.Batches[i]
		line := []string{fmt.Sprint(b.Size)}
		for _, k := range b.AtLeast {
			line = append(line, possible(b.Size, k.M, k.Share))
		}
		for _, k := range b.AtLeast[1:] {
			line = append(line, possible(b.Size, k.M, k.Dropped))
		}
		t.Add(line...)
	}
	return t
}

// possible leaves out the shares of units that m of fewer than m sequences need.
func possible(size, m int, share float64) string {
	if size < m {
		return ""
	}
	return percent(share)
}

// groupTable is about choosing the sequences of a batch.
func (r *batchResult) groupTable() *document.Table {
	t := numbers("B", "batches", "in order|%", "grouped by last step|%", "smaller|%",
		"grouped by this step|%", "smaller at best|%")
	for _, g := range r.Unions.Groups {
		t.Add(fmt.Sprint(g.Size), fmt.Sprint(g.Batches), percent(g.InOrder), percent(g.Before),
			percent(1-g.Before/g.InOrder), percent(g.Known), percent(1-g.Known/g.InOrder))
	}
	return t
}

// promptTable is about prompts computed several tokens at a time.
func (r *batchResult) promptTable() *document.Table {
	t := numbers("prompt tokens at once", "chunks", "union|%", "read|MiB/token")
	for _, c := range r.Prompt {
		if c.Chunks > 0 {
			t.Add(fmt.Sprint(c.Tokens), fmt.Sprint(c.Chunks), percent(c.Share),
				document.Sig3(c.BytesPerToken/float64(units.MiB)))
		}
	}
	return t
}
