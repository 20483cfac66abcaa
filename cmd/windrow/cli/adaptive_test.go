package cli

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/sim/adaptive"
)

func TestAdaptive(t *testing.T) {
	workspace(t)
	args := []string{"adaptive", "-t", "tiny.trace.arrow", "-d", "m1-max", "--predicted", "--skip",
		"0", "--hysteresis", "1"}
	text := must(t, append(args, "--dram-over-time", "0:90%,2:64%,4:90%", "--json", "-o",
		"w.jsonl")...)
	doc := resultOf[adaptive.Result](t, text)
	if len(doc.Outcomes) != 4 || len(doc.Phases) != 3 || doc.Phases[1].Tokens != 2 {
		t.Fatalf("%s", text)
	}
	for _, o := range doc.Outcomes {
		if o.Above != 0 || o.Memory > doc.Phases[0].Budget || o.TokensPerS <= 0 {
			t.Errorf("%+v", o)
		}
	}
	if a, static := doc.Outcomes[0], doc.Outcomes[2]; a.Loads >= static.Loads ||
		a.EvictedEarly == 0 ||
		static.OverStatic != 1 || static.Changes != 0 {
		t.Errorf("adaptive %+v, static %+v", a, static)
	}
	lines, err := os.ReadFile("w.jsonl")
	if err != nil || strings.Count(string(lines), "\n") != 4*6 || !strings.Contains(string(lines),
		`"strategy":"oracle","token":5,`) {
		t.Errorf("%v\n%s", err, lines)
	}
	// The same budget as a file, and the table.
	write(t, "budget.csv", "from,budget\n0,90%\n2,64%\n4,90%\n")
	again := resultOf[adaptive.Result](t, must(t, append(args, "--dram-over-time", "budget.csv",
		"--json")...))
	if !reflect.DeepEqual(again, doc) {
		t.Errorf("from a file:\n%+v\nfrom a flag:\n%+v", again, doc)
	}
	saysAll(t, must(t, append(args, "--dram-over-time", "budget.csv", "-o", "w.csv")...),
		"with the adaptive window; with the static one ", "from token", "P99/P50", "interval",
		"loads/static", "adaptive", "fraction", "static", "oracle")
	if rows, err := os.ReadFile("w.csv"); err != nil || strings.Count(string(rows), "\n") != 1+4*6 {
		t.Errorf("%v\n%s", err, rows)
	}
}

// A budget below the floor is an answer, with a document and without a file of windows.
func TestAdaptiveBelowTheFloor(t *testing.T) {
	workspace(t)
	line := []string{"adaptive", "-t", "tiny.trace.arrow", "-d", "m1-max", "--skip", "0",
		"--dram-over-time", "1MiB", "-o", "w.csv"}
	o := command(line...)
	if o.code != exitValidation || !strings.Contains(o.stderr,
		"the budget of 1.00 MiB is below the floor of 682 MiB") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	saysAll(t, o.stdout, "Does not fit", "embeddings")
	if _, err := os.Stat("w.csv"); err == nil {
		t.Error("there is a file of windows")
	}
}

func TestAdaptiveRefusals(t *testing.T) {
	workspace(t)
	write(t, "bad.csv", "0,6GiB\nlater,3GiB\n")
	const start = "adaptive -t tiny.trace.arrow -d m1-max --skip 0 "
	for line, says := range map[string]string{
		start + "--dram-over-time 1GiB,2GiB": "is not FROM:SIZE",
		start + "--dram-over-time 5:1GiB":    "the first budget must begin at 0",
		start + "--dram-over-time 0:1GiB,1s:2GiB": "tokens and times " +
			"are mixed",
		start + "--dram-over-time 90% --min-window 5 --max-window 4": "a window of 5 to 4 " +
			"tokens",
		start + "--dram-over-time 90% --max-window 257": "256 are possible",
		start + "--dram-over-time 90% --hysteresis 0":   "at least 1 is needed",
		start + "--dram-over-time 90% --fraction 2":     "a fraction of 2",
		start + "--dram-over-time 90% --min-window -1":  "--min-window -1",
		start + "--dram-over-time 90% --skip 6": "no sequence is " +
			"longer than the 6 tokens",
		start + "--dram-over-time 90% -o w.txt": "w.txt: the name " +
			"must end in .csv",
		start + "--dram-over-time 90% --io abacus": "--io abacus",
		"adaptive -t tiny.trace.arrow -d m1-max": "adaptive needs " +
			"--dram-over-time",
		"adaptive -t tales.trace.arrow -d m1-max --dram-over-time 90% --predicted": "holds no predicted " +
			"masks",
	} {
		if o := command(words(t, line)...); o.code != exitUsage || o.stdout != "" ||
			!strings.Contains(o.stderr, says) {
			t.Errorf("%s: exit %d, %q, want %q", line, o.code, o.stderr, says)
		}
	}
	for line, says := range map[string]string{
		start + "--dram-over-time bad.csv":                           "bad.csv: line 2: ",
		start + "--dram-over-time none.csv":                          "none.csv",
		"adaptive -t cut.trace.arrow -d m1-max --dram-over-time 90%": "cut.trace.arrow",
	} {
		if o := command(words(t, line)...); o.code != exitInput || o.stdout != "" ||
			!strings.Contains(o.stderr, says) {
			t.Errorf("%s: exit %d, %q, want %q", line, o.code, o.stderr, says)
		}
	}
}
