package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/cmd/windrow/report"
	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
)

func traceFlag() *cli.StringFlag {
	return &cli.StringFlag{Name: "trace", Aliases: []string{"t"}, Required: true,
		Usage: "`TRACE` to follow (*.trace.arrow)"}
}

// outputFlags are those of verbs that make one Run.
func outputFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "out", Aliases: []string{"o"},
			Usage: "also write the whole `RUN` (*.run.arrow and *.run.json)"},
		&cli.IntFlag{Name: "max-tokens", Usage: "stop after `N` tokens",
			DefaultText: "the whole trace"},
	}
}

func simCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:  "sim",
		Usage: "predict how a trace runs on a device",
		Description: "The device is a *.device.yaml from probe or the name of a preset (windrow " +
			"device list). With --model the layout is the image's;\n" +
			"without it, units lie densely. Residency and requests are decided by the engine's " +
			"own code; only time is modelled.\n" +
			"Every prediction carries an interval that holds nine of ten results, and says " +
			"whether it is measured, interpolated, extrapolated or a bound.\n\n" +
			examples("windrow sim -t opt.trace.arrow -d m1-max --predicted",
				"windrow sim -t opt.trace.arrow -d m1-max --predicted --window 8 --parallel 64 "+
					"-o opt.run.arrow",
				"windrow sim -t opt.trace.arrow -d m1-max --predicted --policy lru:2000",
				"windrow sim -t opt.trace.arrow -d m1-max --predicted --schedule lookahead "+
					"--recall 0.9 --false-positives 0.02",
				"windrow sim -t opt.trace.arrow -d m1-max --predicted --policy delta:2000 "+
					"--schedule token --dense-prefix 2 --staging 64MiB"),
		Flags: append(append([]cli.Flag{
			traceFlag(),
			&cli.StringFlag{Name: "device", Aliases: []string{"d"}, Required: true,
				Usage: "`DEVICE` file or preset"},
			&cli.StringFlag{Name: "model", Aliases: []string{"m"},
				Usage: "flash image `IMG` whose layout to use"},
			&cli.BoolFlag{Name: "predicted", Usage: "load by the predicted masks instead of the " +
				"true ones"},
			&cli.IntFlag{Name: "predictor-rank", Usage: "charge a low-rank predictor of inner " +
				"dimension `R` for the predicted masks", DefaultText: "masks cost nothing"},
			&cli.StringFlag{Name: "policy", Usage: "keep rows by `POLICY` in place of a window: " +
				"window:TOKENS,capacity:N, lru:N, lfu:N, delta:N, hot:N+M, pages:N,ahead:M, " +
				"belady:N, hybrid:N, cyclic:N, tensors:LAYERS, all or none; N rows per layer, " +
				"or a size for all layers (lru:1GiB)"},
			simBackendFlag(),
			&cli.BoolFlag{Name: "observed", Usage: "with --backend cuda: wait for the GPU after " +
				"every part, as replay does to time it"},
			&cli.StringFlag{Name: "align", Usage: "round requests to `SIZE`; 1B for buffered " +
				"reads (default: the device's alignment)"},
		}, append(readAheadFlags(), flashFlags()...)...), outputFlags()...),
		Action: e.simulate,
	}
}

// readAheadFlags say when reads are submitted.
func readAheadFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "schedule", Value: "demand",
			Usage: "submit reads by `SCHEDULE`: demand (a layer's, after its attention), " +
				"lookahead (the next layer's, while one computes) " +
				"or token (all layers' at once after layer 0, in the background)"},
		&cli.StringFlag{Name: "recall", Usage: "read ahead this `SHARE` of the needed units, 0 " +
			"to 1, or what the trace's predicted masks name (trace); the rest is read on demand",
			DefaultText: "1"},
		&cli.Float64Flag{Name: "false-positives", Usage: "read ahead this `SHARE` of the other " +
			"units too, for nothing", DefaultText: "0"},
		&cli.IntFlag{Name: "dense-prefix", Usage: "keep all units of the first `N` layers in " +
			"memory and multiply with all of them", DefaultText: "1 with --schedule token, else 0"},
		&cli.StringFlag{Name: "staging", Usage: "read ahead into a buffer of `SIZE`: while the " +
			"rows of one half are moved to their places the other is read; or unlimited: all at " +
			"once", DefaultText: "the largest layer's reads"},
		&cli.StringFlag{Name: "wait", Usage: "with --schedule token, layers wait for the reads " +
			"of the whole token or of their own: `WHAT` is token or layer", DefaultText: "token"},
	}
}

// scheduleSpec reads --schedule, --dense-prefix and --staging.
func scheduleSpec(c *cli.Context) (s schedule.Spec, err error) {
	if s.Kind, err = schedule.Parse(c.String("schedule")); err != nil {
		return s, usageError("--schedule: %v", err)
	}
	if s.Kind == schedule.Demand {
		for _, name := range []string{"recall", "false-positives", "dense-prefix", "staging",
			"wait"} {
			if c.IsSet(name) {
				return s, usageError("--%s: nothing is read ahead on demand; add --schedule "+
					"lookahead or --schedule token", name)
			}
		}
		return s, nil
	}
	if s.Dense = c.Int("dense-prefix"); s.Kind == schedule.Token && !c.IsSet("dense-prefix") {
		s.Dense = 1
	}
	if s.Kind == schedule.Token && s.Dense < 1 {
		return s, usageError("--dense-prefix %d: --schedule token predicts from layer 0, which "+
			"must be dense; give 1 or more", s.Dense)
	}
	if s.Staging, err = stagingOf(c); err != nil {
		return s, err
	}
	return s, nil
}

// stagingOf reads --staging; 0 when it is not given.
func stagingOf(c *cli.Context) (size units.Bytes, err error) {
	text := c.String("staging")
	switch text {
	case "":
		return 0, nil
	case "unlimited":
		return schedule.Unlimited, nil
	}
	if size, err = units.ParseBytes(text); err != nil || size < 1 {
		return 0, usageError("--staging %q: a size of 1B or more is wanted; or, in sim, unlimited",
			text)
	}
	return size, nil
}

// readAheadOf reads the flags of readAheadFlags.
func readAheadOf(c *cli.Context) (s sim.Schedule, err error) {
	if s.Spec, err = scheduleSpec(c); err != nil || s.Kind == schedule.Demand {
		return s, err
	}
	switch text := c.String("recall"); text {
	case "":
		s.Recall = 1
	case "trace":
		if s.Traced = true; c.IsSet("false-positives") {
			return s, usageError("--recall trace and --false-positives: the trace's predicted " +
				"masks say what is read for nothing; leave one out")
		}
	default:
		if s.Recall, err = strconv.ParseFloat(text, 64); err != nil || !(s.Recall >= 0 &&
			s.Recall <= 1) {
			return s, usageError("--recall %q: a share from 0 to 1 is wanted, or trace", text)
		}
	}
	if s.FalsePositives = c.Float64("false-positives"); !(s.FalsePositives >= 0 &&
		s.FalsePositives <= 1) {
		return s, usageError("--false-positives %g: a share from 0 to 1 is wanted",
			s.FalsePositives)
	}
	if s.Wait, err = sim.ParseWait(c.String("wait")); err != nil {
		return s, usageError("--wait: %v", err)
	}
	if s.Kind == schedule.LookAhead && c.IsSet("wait") {
		return s, usageError("--wait: with --schedule lookahead every layer waits for its own " +
			"reads; leave it out, or take --schedule token")
	}
	return s, nil
}

func (e *env) simulate(c *cli.Context) error {
	if err := checkRunOutput(c); err != nil {
		return err
	}
	device, err := loadDevice(c.String("device"))
	if err != nil {
		return err
	}
	tr, err := e.openTrace(c.String("trace"))
	if err != nil {
		return err
	}
	defer tr.Close()
	cfg := sim.Config{Predicted: c.Bool("predicted"), MaxTokens: c.Int("max-tokens"),
		PredictorRank: c.Int("predictor-rank"), Device: device}
	if cfg.Policy, err = residency(c, tr.Header()); err != nil {
		return err
	}
	if cfg.Backend, err = simBackend(c, device); err != nil {
		return err
	}
	cfg.Observed = c.Bool("observed")
	if cfg.Layout, err = layoutOptions(c); err != nil {
		return err
	}
	if cfg.Schedule, err = readAheadOf(c); err != nil {
		return err
	}
	if s := c.String("align"); s != "" {
		if cfg.Layout.Align, err = units.ParseBytes(s); err != nil || cfg.Layout.Align < 1 {
			return usageError("--align %q: a size of 1B or more is wanted", s)
		}
	}
	if cfg.Engine, err = engineOf(device, c.String("io")); err != nil {
		return err
	}
	if cfg.Parallel = c.Int("parallel"); cfg.Parallel == 0 {
		cfg.Parallel = ioengine.DefaultParallel(cfg.Engine)
	}
	if path := c.String("model"); path != "" {
		image, err := model.OpenImage(path)
		if err != nil {
			return err
		}
		defer image.Close()
		cfg.Geometry = image.Geometry()
	} else {
		cfg.Geometry = layout.Uniform(tr.Header().Layers, tr.Header().Units, tr.Header().UnitBytes)
	}
	run, err := sim.Run(tr, cfg)
	if err != nil {
		return err
	}
	headroom, err := cfg.Headroom(tr)
	if err != nil {
		return err
	}
	run.Meta.Headroom = &headroom
	run.Meta.Tool, run.Meta.Trace, run.Meta.TraceSHA256 = Tool, filepath.Base(c.String("trace")),
		tr.SHA256()
	return e.putRun(c, run, c.String("out"), device.Flash.LinkRate)
}

func simBackendFlag() *cli.StringFlag {
	return &cli.StringFlag{Name: "backend", Value: "cpu",
		Usage: "compute on `WHERE`: cpu, or cuda for the GPU of the device model (windrow probe " +
			"--backend cuda)"}
}

// simBackend reads --backend of verbs that simulate.
func simBackend(c *cli.Context, device *devicemodels.Device) (sim.Backend, error) {
	backend, err := sim.ParseBackend(c.String("backend"))
	if err != nil {
		return "", usageError("--backend: %v", err)
	}
	if backend == sim.OnCUDA && device.GPU == nil {
		return "", usageError("--backend cuda: the device model %s has no GPU; run \"windrow "+
			"probe --backend cuda -o DEVICE\" on that machine", device.Name)
	}
	return backend, nil
}

// residency reads --policy, or else --window.
func residency(c *cli.Context, head *traces.Header) (spec policy.Spec, err error) {
	text := c.String("policy")
	switch {
	case text == "":
		return policy.SlidingWindow(c.Int("window")), nil
	case c.IsSet("window"):
		return spec, usageError("--policy %s and --window %d: give one of them", text,
			c.Int("window"))
	}
	if spec, err = policy.ParseBudget(text, head.UnitBytes, head.Layers); err != nil {
		return spec, usageError("--policy: %v", err)
	}
	return spec, nil
}

// loadDevice reads a device file, or a preset when there is no such file and no extension.
func loadDevice(name string) (*devicemodels.Device, error) {
	if !strings.HasSuffix(name, ".yaml") && slices.Contains(devicemodels.Presets(), name) {
		return devicemodels.Preset(name)
	}
	info, err := os.Stat(name)
	if err == nil && info.IsDir() {
		return nil, inputError("%s is a folder; name a device file or a preset (windrow device "+
			"list)", name)
	}
	if err != nil && !strings.ContainsAny(name, "./\\") {
		return nil, usageError("device %q is neither a file nor a preset; presets are %s", name,
			strings.Join(devicemodels.Presets(), ", "))
	}
	return devicemodels.Load(name)
}

// engineOf picks the I/O engine of a device model: the named one, or for auto the first preferred
// one that the model knows, else any.
func engineOf(d *devicemodels.Device, name string) (string, error) {
	var known []string
	for n := range d.Flash.Engines {
		known = append(known, n)
	}
	slices.Sort(known)
	if name != ioengine.Auto {
		if slices.Contains(known, name) {
			return name, nil
		}
		return "", usageError("--io %s: the device model %s has costs for %s only", name, d.Name,
			strings.Join(known, ", "))
	}
	for _, n := range ioengine.Preferred() {
		if slices.Contains(known, n) {
			return n, nil
		}
	}
	if len(known) == 0 {
		return "", usageError("the device model %s names no I/O engine", d.Name)
	}
	return known[0], nil
}

// checkRunOutput checks the flags of outputFlags before the work.
func checkRunOutput(c *cli.Context) error {
	if c.IsSet("out") {
		return checkOutput(c.String("out"), runSuffix)
	}
	return nil
}

// putRun prints the Run in the format of the flags and writes it to out, unless that is empty.
func (e *env) putRun(c *cli.Context, run *traces.Run, out string, rate units.Rate) error {
	if out != "" {
		if err := traces.WriteRun(out, run); err != nil {
			return err
		}
	}
	label := "measured"
	if run.Meta.Simulated {
		label = "simulated"
	} else if run.Meta.Emulated {
		label = "emulated"
	}
	return e.putRuns(c, &report.Data{
		Name: c.Command.Name, Title: "windrow " + c.Command.Name, FlashRate: rate,
		Facts: runFacts(run), Runs: []report.LabeledRun{{Label: label, Run: run}},
	})
}

// runFacts are the setting of a run.
func runFacts(run *traces.Run) []document.Fact {
	return []document.Fact{{Key: "model", Value: run.Meta.Model},
		{Key: "device", Value: run.Meta.Device}, {Key: "trace", Value: run.Meta.Trace}}
}
