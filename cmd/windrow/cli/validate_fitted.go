package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/cmd/windrow/report"
	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/replay/validate"
	"github.com/windrow-sim/windrow/traces/compare"
)

type fittedSuite func(context.Context, validate.FittedOptions) (*validate.FittedResult, error)

// fittedSuites are the suites that fit their device models themselves.
func fittedSuites() map[string]fittedSuite {
	return map[string]fittedSuite{"fitted-emulated": validate.FittedEmulated,
		"fitted-throttled": validate.FittedThrottled}
}

// validateFitted runs one of them.
func (e *env) validateFitted(c *cli.Context, name string) error {
	dir := c.String("disk")
	if dir == "" {
		dir = os.TempDir()
	}
	work, err := os.MkdirTemp(dir, "windrow-validate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	opt := validate.FittedOptions{
		SuiteOptions: validate.SuiteOptions{Dir: work, Seed: c.Uint64("seed")},
		ProbeBudget:  c.Duration("probe-budget"), FioResults: c.StringSlice("fio-json"),
	}
	if c.IsSet("tolerance") {
		opt.Tolerance = c.Float64("tolerance")
	}
	p := e.startProgress(name)
	opt.Progress = func(label string, done, total int) {
		p.label = name + " " + label
		p.update(done, total)
	}
	r, runErr := fittedSuites()[name](c.Context, opt)
	p.done()
	if r != nil {
		if c.Bool("json") {
			err = printJSON(e.stdout, r)
		} else {
			err = e.printFitted(r)
		}
		if keep := c.String("keep-devices"); keep != "" && err == nil {
			err = keepDevices(keep, r)
		}
	}
	if err = errors.Join(runErr, err); err != nil {
		return err
	}
	if r.Failed > 0 {
		return &verdict{fmt.Sprintf("%d of %d configurations are outside tolerance", r.Failed,
			len(r.Outcomes))}
	}
	return nil
}

// keepDevices writes the fitted models to a folder.
func keepDevices(dir string, r *validate.FittedResult) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, d := range []struct {
		name   string
		device *devicemodels.Device
	}{{"probe", r.Device}, {"fio", r.FioDevice}} {
		if d.device == nil {
			continue
		}
		if err := devicemodels.Save(filepath.Join(dir, d.name+deviceSuffix), d.device); err != nil {
			return err
		}
	}
	return nil
}

// printFitted prints one line per configuration, and the sums.
func (e *env) printFitted(r *validate.FittedResult) error {
	right := document.Right
	t := &document.Table{Columns: []document.Column{
		{Name: "engine"}, {Name: "window", Align: right}, {Name: "depth", Align: right},
		{Name: "chunk", Align: right},
		{Name: r.Kind, Unit: "tokens/s", Align: right}, {Name: "predicted", Unit: "tokens/s",
			Align: right}, {Name: "interval", Align: right},
		{Name: "basis"}, {Name: "error", Unit: "%", Align: right}, {Name: "P99 error", Unit: "%",
			Align: right},
		{Name: "from fio", Unit: "%", Align: right}, {Name: "drift", Unit: "%", Align: right},
		{Name: "verdict"},
	}}
	for _, o := range r.Outcomes {
		c, fromFio, interval, basis := o.Comparison, "n/a", "n/a", ""
		if o.Fio != nil {
			fromFio = fmt.Sprintf("%+.2f", o.Fio.ErrorPercent)
		}
		if p := o.Simulated.Meta.Prediction; p != nil {
			basis = string(p.Basis)
			if p.TokensPerSLow != nil {
				interval = document.Sig3(*p.TokensPerSLow) + " to " +
					document.Sig3(*p.TokensPerSHigh)
			}
		}
		verdict := string(c.Verdict)
		if !c.CountersEqual || !c.BytesEqual {
			verdict = "counters DIFFER"
		}
		t.Add(o.Case.Engine, fmt.Sprint(o.Case.Policy.Window), fmt.Sprint(o.Case.Parallel),
			o.Case.Chunk.String(), document.Sig3(c.MeasuredTokensPerS),
			document.Sig3(c.SimulatedTokensPerS),
			interval, basis, fmt.Sprintf("%+.2f", c.ErrorPercent), percentileError(c, 99), fromFio,
			c.DriftPercent.String(), verdict)
	}
	fmt.Fprintf(e.stdout, "%s: %s\n\n", r.Name, r.What)
	if err := report.TableText(e.stdout, t); err != nil {
		return err
	}
	n := len(r.Outcomes)
	fmt.Fprintf(e.stdout, "\nmodel from the probe: mean |error| %s %%, worst %s %% (limit %g "+
		"%%), worst P99 %s %% (limit %g %%), %d of %d inside the stated interval\n",
		document.Sig3(r.Probe.MeanTokensPerS), document.Sig3(r.Probe.WorstTokensPerS),
		r.Tolerance.TokensPerS, document.Sig3(r.Probe.WorstP99), r.Tolerance.P99, r.Covered, n)
	if r.FioErrors != nil {
		fmt.Fprintf(e.stdout, "model from fio: mean |error| %s %%, worst %s %% (limit %g %%)\n",
			document.Sig3(r.FioErrors.MeanTokensPerS), document.Sig3(r.FioErrors.WorstTokensPerS),
			r.FioTolerance)
	} else {
		fmt.Fprintf(e.stdout, "no model from fio: %s\n", r.FioWhyNot)
	}
	noisy := 0
	for _, o := range r.Outcomes {
		if o.Comparison.Verdict == compare.Noisy {
			noisy++
		}
	}
	if noisy > 0 {
		fmt.Fprintf(e.stdout, "%d configurations have no verdict: the device moved while they "+
			"were measured\n", noisy)
	}
	if !r.Complete {
		fmt.Fprintf(e.stdout, "not whole: the suite was ended after %d configurations\n", n)
	}
	return nil
}
