package cli

import (
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/cmd/windrow/report"
	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/energy"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim/answers"
	"github.com/windrow-sim/windrow/traces"
)

func planCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "plan",
		Usage: "the best configuration for a memory budget and a target, what the target needs, " +
			"and what to change first",
		Description: "Windows, I/O engines, reads in flight and chunks are simulated on the " +
			"first tokens of the trace, the best windows on all of it. Speed leaves\n" +
			"out the first tokens of each sequence, which fill the window. For a target, each " +
			"property of the device, the memory and the active share\n" +
			"is then moved by itself until it is reached. Elasticities say by how many percent " +
			"speed rises with one percent more. --dram is all memory:\n" +
			"weights, predictor, row cache at its fullest, KV cache, activations, buffers and " +
			"bookkeeping. The program itself is not in it.\n\n" +
			examples("windrow plan -t opt.trace.arrow -d m1-max --dram 80% --target 40 --prefix 24",
				"windrow plan -t opt.trace.arrow -d m1-max --dram 4GiB --predicted "+
					"--predictor-rank 128 --others samsung-860pro-sata --prefix 24 --energy "+
					"--json"),
		Flags: []cli.Flag{
			shared("trace!"),
			shared("device!"),
			shared("backend"),
			shared("dram!"),
			&cli.Float64Flag{Name: "target", Usage: "`TOKENS/s` to reach", DefaultText: "none"},
			shared("predicted"),
			shared("predictor-rank"),
			defaulting(shared("context"), "those of the trace"),
			shared("io"),
			&cli.IntFlag{Name: "prefix", Usage: "search on the first `N` tokens",
				DefaultText: "48, or twice the longest window"},
			shared("max-tokens"),
			&cli.StringSliceFlag{Name: "others", Usage: "try the flash of `DEVICE` in this " +
				"machine, repeated or with commas", DefaultText: "all presets"},
			&cli.BoolFlag{Name: "energy", Usage: "with joules per token: published nvme-ssd and " +
				"lpddr5, a lower bound without processor"},
		},
		Action: e.plan,
	}
}

func (e *env) plan(c *cli.Context) error {
	cfg := answers.PlanConfig{
		Target: c.Float64("target"), Predicted: c.Bool("predicted"),
		PredictorRank: c.Int("predictor-rank"), Positions: c.Int("context"),
		Prefix: c.Int("prefix"), MaxTokens: c.Int("max-tokens"),
	}
	if !(cfg.Target >= 0 && cfg.Target <= math.MaxInt32) {
		return usageError("--target %g: tokens per second, 0 or more, are wanted", cfg.Target)
	}
	for _, name := range []string{"predictor-rank", "context", "prefix", "max-tokens"} {
		if n := c.Int(name); n < 0 || n > 1<<24 {
			return usageError("--%s %d: it is from 0 to %d", name, n, 1<<24)
		}
	}
	var err error
	if cfg.Device, err = loadDevice(c.String("device")); err != nil {
		return err
	}
	if cfg.Backend, err = simBackend(c, cfg.Device); err != nil {
		return err
	}
	if io := c.String("io"); io != "auto" {
		if _, err := cfg.Device.ReadEngine(io); err != nil {
			return err
		}
		cfg.Engines = []string{io}
	}
	if cfg.Others, err = otherDevices(c, cfg.Device.Name); err != nil {
		return err
	}
	tr, err := e.openTrace(c.String("trace"))
	if err != nil {
		return err
	}
	defer tr.Close()
	cfg.Trace, cfg.Model = tr, answers.ModelOf(tr.Header())
	if cfg.Budget, err = sizeOrShare(c, "dram", cfg.Model.Bytes()); err != nil {
		return err
	}
	if c.Bool("energy") {
		if cfg.Energy, err = energyOf(tr.Header()); err != nil {
			return err
		}
	}
	stages := &stages{e: e}
	cfg.Progress = stages.update
	plan, err := answers.MakePlan(c.Context, cfg)
	stages.done()
	if err != nil {
		return answerError(err)
	}
	if c.Bool("json") {
		return printJSON(e.stdout, plan)
	}
	return printPlan(e.stdout, plan)
}

// stages shows the progress of work whose stages follow each other.
type stages struct {
	e    *env
	name string
	now  *progress
}

func (s *stages) update(name string, done, total int) {
	if s.now == nil || name != s.name {
		s.done()
		s.name, s.now = name, s.e.startProgress(name)
	}
	s.now.update(done, total)
}

func (s *stages) done() {
	if s.now != nil {
		s.now.done()
	}
}

// otherDevices reads the devices whose flash is tried; the presets unless some are named.
func otherDevices(c *cli.Context, own string) ([]*devicemodels.Device, error) {
	names := c.StringSlice("others")
	if len(names) == 0 {
		names = devicemodels.Presets()
	}
	var list []*devicemodels.Device
	for _, name := range names {
		d, err := loadDevice(name)
		if err != nil {
			return nil, err
		}
		if d.Name != own {
			list = append(list, d)
		}
	}
	return list, nil
}

// energyOf returns joules per token of a run by what is published of flash and memory. Processor
// and idle drive are left out.
func energyOf(head *traces.Header) (func(*traces.Run) (float64, bool), error) {
	flash, err := energy.Published(energy.FlashRead, "nvme-ssd")
	if err != nil {
		return nil, err
	}
	dram, err := energy.Published(energy.DRAM, "lpddr5")
	if err != nil {
		return nil, err
	}
	return func(run *traces.Run) (float64, bool) {
		t := &run.Meta.Totals
		bytes, err := dramBytes(run.Rows, head)
		if err != nil {
			return 0, false
		}
		use := energy.Use{Tokens: t.Tokens, Wall: t.Wall, IOTime: t.PartNanos[traces.PartIO],
			ComputeTime: t.Wall - t.PartNanos[traces.PartIO], FlashBytes: t.Bytes, DRAMBytes: bytes}
		r, err := energy.PerToken(use, energy.Model{Flash: flash, DRAM: dram})
		if err != nil {
			return 0, false
		}
		return r.Total.Mid, true
	}, nil
}

func printPlan(w io.Writer, p *answers.Plan) error {
	best := &p.Best
	fmt.Fprintf(w, "%s on %s within %s\n\n", p.Model, p.Device, document.IEC(p.Budget))
	for _, warning := range p.Warnings {
		fmt.Fprintf(w, "warning: %s\n", warning)
	}
	fmt.Fprintf(w, "best: window %d, %s, %d reads in flight, %s: %s tokens/s%s, %s of memory\n",
		best.Window, best.Engine, best.Parallel, chunkWord(best.Chunk),
		document.Sig3(best.TokensPerS), predictionWord(best), document.IEC(best.Memory))
	if p.Target > 0 {
		verdict := "is reached"
		if !p.Meets {
			verdict = "is not reached"
		}
		fmt.Fprintf(w, "target: %s tokens/s %s within the budget", document.Sig3(p.Target), verdict)
		if p.Leanest != nil {
			fmt.Fprintf(w, "; the least memory for it is %s, with a window of %d",
				document.IEC(p.Leanest.Memory), p.Leanest.Window)
		}
		fmt.Fprintln(w)
	}
	sections := []struct {
		title string
		table *document.Table
	}{
		{"Memory of the best", memoryTable(&p.Memory)},
		{"The best windows on the whole trace", winnersTable(p.Winners)},
		{fmt.Sprintf("Not beaten in memory and speed%s, budget or not (first %d tokens)",
			energyWord(p.Pareto), p.Tokens), paretoTable(p.Pareto)},
		{"Needed for the target, each alone", needsTable(p.Needs)},
		{"What speed depends on (percent for one percent)", sensitivityTable(p.Sensitivities)},
		{"Other flash in this machine", purchaseTable(p.Purchases)},
	}
	for _, s := range sections {
		if len(s.table.Rows) == 0 {
			continue
		}
		fmt.Fprintf(w, "\n%s\n\n", s.title)
		if err := report.TableText(w, s.table); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "\nSpeeds leave out the first %d tokens of each sequence, which "+
		"fill the window; all but those of the whole trace are of its first %d tokens.\n", p.Warm,
		p.Tokens)
	return err
}

func chunkWord(chunk units.Bytes) string {
	if chunk == 0 {
		return "chunks without limit"
	}
	return fmt.Sprintf("chunks up to %v", chunk)
}

// predictionWord says how well the speed is known, with the same interval about it as about the
// whole run.
func predictionWord(w *answers.Winner) string {
	p := w.Prediction
	if p == nil {
		return ""
	}
	text := " (" + string(p.Basis)
	if p.TokensPerSLow != nil && p.TokensPerSHigh != nil && w.Run > 0 {
		text += fmt.Sprintf(", −%s to +%s %%", document.Sig3(100*(1-*p.TokensPerSLow/w.Run)),
			document.Sig3(100*(*p.TokensPerSHigh/w.Run-1)))
	}
	return text + ")"
}

func energyWord(points []answers.Point) string {
	if len(points) > 0 && points[0].Joules != nil {
		return " and energy"
	}
	return ""
}

func memoryTable(m *answers.Memory) *document.Table {
	t := &document.Table{Columns: []document.Column{{Name: "part"}, {Name: "memory",
		Align: document.Right}, {Name: "share of the weights", Unit: "%", Align: document.Right}}}
	for _, p := range m.Parts {
		if p.Bytes > 0 {
			t.Add(p.Label(), document.IEC(p.Bytes), document.Percent(m.Share(p.Bytes)))
		}
	}
	t.Add("total", document.IEC(m.Total), document.Percent(m.Share(m.Total)))
	return t
}

func winnersTable(list []answers.Winner) *document.Table {
	t := pointsTable(false)
	for i := range list {
		addPoint(t, &list[i].Point, false)
	}
	return t
}

func paretoTable(list []answers.Point) *document.Table {
	energy := energyWord(list) != ""
	t := pointsTable(energy)
	for i := range list {
		addPoint(t, &list[i], energy)
	}
	return t
}

func pointsTable(energy bool) *document.Table {
	right := document.Right
	t := &document.Table{Columns: []document.Column{
		{Name: "window", Align: right}, {Name: "engine"}, {Name: "in flight", Align: right},
		{Name: "chunk", Align: right},
		{Name: "memory", Align: right}, {Name: "fits"}, {Name: "tokens/s", Align: right},
	}}
	if energy {
		t.Columns = append(t.Columns, document.Column{Name: "flash and memory", Unit: "J/token",
			Align: right})
	}
	return t
}

func addPoint(t *document.Table, p *answers.Point, energy bool) {
	chunk, fits := "no limit", "yes"
	if p.Chunk > 0 {
		chunk = p.Chunk.String()
	}
	if !p.Fits {
		fits = "no"
	}
	cells := []string{strconv.Itoa(p.Window), p.Engine, strconv.Itoa(p.Parallel), chunk,
		document.IEC(p.Memory), fits, document.Sig3(p.TokensPerS)}
	if energy {
		cells = append(cells, document.Sig3(*p.Joules))
	}
	t.Add(cells...)
}

// quantity writes a value in its unit.
func quantity(v float64, unit string) string {
	switch unit {
	case "ns":
		return units.Nanos(math.Round(v)).String()
	case "B":
		return document.IEC(units.Bytes(v))
	case "":
		return strconv.FormatFloat(v, 'g', 4, 64)
	case "times":
		return document.Sig3(v) + "×"
	case "share":
		return document.Sig3(100*v) + " %"
	}
	return document.SI(v, unit)
}

func needsTable(list []answers.Need) *document.Table {
	right := document.Right
	t := &document.Table{Columns: []document.Column{{Name: "what"}, {Name: "now", Align: right},
		{Name: "needed", Align: right}, {Name: "times as good", Align: right}, {Name: "remark"}}}
	for _, n := range list {
		switch {
		case n.Needed == nil:
			t.Add(n.Name, quantity(n.Now, n.Unit), "not enough alone", "",
				fmt.Sprintf("at most %s tokens/s", document.Sig3(*n.Ceiling)))
		case n.Beyond:
			t.Add(n.Name, quantity(n.Now, n.Unit), quantity(*n.Needed, n.Unit),
				document.Sig3(*n.Factor), "the worst that was tried is enough")
		default:
			t.Add(n.Name, quantity(n.Now, n.Unit), quantity(*n.Needed, n.Unit),
				document.Sig3(*n.Factor), "")
		}
	}
	return t
}

func sensitivityTable(list []answers.Sensitivity) *document.Table {
	t := &document.Table{Columns: []document.Column{{Name: "what"},
		{Name: "now", Align: document.Right},
		{Name: "elasticity", Align: document.Right}, {Name: "remark"}}}
	for _, s := range list {
		remark := ""
		if s.OneSided {
			remark = "difference to one side"
		}
		t.Add(s.Name, quantity(s.Now, s.Unit), document.Sig3(s.Elasticity), remark)
	}
	return t
}

func purchaseTable(list []answers.Purchase) *document.Table {
	right := document.Right
	t := &document.Table{Columns: []document.Column{{Name: "flash of"}, {Name: "engine"},
		{Name: "in flight", Align: right}, {Name: "tokens/s", Align: right},
		{Name: "times the present", Align: right}, {Name: "flash"}}}
	for _, p := range list {
		known := "bound"
		if p.Fitted {
			known = "fitted"
		}
		t.Add(p.Name, p.Engine, strconv.Itoa(p.Parallel), document.Sig3(p.TokensPerS),
			document.Sig3(p.Ratio), known)
	}
	return t
}
