package cli

import (
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
)

// simFlags are the flags of verbs that simulate a trace on a device; simConfig reads them. A study
// that cannot do what one of them asks for refuses it by name.
func simFlags() []cli.Flag {
	return with(take("trace!", "device!", "model", "verify", "predicted", "predictor-rank",
		"window", "policy",
		"backend", "observed", "max-tokens"), take(readingFlags...), take("align"),
		take(scheduleFlags...))
}

// simConfig reads simFlags for a trace. It is the one place that turns flags into a configuration
// of the simulator.
func (e *env) simConfig(c *cli.Context, head *traces.Header) (cfg sim.Config, err error) {
	cfg = sim.Config{Predicted: c.Bool("predicted"), PredictorRank: c.Int("predictor-rank"),
		MaxTokens: c.Int("max-tokens"), Observed: c.Bool("observed")}
	if n := cfg.PredictorRank; n > 1<<24 {
		return cfg, usageError("--predictor-rank %d: it is from 0 to %d", n, 1<<24)
	}
	if cfg.Predicted && !head.HasPredicted {
		return cfg, usageError("--predicted: %s holds no predicted masks", c.String("trace"))
	}
	if cfg.Device, err = devicemodels.Find(c.Context, c.String("device")); err != nil {
		return cfg, err
	}
	if err = onePolicy(c); err != nil {
		return cfg, err
	}
	if cfg.Policy, err = sim.Residency(c.String("policy"), c.Int("window"),
		head); err != nil {
		return cfg, err
	}
	if cfg.Backend, err = simBackend(c, cfg.Device); err != nil {
		return cfg, err
	}
	if cfg.Layout, err = layoutOptions(c); err != nil {
		return cfg, err
	}
	if text := c.String("align"); text != "" {
		if cfg.Layout.Align, err = units.ParseBytes(text); err != nil || cfg.Layout.Align < 1 {
			return cfg, usageError("--align %q: a size of 1B or more is wanted", text)
		}
	}
	if cfg.Schedule, err = scheduleOf(c); err != nil {
		return cfg, err
	}
	if cfg.Engine, err = cfg.Device.ReadEngine(c.String("io")); err != nil {
		return cfg, err
	}
	if cfg.Parallel = c.Int("parallel"); cfg.Parallel == 0 {
		cfg.Parallel = ioengine.DefaultParallel(cfg.Engine)
	}
	if path := c.String("model"); path != "" {
		image, err := e.openImage(c, path)
		if err != nil {
			return cfg, err
		}
		cfg.Geometry = image.Geometry()
		return cfg, image.Close()
	}
	return cfg, nil
}

// scheduleOf reads the flags of a schedule.
func scheduleOf(c *cli.Context) (s sim.Schedule, err error) {
	if s.Spec, err = scheduleSpec(c); err != nil || s.Kind == schedule.Demand {
		return s, err
	}
	switch text := c.String("recall"); text {
	case "":
		s.Recall = 1
	case "trace":
		if s.Traced = true; c.IsSet("overfetch") {
			return s, usageError("--recall trace and --overfetch: the trace's predicted masks " +
				"say what is prefetched in vain; leave one out")
		}
	default:
		s.Recall, err = strconv.ParseFloat(text, 64)
		if err != nil || !(s.Recall >= 0 && s.Recall <= 1) {
			return s, usageError("--recall %q: a share from 0 to 1 is wanted, or trace", text)
		}
	}
	if s.FalsePositives = c.Float64("overfetch"); !(s.FalsePositives >= 0 &&
		s.FalsePositives <= 1) {
		return s, usageError("--overfetch %g: a share from 0 to 1 is wanted", s.FalsePositives)
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

// scheduleSpec reads --schedule, --dense-prefix and --staging.
func scheduleSpec(c *cli.Context) (s schedule.Spec, err error) {
	if s.Kind, err = schedule.Parse(c.String("schedule")); err != nil {
		return s, usageError("--schedule: %v", err)
	}
	if s.Kind == schedule.Demand {
		for _, name := range scheduleFlags[1:] {
			if c.IsSet(name) {
				return s, usageError("--%s: nothing is prefetched on demand; add --schedule "+
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

// onePolicy refuses --policy beside --window.
func onePolicy(c *cli.Context) error {
	if text := c.String("policy"); text != "" && c.IsSet("window") {
		return usageError("--policy %s and --window %d: give one of them", text, c.Int("window"))
	}
	return nil
}
