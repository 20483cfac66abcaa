package cli

import (
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/sim/answers"
)

// The table and the document say the same, and the document holds the verdicts of the library.
func TestFeasible(t *testing.T) {
	line := []string{"feasible", "--like", "Mistral-7B-v0.1", "-d", "jetson-orin-990pro", "--dram",
		"11.9GiB"}
	text, document := command(line...), command(append(line, "--json")...)
	if text.code != exitOK || document.code != exitOK {
		t.Fatalf("%+v, %+v", text, document)
	}
	a, rows := resultOf[answers.Feasibility](t, document.stdout), must(t, append(line, "--format",
		"csv")...)
	want := map[string]answers.Verdict{
		answers.ClassResident: answers.VerdictAllocFails,
		answers.ClassOffload:  answers.VerdictNoCapacity,
		answers.ClassMapped:   answers.VerdictPages,
		answers.ClassPlaced:   answers.VerdictAllDisk, answers.ClassFlash: answers.VerdictFits,
	}
	for _, r := range a.Rows {
		if r.Verdict != want[r.Class] {
			t.Errorf("%s: %s, want %s", r.Class, r.Verdict, want[r.Class])
		}
		saysAll(t, text.stdout, r.Class+": "+r.Reason)
		saysAll(t, rows, r.Class+",", string(r.Verdict))
	}
	if len(a.Rows) != len(want) || a.Device != "jetson-orin-990pro" || a.Machine.Context != 2048 ||
		!strings.Contains(rows, "llama.cpp, Ollama") {
		t.Errorf("%+v", a)
	}
	saysAll(t, text.stdout, "3 of 5 classes of runtimes run", "at most 18.5 tokens/s (bound)", "≤ 0.514")
	if plain := command("feasible", "--like", "opt-13b", "--dram", "8GiB"); plain.code != exitOK ||
		strings.Contains(plain.stdout, "tokens/s") {
		t.Errorf("without a device there are rates: %+v", plain)
	}
	if list := command("feasible", "--like", "list"); list.code != exitOK ||
		!strings.Contains(list.stdout, "Qwen3-30B-A3B\n") {
		t.Errorf("%+v", list)
	}
}

// Where nothing runs, that is the answer.
func TestNothingIsFeasible(t *testing.T) {
	o := command("feasible", "--like", "opt-13b", "--dram", "64MiB")
	if o.code != exitValidation || !strings.Contains(o.stderr,
		"no class of runtimes runs OPT-13B in 64.0 MiB") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	saysAll(t, o.stdout, "Does not fit", "allocation fails")
}

func TestFeasibleRefuses(t *testing.T) {
	for says, line := range map[string][]string{
		"did you mean":             {"--like", "mistral-7"},
		"--dram \"half\": units":   {"--dram", "half"},
		"needs --dram":             {"--like", "opt-13b"},
		"--vram \"0B\"":            {"--dram", "8GiB", "--vram", "0B"},
		"--parallel 5000":          {"--dram", "8GiB", "--parallel", "5000"},
		"known are f16":            {"--precision", "q2"},
		"memory and positions":     {"--dram", "8GiB", "--context", "0"},
		"write 0.033":              {"--active", "3.3"},
		"has costs for uring only": {"--dram", "8GiB", "-d", "jetson-orin-990pro", "--io", "pread"},
	} {
		o := command(append([]string{"feasible"}, line...)...)
		if o.code != exitUsage || o.stdout != "" || !strings.Contains(o.stderr, says) {
			t.Errorf("%v: code %d, %q; want %q", line, o.code, o.stderr, says)
		}
	}
}
