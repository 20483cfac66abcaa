package cli

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/internal/output"
)

// check wraps the action of a verb: required flags, arguments where there are none to take, and
// numbers below zero are refused before any work. The library itself would print the whole help to
// stdout for a missing flag and end with another exit code, and says nothing of the others.
func (e *env) check(c *cli.Command, path string) {
	required := takeRequired(c.Flags)
	action := c.Action
	c.Action = func(ctx *cli.Context) error {
		for _, name := range required {
			if !ctx.IsSet(name) {
				return usageError("%s needs --%s; see \"%s --help\"", verb(path), name, path)
			}
		}
		if err := checkFormat(ctx); err != nil {
			return err
		}
		if c.ArgsUsage == "" {
			if err := needArgs(ctx, 0, "no arguments"); err != nil {
				return err
			}
		}
		for _, f := range c.Flags {
			if name := f.Names()[0]; belowZero(ctx, f, name) {
				return usageError("%s %v: it must be a finite number and not below 0",
					dashed(name), ctx.Value(name))
			}
		}
		defer e.releaseClaims()
		return explainKind(ctx, action(ctx))
	}
}

// dashed writes a flag as one types it.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// takeRequired returns the names of the required flags and relieves the library of them.
func takeRequired(flags []cli.Flag) []string {
	var names []string
	for _, f := range flags {
		if s, ok := f.(*cli.StringFlag); ok && s.Required {
			names = append(names, s.Name)
			s.Required = false
		}
	}
	return names
}

// belowZero reports whether a number is negative, or is none: no flag of windrow means anything
// then.
func belowZero(c *cli.Context, f cli.Flag, name string) bool {
	switch f.(type) {
	case *cli.IntFlag:
		return c.Int(name) < 0
	case *cli.DurationFlag:
		return c.Duration(name) < 0
	case *cli.Float64Flag:
		v := c.Float64(name)
		return !(v >= 0) || math.IsInf(v, 0)
	}
	return false
}

// claim reserves the name of a result file until the verb ends. It refuses a file that cannot be
// written, that exists, or that another process writes. The name must end in suffix, which may be
// empty.
func (e *env) claim(c *cli.Context, path, suffix string) error {
	if err := checkOutput(path, suffix); err != nil {
		return err
	}
	return e.claimFile(path, c.Bool("force") || c.Bool("resume"))
}

// claimFlag claims the file that a flag names, if it is given.
func (e *env) claimFlag(c *cli.Context, flag, suffix string) error {
	if !c.IsSet(flag) {
		return nil
	}
	return e.claim(c, c.String(flag), suffix)
}

// claimFile claims a file, which may be replaced or not.
func (e *env) claimFile(path string, replace bool) error {
	release, stale, err := output.Claim(path, replace)
	if errors.Is(err, output.ErrExists) {
		return usageError("%s is there already; write to another name, or say --force to replace "+
			"it", path)
	}
	if err != nil {
		return err
	}
	e.claims = append(e.claims, release)
	for _, name := range stale {
		e.note("removed %s, which a process left that was stopped", name)
	}
	return nil
}

// releaseClaims gives up the claims that nothing was written to.
func (e *env) releaseClaims() {
	for _, release := range e.claims {
		release()
	}
	e.claims = nil
}

// checkOutput refuses a name that nothing could be written to.
func checkOutput(path, suffix string) error {
	if path == "" {
		return usageError("the name of the file to write is empty")
	}
	if !strings.HasSuffix(path, suffix) {
		return usageError("%s: the name must end in %s", path, suffix)
	}
	for _, manifest := range []string{".trace.json", ".run.json"} {
		if strings.HasSuffix(path, manifest) {
			return usageError("%s: names in %s belong to traces and runs, which need theirs; "+
				"take another", path, manifest)
		}
	}
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return usageError("%s: there is no folder %s to write to", path, dir)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return usageError("%s is a folder; name a file", path)
	}
	if !writable(dir) {
		return usageError("%s: no permission to write to the folder %s", path, dir)
	}
	return nil
}

// Endings of the files that windrow writes.
const (
	traceSuffix = ".trace.arrow"
	runSuffix   = ".run.arrow"
)
