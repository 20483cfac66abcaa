//go:build !race

// The race detector keeps a shadow of all memory.

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/memory"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim/answers"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/synth"
)

// residentChild in the environment holds two command lines for TestResidentSetChild.
const residentChild = "WINDROW_TEST_RESIDENT_SET"

// residentSet is what the child measures.
type residentSet struct {
	Program units.Bytes // the most that was resident with the first command line, which does little
	Peak    units.Bytes // the same with the second
	Code    int
	Stderr  string // of the second command line
}

// TestResidentSetChild is the process that TestResidentSet measures; by itself it does nothing.
func TestResidentSetChild(t *testing.T) {
	text := os.Getenv(residentChild)
	if text == "" {
		return
	}
	var lines [2][]string
	if err := json.Unmarshal([]byte(text), &lines); err != nil {
		t.Fatal(err)
	}
	if o := command(lines[0]...); o.code != exitOK {
		t.Fatalf("%v: exit %d: %s", lines[0], o.code, o.stderr)
	}
	runtime.GC() // what the collector takes once for itself is the program's
	var r residentSet
	r.Program = status(t, "VmHWM")
	o := command(lines[1]...)
	r.Peak, r.Code, r.Stderr = status(t, "VmHWM"), o.code, o.stderr
	if err := json.NewEncoder(os.Stderr).Encode(r); err != nil {
		t.Fatal(err)
	}
}

// status is a size in /proc/self/status.
func status(t *testing.T, name string) units.Bytes {
	t.Helper()
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == name+":" {
			n, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return units.Bytes(n) * units.KiB
		}
	}
	t.Fatalf("/proc/self/status has no %s", name)
	return 0
}

// measure runs a command line in a process of its own, after one that does the same with little.
// Huge pages are off: they would round every part up to 2 MiB.
func measure(t *testing.T, little, line []string) residentSet {
	t.Helper()
	text, err := json.Marshal([2][]string{little, line})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestResidentSetChild$")
	cmd.Env = append(os.Environ(), residentChild+"="+string(text), "GODEBUG=disablethp=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	var r residentSet
	if decoded := json.Unmarshal(stderr.Bytes(), &r); err != nil || decoded != nil {
		t.Fatalf("%v: %v, %v\n%s%s", line, err, decoded, stdout, &stderr)
	}
	if r.Code != exitOK {
		t.Fatalf("%v: exit %d: %s", line, r.Code, r.Stderr)
	}
	return r
}

// littleModel makes a model and a trace of some KiB.
func littleModel(t *testing.T) (image, trace string) {
	t.Helper()
	image, trace = "little.flash.safetensors", "little.trace.arrow"
	shape := model.Shape{DModel: 64, Layers: 1, DFFN: 64, Heads: 1, KVHeads: 1, HeadDim: 64,
		Vocab: 96, MaxPos: 64, Rows: 2, DTypeSize: 2}
	if err := model.Synth(context.Background(), shape, "little", 3, image,
		model.SynthOptions{}); err != nil {
		t.Fatal(err)
	}
	m, err := synth.Collect(t.Context(), synth.Options{Like: "opt-6.7b", Shape: traces.Shape(shape),
		Tokens: 20,
		Seed:   5, ActiveShare: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	w, err := traces.Create(trace, m.Head, traces.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.List {
		if err := w.Append(&m.List[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return image, trace
}

// planned is the account that plan makes of a trace, for the alignment that reads of an image need.
func planned(t *testing.T, image, trace string, budget units.Bytes) answers.Memory {
	t.Helper()
	tr, err := traces.Open(t.Context(), trace)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	w, err := answers.WindowsOf(context.Background(), tr, memory.Reads{Layout: layout.Options{
		Coalesce: true, Align: alignment(t, image)}}, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := answers.ModelOf(tr.Header())
	a, err := m.LargestWindow(w, answers.Holding{}, budget)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestResidentSet measures processes that replay and generate under a budget. The account of replay
// and of plan is within 3 % of the largest resident set, the program itself measured apart. Of the
// shipped model, which is smaller than the program, the error is a share of both together.
func TestResidentSet(t *testing.T) {
	workspace(t)
	littleImage, littleTrace := littleModel(t)
	replay := func(image, trace, budget string) []string {
		return []string{"replay", "-t", trace, "-m", image, "--dram", budget, "--reference-every",
			"0"}
	}
	must(t, "synth", "model", "--like", "opt-125m", "-o", "large.flash.safetensors")
	must(t, "synth", "trace", "--like", "opt-125m", "--active", "0.1", "--tokens", "24", "-o",
		"large.trace.arrow")
	must(t, "record", "-m", "tales.flash.safetensors", "--prompts", "examples/prompts/tales.txt",
		"--limit", "2", "-n", "24", "-o", "two.trace.arrow")
	const tales = "tales.flash.safetensors"
	for _, c := range []struct {
		image, trace, budget string
		verb                 string
	}{
		{"large.flash.safetensors", "large.trace.arrow", "170MiB", "replay"},
		{"large.flash.safetensors", "large.trace.arrow", "182MiB", "replay"},
		{tales, "two.trace.arrow", "9MiB", "replay"},
		{tales, "two.trace.arrow", "10MiB", "replay"},
		{tales, "two.trace.arrow", "10MiB", "generate"},
	} {
		line := replay(c.image, c.trace, c.budget)
		if c.verb == "generate" {
			line = []string{"generate", "-m", c.image, "--oracle", c.trace, "--dram", c.budget}
		}
		budget, err := units.ParseBytes(c.budget)
		if err != nil {
			t.Fatal(err)
		}
		plan := planned(t, c.image, c.trace, budget)
		var r residentSet
		var off, allowed units.Bytes
		// Garbage lies longer where the collector waits for a processor: it adds to either command
		// line of a process now and then, and to one of three processes hardly ever.
		for range 3 {
			r = measure(t, replay(littleImage, littleTrace, "10MiB"), line)
			off, allowed = r.Peak-r.Program-plan.Total, plan.Total*3/100
			if c.image == tales {
				allowed += r.Program * 3 / 100
			}
			if -allowed <= off && off <= allowed {
				break
			}
		}
		window, parts := accountOf(t, r.Stderr)
		if c.image == tales && (window != plan.Window || parts != plan.String()) {
			t.Errorf("%v: a window of %d (%s), plan has %d (%v)", line, window, parts, plan.Window,
				plan)
		}
		if off > allowed || off < -allowed {
			t.Errorf("%v: the process had %v at most, %v of it the program: %v more than the "+
				"account of %v (%v)", line, r.Peak, r.Program, off, plan.Total, plan)
		}
	}
}
