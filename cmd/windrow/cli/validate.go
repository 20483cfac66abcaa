package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/cmd/windrow/report"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/replay/validate"
	"github.com/windrow-sim/windrow/traces/compare"
)

func validateCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:      "validate",
		Usage:     "simulation against measurement: two Runs, or the built-in suites",
		ArgsUsage: "SIMULATED MEASURED",
		Description: "Compares two Runs of one trace: counters exactly, times by part, " +
			"percentile and rank. Exit code 5 when outside tolerance.\n" +
			"--suite emulated: 12 configurations on an emulated device. --suite throttled: the " +
			"same on this disk behind a block-I/O limit\n" +
			"(as root). --suite all: both. --suite ahead-emulated and ahead-throttled: 12 " +
			"configurations that prefetch. --suite fitted-emulated and fitted-throttled: the " +
			"device is probed first, and 24 configurations that\n" +
			"were not measured are predicted from the fit; the same from fio's JSON alone.\n\n" +
			examples("windrow replay -t tales.trace.arrow -m tales.flash.safetensors --window 4 "+
				"-o tales.run.arrow",
				"windrow validate tales.run.arrow tales.run.arrow --max-drift 100"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "suite", Usage: "`SUITE`: emulated, throttled, all, " +
				"ahead-emulated, ahead-throttled, fitted-emulated or fitted-throttled"},
			&cli.StringFlag{Name: "disk", Usage: "`DIR` on the disk to check, for the throttled " +
				"suite", DefaultText: "the temporary folder"},
			&cli.Float64Flag{Name: "tolerance", Value: compare.DefaultTolerance().TokensPerS,
				Usage: "largest error of tokens/s in `PERCENT`"},
			defaulting(shared("max-drift"), compare.DefaultMaxDrift),
			&cli.DurationFlag{Name: "probe-budget", Usage: "time for the probe of a fitted " +
				"suite `DURATION`", DefaultText: "1m0s"},
			&cli.StringSliceFlag{Name: "fio-json", Usage: "`FILE` that fio wrote about the same " +
				"device, for a fitted suite"},
			&cli.StringFlag{Name: "keep-devices", Usage: "write the device models of a fitted " +
				"suite to `DIR`"},
			shared("skip"),
			shared("seed"),
		},
		Action: e.validate,
	}
}

func (e *env) validate(c *cli.Context) error {
	if suite := c.String("suite"); suite != "" {
		for _, name := range []string{"skip", "max-drift"} {
			if c.IsSet(name) {
				return usageError("--%s is for two runs, not for a suite", name)
			}
		}
		if c.NArg() > 0 {
			return usageError("a suite makes its own runs; leave %q out", c.Args().First())
		}
		if fittedSuites()[suite] != nil {
			return e.validateFitted(c, suite)
		}
		return e.validateSuites(c, suite)
	}
	if err := needArgs(c, 2, "a simulated and a measured run"); err != nil {
		return err
	}
	runs, err := readRuns(c.Context, c.Args().Slice())
	if err != nil {
		return err
	}
	tolerance := compare.DefaultTolerance()
	tolerance.TokensPerS = c.Float64("tolerance")
	comparison, err := compare.Compare(runs[0], runs[1], compare.Options{SkipTokens: c.Int("skip"),
		Tolerance: tolerance, MaxDrift: c.Float64("max-drift")})
	if err != nil {
		return usageError("%v", err)
	}
	if err := e.putRuns(c, &report.Data{
		Name: "validate", Title: "windrow validate", Comparison: comparison,
		Runs: []report.LabeledRun{{Label: "first", Run: runs[0]}, {Label: "second", Run: runs[1]}},
	}); err != nil {
		return err
	}
	return verdictError(comparison.Verdict, comparison.Reasons)
}

// verdict is an error of kind errValidation that prints as its text alone.
type verdict struct{ text string }

func (v *verdict) Error() string        { return v.text }
func (v *verdict) Is(target error) bool { return target == errValidation }

// verdictError turns a verdict into the exit code of the verb.
func verdictError(v compare.Verdict, reasons []string) error {
	if v == compare.Pass {
		return nil
	}
	return &verdict{fmt.Sprintf("%s: %s", v, strings.Join(reasons, "; "))}
}

// validateSuites runs the built-in suites and prints one table each.
func (e *env) validateSuites(c *cli.Context, name string) error {
	suites := []string{name}
	switch name {
	case "all":
		suites = []string{"emulated", "throttled"}
	case "emulated", "throttled", "ahead-emulated", "ahead-throttled":
	default:
		return usageError("--suite %q: it is emulated, throttled, all, ahead-emulated, "+
			"ahead-throttled, fitted-emulated or fitted-throttled", name)
	}
	dir := c.String("disk")
	if dir == "" {
		dir = os.TempDir()
	}
	work, err := os.MkdirTemp(dir, "windrow-validate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	var results []*validate.SuiteResult
	for _, suite := range suites {
		opt := validate.SuiteOptions{Dir: filepath.Join(work, suite), Seed: c.Uint64("seed")}
		if c.IsSet("tolerance") {
			opt.Tolerance = c.Float64("tolerance")
		}
		result, runErr := e.runSuite(c.Context, suite, opt)
		if errors.Is(runErr, flashio.ErrEnvironment) && name == "all" {
			e.note("the %s suite is left out: %v", suite, runErr)
			continue
		}
		if result != nil {
			results = append(results, result)
		}
		if err = runErr; err != nil {
			break
		}
	}
	if len(results) > 0 {
		err = errors.Join(err, e.put(c, validate.SuitesDocument(results)))
	}
	if err != nil {
		return err
	}
	failed := 0
	for _, r := range results {
		failed += r.Failed
	}
	if failed > 0 {
		return &verdict{fmt.Sprintf("%d configurations are outside tolerance", failed)}
	}
	return nil
}

// runSuite runs one suite in a folder of its own. An interrupted one returns what it has with the
// error.
func (e *env) runSuite(ctx context.Context, name string,
	opt validate.SuiteOptions) (*validate.SuiteResult, error) {
	if err := os.Mkdir(opt.Dir, 0o755); err != nil {
		return nil, err
	}
	p := e.startProgress(name)
	defer p.done()
	opt.Progress = func(label string, done, total int) {
		p.label = name + " " + label + " (tokens)"
		p.update(done, total)
	}
	kind, ahead := strings.CutPrefix(name, "ahead-")
	opt.Prefetch = ahead
	if kind == "throttled" {
		return validate.Throttled(ctx, opt)
	}
	return validate.Emulated(ctx, opt)
}
