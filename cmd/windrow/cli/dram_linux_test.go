package cli

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
)

// peak runs a command line as a process of its own and returns its largest resident set.
func peak(t *testing.T, args ...string) (units.Bytes, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, &stderr)
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		t.Skip("this system does not say how much memory a process used")
	}
	return units.Bytes(usage.Maxrss) * units.KiB, stderr.String()
}

// TestDRAMBudgetIsKept replays on a model of 257 MiB under two budgets and measures the process: at
// most 3 % and 64 MiB above the budget, which holds the program itself, and a larger budget buys a
// larger window.
func TestDRAMBudgetIsKept(t *testing.T) {
	workspace(t)
	must(t, "synth", "model", "--like", "opt-125m", "-o", "large.flash.safetensors")
	must(t, "synth", "trace", "--like", "opt-125m", "--active", "0.1", "--tokens", "24", "-o",
		"large.trace.arrow")
	windows := ""
	for _, percent := range []units.Bytes{72, 90} {
		info, err := os.Stat("large.flash.safetensors")
		if err != nil {
			t.Fatal(err)
		}
		budget := units.Bytes(info.Size()) * percent / 100
		used, stderr := peak(t, "replay", "-t", "large.trace.arrow", "-m",
			"large.flash.safetensors", "--dram", budget.String(), "--reference-every", "0")
		if most := budget + budget*3/100 + 64*units.MiB; used > most {
			t.Errorf("a budget of %v: the process used %v, at most %v is allowed\n%s", budget, used,
				most, stderr)
		}
		_, window, ok := strings.Cut(stderr, "window ")
		window, _, _ = strings.Cut(window, ":")
		if !ok || window == windows {
			t.Errorf("a budget of %v: window %q, before it %q\n%s", budget, window, windows, stderr)
		}
		windows = window
	}
	if got := command("replay", "-t", "large.trace.arrow", "-m", "large.flash.safetensors",
		"--dram", "30%"); got.code != exitUsage || !strings.Contains(got.stderr,
		"embeddings") {
		t.Errorf("below the floor: exit %d, %s", got.code, got.stderr)
	}
}
