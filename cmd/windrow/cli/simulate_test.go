package cli

import (
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/traces"
)

// TestSimPrefetches: the flags reach the simulation, whose Run describes the prefetches.
func TestSimPrefetches(t *testing.T) {
	workspace(t)
	sim := func(flags string) *traces.Run {
		must(t, append(strings.Fields("sim -t tiny.trace.arrow -d m1-max --force -o a.run.arrow"),
			strings.Fields(flags)...)...)
		run, err := traces.ReadRun(t.Context(), "a.run.arrow")
		if err != nil {
			t.Fatal(err)
		}
		return run
	}
	demand := sim("")
	if again := sim("--schedule demand"); again.Meta.Prefetches != nil ||
		again.Meta.Totals != demand.Meta.Totals || strings.Contains(string(again.Meta.Config),
		"schedule") {
		t.Errorf("--schedule demand is not the default: %+v", again.Meta)
	}
	for _, c := range []struct{ flags, config string }{
		{"--schedule lookahead",
			`"schedule":{"kind":"lookahead","dense":0,"recall":1,"false_positives":0}`},
		{"--schedule lookahead --recall 0.9 --overfetch 0.02 --dense-prefix 1",
			`"schedule":{"kind":"lookahead","dense":1,"recall":0.9,"false_positives":0.02}`},
		{"--schedule lookahead --recall trace",
			`"schedule":{"kind":"lookahead","dense":0,"recall":0,"false_positives":0,"traced":true}`},
		{"--schedule token --staging 1MiB --wait layer",
			`"schedule":{"kind":"token","dense":1,"staging":1048576,"recall":1,"false_positives":0,"wait":"layer"}`},
	} {
		run := sim(c.flags)
		if run.Meta.Prefetches == nil || run.Meta.Prefetches.Bytes == 0 ||
			!strings.Contains(string(run.Meta.Config), c.config) {
			t.Errorf("%s: %+v, %s", c.flags, run.Meta.Prefetches, run.Meta.Config)
		}
	}
}

func TestSimRefusesSchedules(t *testing.T) {
	workspace(t)
	for flags, say := range map[string]string{
		"--schedule tomorrow":                                 "demand, lookahead and token",
		"--recall 0.9":                                        "add --schedule lookahead",
		"--schedule demand --staging 1MiB":                    "add --schedule lookahead",
		"--schedule lookahead --recall 1.5":                   "from 0 to 1",
		"--schedule lookahead --recall some":                  "or trace",
		"--schedule lookahead --recall nan":                   "from 0 to 1",
		"--schedule lookahead --overfetch 2":                  "from 0 to 1",
		"--schedule token --dense-prefix 0":                   "give 1 or more",
		"--schedule token --dense-prefix 3":                   "the model has 2",
		"--schedule token --staging much":                     "--staging",
		"--schedule token --staging 16B":                      "at least",
		"--schedule token --wait never":                       "token and layer",
		"--schedule lookahead --wait layer":                   "--schedule token",
		"--schedule lookahead --recall trace --predicted":     "recall of 1",
		"--schedule lookahead --recall trace --overfetch 0.1": "leave one out",
	} {
		o := command(append(strings.Fields("sim -t tiny.trace.arrow -d m1-max"),
			strings.Fields(flags)...)...)
		if o.code != exitUsage || o.stdout != "" || !strings.Contains(o.stderr, say) {
			t.Errorf("%s: exit %d, %q; want a usage error that says %q", flags, o.code, o.stderr,
				say)
		}
	}
}
