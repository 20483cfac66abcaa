package cli

import (
	"math"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/sim/speculative"
	"github.com/windrow-sim/windrow/traces"
)

func TestSpeculate(t *testing.T) {
	workspace(t)
	args := []string{"speculate", "-t", "tiny.trace.arrow", "-d", "m1-max", "--window", "1",
		"--lambda", "1", "--most", "2", "--acceptance", "1"}
	text := must(t, append(args, "--skip", "0", "--json")...)
	doc := resultOf[speculative.Result](t, text)
	// Four generated tokens are two verifications of two, or one of three.
	if len(doc.Rows) != 2 || doc.Rows[0].Verifications != 2 || doc.Rows[1].Verifications != 1 ||
		doc.Asked.Tokens != 2 || doc.Best == 0 {
		t.Fatalf("%s", text)
	}
	// Without drafts a token takes what it takes in a simulation of the same window.
	must(t, "sim", "-t", "tiny.trace.arrow", "-d", "m1-max", "--window", "1", "-o",
		"plain.run.arrow")
	run, err := traces.ReadRun(t.Context(), "plain.run.arrow")
	if err != nil {
		t.Fatal(err)
	}
	wall := 0.0
	for _, row := range run.Rows {
		if row.Phase == traces.Decode {
			wall += float64(row.Dur)
		}
	}
	if math.Abs(float64(doc.Plain.Total)-wall/4) > 3 {
		t.Errorf("%v without drafts, sim says %g ns", doc.Plain.Total, wall/4)
	}
	if e := doc.Plain.Estimate; e.Low == nil || !(*e.Low < e.Value && e.Value < *e.High) {
		t.Errorf("%+v", e)
	}
	saysAll(t, must(t, append(args, "--draft-time", "1ms", "--drawn")...),
		"acceptance: 1.00, drawn with seed 42", "drafting: 1.00 ms for a token", "Break-even is",
		"Where the time of a token goes", "fastest: ")
}

func TestSpeculateRefusals(t *testing.T) {
	workspace(t)
	const start = "speculate -t tiny.trace.arrow -d m1-max --window 1 --most 0 "
	for line, says := range map[string]string{
		start + "--lambda 65": "65 drafted tokens",
		start + "--lambda 4": "no sequence has 5 generated " +
			"tokens",
		start + "--lambda 1 --acceptance 1.1":                  "acceptance 1.1",
		start + "--lambda 1 --draft-time 5":                    `--draft-time "5"`,
		start + "--lambda 1 --draft-time 9999h":                `--draft-time "9999h"`,
		start + "--lambda 1 --draft-ratio -1":                  "--draft-ratio -1",
		start + "--lambda 1 --draft-time 1ms --draft-ratio 1":  "give one of them",
		start + "--lambda 1 --skip -1":                         "--skip -1",
		start + "--lambda 1 --window 5000":                     "--window 5000: at most 4096",
		start + "--lambda 1 --window -1":                       "--window -1",
		start + "--lambda 1 --io abacus":                       "--io abacus",
		"speculate -t tales.trace.arrow -d m1-max --predicted": "holds no predicted masks",
	} {
		if o := command(words(t, line)...); o.code != exitUsage || o.stdout != "" ||
			!strings.Contains(o.stderr, says) {
			t.Errorf("%s: exit %d, %q, want %q", line, o.code, o.stderr, says)
		}
	}
	if o := command("speculate", "-t", "cut.trace.arrow", "-d", "m1-max"); o.code != exitInput {
		t.Errorf("a damaged trace: exit %d, %q", o.code, o.stderr)
	}
}
