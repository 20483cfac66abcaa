package cli

import (
	"encoding/json"
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
	var a answers.Feasibility
	if err := json.Unmarshal([]byte(document.stdout), &a); err != nil {
		t.Fatal(err)
	}
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
		if !strings.Contains(text.stdout, string(r.Verdict)) || !strings.Contains(text.stdout,
			r.Class+": "+r.Reason+"\n") {
			t.Errorf("the table has no %s, %s:\n%s", r.Class, r.Verdict, text.stdout)
		}
	}
	if len(a.Rows) != len(want) || a.Device != "jetson-orin-990pro" || a.Machine.Context != 2048 ||
		!strings.Contains(text.stdout, "llama.cpp, Ollama") {
		t.Errorf("%+v", a)
	}
	if plain := command("feasible", "--like", "opt-13b", "--dram", "8GiB"); plain.code != exitOK ||
		strings.Contains(plain.stdout, "tokens/s") {
		t.Errorf("without a device there are rates: %+v", plain)
	}
	if list := command("feasible", "--like", "list"); list.code != exitOK ||
		!strings.Contains(list.stdout, "Qwen3-30B-A3B\n") {
		t.Errorf("%+v", list)
	}
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
