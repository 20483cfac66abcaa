package cli

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/cmd/windrow/report"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/replay"
	"github.com/windrow-sim/windrow/traces"
)

func calibrateCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:  "calibrate",
		Usage: "measure how many layers should be dense when reads go ahead for the whole token",
		Description: "Replays the first tokens of a trace with --schedule token and every dense " +
			"prefix that fits into --dram, and names the fastest (d* of\n" +
			"NeuroPrefetcher). More dense layers leave less to read and more compute to hide it " +
			"behind, and take more memory. A prefix is bound by\n" +
			"reads while compute waits for them, by compute when it does not, and does not fit " +
			"when memory is short.\n\n" +
			examples("windrow calibrate -t tales.trace.arrow -m tales.flash.safetensors --dram "+
				"95% --measure-tokens 8 -o prefix.json"),
		Flags: with(take("trace!", "model!", "window", "policy"), take(readingFlags...),
			take(engineFlags...), take("staging", "seed"), []cli.Flag{
				defaulting(shared("measure-tokens"), 16),
				&cli.IntFlag{Name: "step", Value: 1, Usage: "try every `N`th prefix, and the " +
					"largest that fits"},
				&cli.StringFlag{Name: "out", Aliases: []string{"o"},
					Usage: "also write the result to `FILE` (*.json)"},
			}),
		Action: e.calibrate,
	}
}

// prefixRow is one dense prefix.
type prefixRow struct {
	Dense      int         `json:"dense_layers"`
	Memory     units.Bytes `json:"memory_bytes"`
	Fits       bool        `json:"fits"`
	TokensPerS float64     `json:"tokens_per_s,omitempty"`
	Waited     units.Nanos `json:"io_wait_ns_per_token,omitempty"`
	Hidden     units.Nanos `json:"hidden_io_ns_per_token,omitempty"`
	Compute    units.Nanos `json:"compute_ns_per_token,omitempty"`
	Bytes      units.Bytes `json:"flash_bytes_per_token,omitempty"`
	Regime     string      `json:"regime"` // "reads", "compute" or "memory"
}

// calibrated is the document of --json and --out.
type calibrated struct {
	Tool   string      `json:"tool"`
	Model  string      `json:"model"`
	Trace  string      `json:"trace_sha256"`
	Device string      `json:"device"` // how the reads were done
	Budget units.Bytes `json:"budget_bytes,omitempty"`
	Best   int         `json:"best_dense_layers"`
	Rows   []prefixRow `json:"prefixes"`
}

func (e *env) calibrate(c *cli.Context) error {
	if c.IsSet("out") {
		if err := checkOutput(c.String("out"), ".json"); err != nil {
			return err
		}
	}
	if c.Int("measure-tokens") < 2 || c.Int("step") < 1 {
		return usageError("--measure-tokens %d, --step %d: 2 tokens or more and a step of 1 or "+
			"more are "+
			"wanted", c.Int("measure-tokens"), c.Int("step"))
	}
	m, err := openModel(c.String("model"))
	if err != nil {
		return err
	}
	defer m.close()
	tr, err := e.openTrace(c.String("trace"))
	if err != nil {
		return err
	}
	defer tr.Close()
	cfg := replay.Config{Bundles: m.bundles, Threads: c.Int("threads"),
		MaxTokens: min(c.Int("measure-tokens"), tr.Tokens()), Seed: c.Uint64("seed")}
	if cfg.Policy, err = residency(c, tr.Header()); err != nil {
		return err
	}
	if cfg.Layout, err = layoutOptions(c); err != nil {
		return err
	}
	cfg.Schedule.Kind = schedule.Token
	if cfg.Schedule.Staging, err = stagingOf(c); err != nil {
		return err
	}
	doc := &calibrated{Tool: Tool, Model: m.image.Name, Trace: tr.SHA256()}
	if c.IsSet("dram") {
		if doc.Budget, err = memoryBudget(c, m); err != nil {
			return err
		}
	}
	if err := e.prefixes(c, m, tr, cfg, doc); err != nil {
		return err
	}
	if path := c.String("out"); path != "" {
		if err := writeWhole(path, func(w io.Writer) error {
			return printJSON(w,
				doc)
		}); err != nil {
			return err
		}
	}
	if c.Bool("json") {
		return printJSON(e.stdout, doc)
	}
	return prefixTable(e, doc)
}

// prefixes measures every prefix that fits, and finds the fastest.
func (e *env) prefixes(c *cli.Context, m *openedModel, tr *traces.Reader, cfg replay.Config,
	doc *calibrated) error {
	opt, err := readOptions(c)
	if err != nil {
		return err
	}
	layers, p := m.weights.Shape.Layers, e.startProgress("calibrate (prefixes)")
	defer p.done()
	fastest := 0.0
	for d := 1; d <= layers; d += c.Int("step") {
		row, err := e.prefix(c, m, tr, cfg, d, opt, doc)
		if err != nil {
			return err
		}
		doc.Rows = append(doc.Rows, row)
		if row.TokensPerS > fastest {
			fastest, doc.Best = row.TokensPerS, d
		}
		p.update(d, layers)
		if !row.Fits {
			break // nor does a larger one
		}
	}
	if doc.Best == 0 {
		return usageError("--dram %s: not even one dense layer fits: %v are needed",
			c.String("dram"), doc.Rows[0].Memory)
	}
	return nil
}

// prefix measures one.
func (e *env) prefix(c *cli.Context, m *openedModel, tr *traces.Reader, cfg replay.Config, d int,
	opt flashio.Options, doc *calibrated) (prefixRow, error) {
	cfg.Schedule.Dense = d
	reader, err := flashio.Open(m.image.Path, opt)
	if err != nil {
		return prefixRow{}, err
	}
	cfg.Layout.Align = max(cfg.Layout.Align, reader.Mode().Align)
	doc.Device = modeLine(reader.Mode())
	memory, err := replay.MemoryOf(tr, cfg.MaxTokens, m.weights, m.image.Geometry(), cfg)
	row := prefixRow{Dense: d, Memory: memory.Total, Fits: doc.Budget == 0 ||
		memory.Total <= doc.Budget, Regime: "memory"}
	if err != nil || !row.Fits {
		reader.Close()
		return row, err
	}
	result, err := replay.Run(c.Context, tr, m.weights, m.image.Geometry(), reader, cfg)
	if err != nil {
		return row, err
	}
	t, ahead := result.Run.Meta.Totals, result.Run.Meta.Ahead
	n := units.Nanos(t.Tokens)
	row.TokensPerS, row.Waited, row.Hidden, row.Bytes = t.TokensPerS, t.PartNanos[traces.PartIO]/n,
		ahead.Hidden/n, t.Bytes/units.Bytes(t.Tokens)
	row.Compute = t.Wall/n - row.Waited
	// A twentieth of a token is the noise of waking up.
	if row.Regime = "reads"; row.Waited*20 < t.Wall/n {
		row.Regime = "compute"
	}
	return row, nil
}

func prefixTable(e *env, doc *calibrated) error {
	right := document.Right
	t := &document.Table{Columns: []document.Column{
		{Name: "dense layers", Align: right}, {Name: "memory", Align: right}, {Name: "measured",
			Unit: "tokens/s", Align: right},
		{Name: "waits for reads", Unit: "ms/token", Align: right}, {Name: "reads hidden",
			Unit: "ms/token", Align: right}, {Name: "the rest", Unit: "ms/token", Align: right},
		{Name: "read", Unit: "MB/token", Align: right}, {Name: "bound by"},
	}}
	ms := func(v units.Nanos) string { return document.Sig3(float64(v) / 1e6) }
	for _, r := range doc.Rows {
		if !r.Fits {
			t.Add(fmt.Sprint(r.Dense), document.IEC(r.Memory), "", "", "", "", "",
				"memory: does not fit")
			continue
		}
		t.Add(fmt.Sprint(r.Dense), document.IEC(r.Memory), document.Sig3(r.TokensPerS),
			ms(r.Waited),
			ms(r.Hidden), ms(r.Compute), document.Sig3(float64(r.Bytes)/1e6), r.Regime)
	}
	if err := report.TableText(e.stdout, t); err != nil {
		return err
	}
	_, err := fmt.Fprintf(e.stdout, "\nd* = %d dense layers (%s)\n", doc.Best, doc.Device)
	return err
}
