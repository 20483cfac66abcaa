package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/cmd/windrow/report"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim/adaptive"
	"github.com/windrow-sim/windrow/sim/answers"
	"github.com/windrow-sim/windrow/traces"
)

func adaptiveCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:  "adaptive",
		Usage: "a window that follows a budget of memory which changes over time",
		Description: "The budget is of all memory: weights, predictor, row cache, KV cache, " +
			"activations, buffers and bookkeeping. It is SIZE, or FROM:SIZE,FROM:SIZE,…\n" +
			"from the first token that begins at or after FROM on: bare numbers are tokens of " +
			"the trace, times have a unit (0s:6GiB,2.5s:3GiB). SIZE may be\n" +
			"a share of the weights. FILE.csv holds lines FROM,SIZE. The adaptive window " +
			"shrinks at once, before anything is read, and grows by one\n" +
			"token after --hysteresis tokens in a row with room; beside it stand a fixed " +
			"fraction of the room, the static window of the smallest budget,\n" +
			"and an oracle that knows what will fit. No token is above its budget; one that not " +
			"even --min-window fits into is refused.\n\n" +
			examples("windrow adaptive -t opt.trace.arrow -d m1-max --predicted --dram-over-time "+
				"0:75%,24:60%,44:75%",
				"windrow adaptive -t opt.trace.arrow -d m1-max --dram-over-time "+
					"0s:1.5GiB,200ms:1.1GiB "+
					"--max-window 12 --hysteresis 4 -o windows.csv --json"),
		// The study chooses the window.
		Flags: append(less(simFlags(), "window", "policy"),
			&cli.StringFlag{Name: "dram-over-time", Required: true,
				Usage: "`SPEC` of all memory over time, or a FILE.csv with it"},
			&cli.IntFlag{Name: "min-window", Usage: "never shorter than `K` tokens"},
			&cli.IntFlag{Name: "max-window", Value: 32, Usage: "never longer than `K` tokens, " +
				"and so long at first"},
			&cli.IntFlag{Name: "hysteresis", Value: 8, Usage: "grow after `N` tokens in a row " +
				"with room"},
			&cli.Float64Flag{Name: "fraction", Value: 0.8,
				Usage: "`SHARE` of the room that the strategy \"fraction\" fills"},
			defaulting(shared("context"), "it grows with the text"),
			defaulting(shared("skip"), 8),
			&cli.StringFlag{Name: "out", Aliases: []string{"o"},
				Usage: "also write the window over time to `FILE`, *.csv or *.jsonl"}),
		Action: e.adaptive,
	}
}

// adaptiveResult is the document of --json.
type adaptiveResult struct {
	Tool   string `json:"tool"`
	Trace  string `json:"trace"`
	SHA256 string `json:"trace_sha256"`
	Model  string `json:"model"`
	Device string `json:"device"`
	*adaptive.Result
}

func (e *env) adaptive(c *cli.Context) error {
	out := c.String("out")
	if c.IsSet("out") {
		suffix := ".csv"
		if strings.HasSuffix(out, ".jsonl") {
			suffix = ".jsonl"
		}
		if err := checkOutput(out, suffix); err != nil {
			return err
		}
	}
	tr, err := e.openTrace(c.String("trace"))
	if err != nil {
		return err
	}
	defer tr.Close()
	cfg, err := e.adaptiveConfig(c, tr.Header())
	if err != nil {
		return err
	}
	cfg.Model = answers.ModelOf(tr.Header())
	if cfg.Budget, err = budgetOverTime(c.String("dram-over-time"), cfg.Model.Bytes()); err != nil {
		return err
	}
	p := e.startProgress("adaptive (tokens)")
	cfg.Progress = p.update
	r, err := adaptive.Run(c.Context, tr, cfg)
	p.done()
	if err != nil {
		return answerError(err)
	}
	if out != "" {
		if err := writeWindows(out, r); err != nil {
			return err
		}
	}
	result := adaptiveResult{Tool: Tool, Trace: filepath.Base(c.String("trace")),
		SHA256: tr.SHA256(), Model: cfg.Model.Name, Device: cfg.Sim.Device.Name, Result: r}
	if c.Bool("json") {
		return printJSON(e.stdout, result)
	}
	for _, w := range r.Warnings {
		e.note("warning: %s", w)
	}
	return result.print(e.stdout)
}

// adaptiveConfig reads all but the budget.
func (e *env) adaptiveConfig(c *cli.Context, head *traces.Header) (cfg adaptive.Config, err error) {
	for _, name := range []string{"min-window", "max-window", "hysteresis", "predictor-rank",
		"context", "skip"} {
		if n := c.Int(name); n < 0 || n > 1<<24 {
			return cfg, usageError("--%s %d: it is from 0 to %d", name, n, 1<<24)
		}
	}
	cfg.Bounds = policy.Bounds{Min: c.Int("min-window"), Max: c.Int("max-window"),
		Calm: c.Int("hysteresis")}
	cfg.Fraction, cfg.Skip, cfg.Positions = c.Float64("fraction"), c.Int("skip"), c.Int("context")
	cfg.Sim, err = e.simConfig(c, head)
	return cfg, err
}

// budgetOverTime reads --dram-over-time, or the file that it names.
func budgetOverTime(text string, weights units.Bytes) (*adaptive.Schedule, error) {
	if !strings.HasSuffix(text, ".csv") {
		s, err := adaptive.Parse(text, weights)
		if err != nil {
			return nil, usageError("--dram-over-time %.60q: %v", text, err)
		}
		return s, nil
	}
	f, err := os.Open(text)
	if err != nil {
		return nil, fmt.Errorf("--dram-over-time: %w", err)
	}
	defer f.Close()
	s, err := adaptive.ParseCSV(f, weights)
	if err != nil {
		return nil, inputError("%s: %v", text, err)
	}
	return s, nil
}

// writeWindows writes the tokens of all strategies in the form that the name of the file says.
func writeWindows(path string, r *adaptive.Result) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if strings.HasSuffix(path, ".csv") {
		return r.WriteCSV(f)
	}
	return r.WriteJSONLines(f)
}

func (r *adaptiveResult) print(w io.Writer) error {
	fmt.Fprintf(w, "%s on %s, windows of %d to %d tokens, hysteresis of %d; the floor with the "+
		"longest context is %s\n\n",
		r.Model, r.Device, r.Min, r.Max, r.Calm, document.IEC(r.Floor.Total))
	right := document.Right
	from := document.Column{Name: "from token", Align: right}
	if r.Budget.ByTime {
		from = document.Column{Name: "from", Unit: "s", Align: right}
	}
	phases := &document.Table{Columns: []document.Column{from, {Name: "dram-over-time",
		Align: right},
		{Name: "floor", Align: right}, {Name: "tokens", Align: right}, {Name: "oracle's window",
			Align: right}}}
	for _, p := range r.Phases {
		at, floor := strconv.FormatInt(p.From, 10), "n/a"
		if r.Budget.ByTime {
			at = document.Sig3(units.Nanos(p.From).Seconds())
		}
		if p.Tokens > 0 {
			floor = document.IEC(p.Floor)
		}
		phases.Add(at, document.IEC(p.Budget), floor, strconv.Itoa(p.Tokens),
			strconv.Itoa(p.Oracle))
	}
	if err := report.TableText(w, phases); err != nil {
		return err
	}
	fmt.Fprintln(w)
	t := &document.Table{Columns: []document.Column{
		{Name: "strategy"}, {Name: "tokens/s", Align: right}, {Name: "P50", Unit: "ms",
			Align: right}, {Name: "P95", Unit: "ms", Align: right}, {Name: "P99", Unit: "ms",
			Align: right},
		{Name: "P99/P50", Align: right}, {Name: "sd of differences", Unit: "ms", Align: right},
		{Name: "above budget", Align: right}, {Name: "missed", Unit: "%", Align: right},
		{Name: "loads/static", Align: right}, {Name: "mean window", Align: right}, {Name: "changes",
			Align: right}, {Name: "rows shed", Align: right}, {Name: "basis"},
	}}
	for _, o := range r.Outcomes {
		t.Add(o.Name, document.Sig3(o.TokensPerS), document.Sig3(o.P50.Millis()),
			document.Sig3(o.P95.Millis()), document.Sig3(o.P99.Millis()),
			document.Sig3(o.Jitter), document.Sig3(o.Deviation.Millis()), strconv.Itoa(o.Above),
			document.Sig3(100*o.Misses),
			document.Sig3(o.OverStatic), document.Sig3(o.Window), strconv.Itoa(o.Changes),
			strconv.FormatInt(o.EvictedEarly, 10), string(o.Basis))
	}
	if err := report.TableText(w, t); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nSpeeds and latencies leave out the first %d tokens of each "+
		"sequence. fraction fills %s %% of the room; static reserves the fullest moment of\n"+
		"every layer; oracle knows beforehand which window fits each budget.\n", r.Skip,
		document.Sig3(100*r.Fraction))
	return err
}
