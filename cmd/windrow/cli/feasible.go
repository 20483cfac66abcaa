package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/cmd/windrow/report"
	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/energy"
	"github.com/windrow-sim/windrow/internal/decisions/memory"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim/answers"
)

func feasibleCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:  "feasible",
		Usage: "which classes of runtimes can run a model in a given memory at all, and why",
		Description: "From sizes alone, for the classes of runtimes in NeuroPrefetcher's study " +
			"of twenty systems: everything resident, offload to the host,\n" +
			"mapped files, placement tensor by tensor, and flash-resident with predicted rows. " +
			"--dram is what the operating system leaves to the\n" +
			"runtime. Without --vram it is one pool for CPU and accelerator, of which 1 GiB " +
			"must stay free for allocations.\n" +
			"With a device, the bounds on tokens per second are those of its flash and its " +
			"memory; nothing that runs reaches them.\n\n" +
			examples("windrow feasible --like mistral-7b-v0.1 -d jetson-orin-990pro --dram 11.9GiB",
				"windrow feasible --like mixtral-8x7b --precision q4_0 --dram 16GiB --vram 8GiB "+
					"--json"),
		Flags: []cli.Flag{
			shared("like"),
			defaulting(shared("device"), "verdicts only"),
			shared("dram"),
			&cli.StringFlag{Name: "vram", Usage: "memory of the accelerator's own, `SIZE`",
				DefaultText: "none: memory is unified"},
			defaulting(shared("context"), 2048),
			&cli.IntFlag{Name: "kv-bytes", Value: int(memory.KVElement),
				Usage: "`N` bytes for each number of a key or a value: 4 as in windrow's engine, " +
					"2 in most other runtimes"},
			&cli.StringFlag{Name: "precision", Value: answers.F16,
				Usage: "`PRECISION` of the weights: f16, q8_0 or q4_0"},
			shared("active"),
			shared("io"),
			shared("parallel"),
		},
		Action: e.feasible,
	}
}

func (e *env) feasible(c *cli.Context) error {
	_, info, done, err := e.lookup(c)
	if err != nil || done {
		return err
	}
	model, err := answers.FootprintLike(info.Name, c.String("precision"), c.Float64("active"))
	if err != nil {
		return feasibleError(err)
	}
	machine, err := feasibleMachine(c, model.Bytes)
	if err != nil {
		return err
	}
	a, err := answers.AssessFeasibility(model, machine)
	if err != nil {
		return feasibleError(err)
	}
	if c.Bool("json") {
		return printJSON(e.stdout, a)
	}
	return printFeasible(e.stdout, a)
}

// feasibleMachine reads the memory and the device.
func feasibleMachine(c *cli.Context, whole units.Bytes) (answers.Machine, error) {
	m := answers.Machine{Context: c.Int("context"), Parallel: c.Int("parallel"),
		KVElement: units.Bytes(c.Int("kv-bytes"))}
	if m.KVElement == 0 {
		return m, usageError("--kv-bytes 0: 1 to 8 are possible")
	}
	var err error
	if !c.IsSet("dram") {
		return m, usageError("feasible needs --dram, the memory that the runtime finds; see " +
			"\"windrow feasible --help\"")
	}
	if m.Memory, err = sizeOrShare(c, "dram", whole); err != nil {
		return m, err
	}
	if text := c.String("vram"); text != "" {
		if m.Accelerator, err = units.ParseBytes(text); err != nil || m.Accelerator <= 0 {
			return m, usageError("--vram %q: a size like 6GiB is wanted", text)
		}
	}
	if m.Parallel > maxParallel {
		return m, usageError("--parallel %d: at most %d", m.Parallel, maxParallel)
	}
	name := c.String("device")
	if name == "" {
		return m, nil
	}
	if m.Device, err = loadDevice(name); err != nil {
		return m, err
	}
	if m.Engine, err = m.Device.ReadEngine(c.String("io")); err != nil {
		return m, err
	}
	if m.Parallel == 0 {
		m.Parallel = ioengine.DefaultParallel(m.Engine)
	}
	return m, nil
}

// feasibleError makes a wrong command line of a question that has no answer.
func feasibleError(err error) error {
	if errors.Is(err, answers.ErrInput) {
		return usageError("%v", err)
	}
	return err
}

func printFeasible(w io.Writer, a *answers.Feasibility) error {
	m := &a.Model
	where := "unified memory"
	if !a.Machine.Unified() {
		where = "memory, " + document.IEC(a.Machine.Accelerator) + " of the accelerator's own"
	}
	fmt.Fprintf(w, "%s, %s: %s of weights, %s of them FFN; %d-bit KV "+
		"cache of %d positions %s; %s of %s\n",
		m.Name, m.DType, document.IEC(m.Bytes), document.IEC(m.FFN), 8*a.Machine.KVElement,
		a.Machine.Context, document.IEC(a.KV), document.IEC(a.Machine.Memory), where)
	if m.Needed > 0 {
		fmt.Fprintf(w, "rows that a token needs: %s %% of the FFN, %s %% new (%s)\n",
			document.Sig3(100*m.Needed), document.Sig3(100*m.Fresh), m.Origin)
	}
	t := &document.Table{Columns: []document.Column{{Name: "class"}, {Name: "such as"},
		{Name: "verdict"}}}
	if a.Device != "" {
		fmt.Fprintf(w, "bounds: %s\n", deviceLine(a.Machine.Device, a.Machine.Engine))
		t.Columns = append(t.Columns, document.Column{Name: "at most", Unit: "tokens/s",
			Align: document.Right}, document.Column{Name: "worst reads", Unit: "tokens/s",
			Align: document.Right})
	}
	reasons := ""
	for _, r := range a.Rows {
		cells := []string{r.Class, r.Systems, string(r.Verdict)}
		if a.Device != "" {
			cells = append(cells, boundText(&r, r.RateMost), boundText(&r, r.RateLeast))
		}
		t.Add(cells...)
		reasons += fmt.Sprintf("%s: %s\n", r.Class, r.Reason)
	}
	fmt.Fprintln(w)
	if err := report.TableText(w, t); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s", reasons)
	return err
}

// deviceLine names the device and what its rates rest on.
func deviceLine(d *devicemodels.Device, engine string) string {
	return fmt.Sprintf("%s, %s, reads of 1 MiB; worst reads: all pages of a mapped file, single "+
		"rows", d.Name, engine)
}

func boundText(r *answers.Runtime, rate float64) string {
	switch {
	case !r.Verdict.Runs():
		return "-"
	case rate == 0:
		return energy.NotKnown
	}
	return document.Sig3(rate)
}
