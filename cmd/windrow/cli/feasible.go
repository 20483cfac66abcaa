package cli

import (
	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/decisions/memory"
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
			"memory; nothing that runs reaches them. Where no class runs, the exit code is 5.\n\n" +
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
		return err
	}
	machine, err := feasibleMachine(c, model.Bytes)
	if err != nil {
		return err
	}
	a, err := answers.AssessFeasibility(model, machine)
	if err != nil {
		return err
	}
	return e.putAnswer(c, a.Document(), a.No())
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
	if m.Device, err = devicemodels.Find(c.Context, name); err != nil {
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
