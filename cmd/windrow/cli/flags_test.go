package cli

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// flagException is a flag whose named part differs from verb to verb, with the reason.
type flagException struct{ part, reason string }

// flagExceptions are the flags that do not have one usage text or one default everywhere.
var flagExceptions = map[string]flagException{
	"precision": {"usage", "each verb names the precisions that it knows"},
	"out":       {"usage", "what is written differs; the help names the kind of file"},
	"format":    {"usage", "Runs have two formats more: perfetto and go-bench"},
	"budget":    {"default", "the demo shows the loop, a probe makes a model to keep"},
	"chunks":    {"default", "a probe measures more sizes than a comparison draws"},
	"depths":    {"default", "a probe measures more depths than a comparison draws"},
	"io":        {"default", "a probe measures every engine that works here"},
	"max-drift": {"default", "a fit has a limit of its own"},
	"context":   {"default", "a class of runtimes has no trace to take it from"},
	"device":    {"default", "feasibility has verdicts without a device"},
	"skip":      {"default", "only studies that change the window leave tokens out by themselves"},
	"prefill-chunk": {"default", "a simulated server takes what servers take; evaluation has " +
		"only prompts"},
	"feature-kind":   {"default", "an imported predictor says what it was made for"},
	"k-max":          {"default", "training chooses it, running takes it from the file"},
	"like":           {"default", "the demo must be done in a minute"},
	"prompts":        {"default", "the demo brings its own"},
	"measure-tokens": {"default", "the demo measures one configuration, a calibration many"},
}

// eachFlag calls f for every flag of every verb, as the program defines them.
func eachFlag(f func(verb string, flag cli.Flag)) {
	var walk func(commands []*cli.Command, path string)
	walk = func(commands []*cli.Command, path string) {
		for _, c := range commands {
			full := path + c.Name
			walk(c.Subcommands, full+" ")
			if len(c.Subcommands) == 0 {
				for _, flag := range c.Flags {
					f(full, flag)
				}
			}
		}
	}
	walk(commandsOf(), "")
}

// TestOneFlagOneMeaning: a name has one type, one usage text, the same short names and one default
// on every verb, but for exceptions with a reason.
func TestOneFlagOneMeaning(t *testing.T) {
	type meaning struct{ verb, kind, usage, aliases, value string }
	first := map[string]meaning{}
	used := map[string]bool{}
	eachFlag(func(verb string, flag cli.Flag) {
		doc := flag.(cli.DocGenerationFlag)
		name := flag.Names()[0]
		now := meaning{verb, reflect.TypeOf(flag).String(), doc.GetUsage(),
			strings.Join(flag.Names()[1:], ","), fmt.Sprint(doc.GetValue(), "|",
				doc.GetDefaultText())}
		was, seen := first[name]
		if !seen {
			first[name] = now
			return
		}
		exception := flagExceptions[name]
		differ := func(part, a, b string) {
			if a == b {
				return
			}
			if exception.part == part {
				used[name] = true
				return
			}
			t.Errorf("--%s: the %s is %q on %s and %q on %s", name, part, a, was.verb, b, verb)
		}
		differ("type", was.kind, now.kind)
		differ("usage", was.usage, now.usage)
		differ("short name", was.aliases, now.aliases)
		differ("default", was.value, now.value)
	})
	for name, e := range flagExceptions {
		if !used[name] {
			t.Errorf("--%s is listed as an exception and is none", name)
		} else if e.reason == "" {
			t.Errorf("--%s is an exception without a reason", name)
		}
	}
}
