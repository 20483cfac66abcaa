package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/replay/validate"
)

type fittedSuite func(context.Context, validate.FittedOptions) (*validate.FittedResult, error)

// fittedSuites are the suites that fit their device models themselves.
func fittedSuites() map[string]fittedSuite {
	return map[string]fittedSuite{"fitted-emulated": validate.FittedEmulated,
		"fitted-throttled": validate.FittedThrottled}
}

// validateFitted runs one of them.
func (e *env) validateFitted(c *cli.Context, name string) error {
	if keep := c.String("keep-devices"); keep != "" {
		if err := e.claimDevices(c, keep); err != nil {
			return err
		}
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
		err = e.put(c, r.Document())
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

// keptDevice is the file of a fitted model in the folder of --keep-devices.
func keptDevice(dir, from string) string { return filepath.Join(dir, from+deviceSuffix) }

// claimDevices makes that folder and claims its files before the suite runs.
func (e *env) claimDevices(c *cli.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for _, from := range []string{"probe", "fio"} {
		if err := e.claim(c, keptDevice(dir, from), deviceSuffix); err != nil {
			return err
		}
	}
	return nil
}

// keepDevices writes the fitted models to a folder.
func keepDevices(dir string, r *validate.FittedResult) error {
	for _, d := range []struct {
		name   string
		device *devicemodels.Device
	}{{"probe", r.Device}, {"fio", r.FioDevice}} {
		if d.device == nil {
			continue
		}
		if err := devicemodels.Save(keptDevice(dir, d.name), d.device); err != nil {
			return err
		}
	}
	return nil
}
