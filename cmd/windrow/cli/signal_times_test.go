//go:build unix

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/windrow-sim/windrow/internal/rng"
)

// timedProgram in the environment names the program that TestSignalTimes interrupts.
const timedProgram = "WINDROW_SIGNALS"

// heavy are command lines that compute for seconds; large.* is a trace of a whole model.
var heavy = []string{
	"synth trace --like opt-6.7b --tokens 2000 -o h1.trace.arrow",
	"synth model --like opt-1.3b -o h2.flash.safetensors",
	"sim -t large.trace.arrow -d m1-max --policy belady:2000",
	"sim -t large.trace.arrow -d samsung-860pro-sata --window 1 --no-coalesce",
	"sim -t large.trace.arrow -d m1-max --schedule token",
	"sweep examples/scenarios/windows.yaml -o h3.jsonl",
	"sweep examples/scenarios/batches.yaml -o h4.jsonl",
	"plan -t large.trace.arrow -d m1-max --dram 60%",
	"breakeven -d m1-max,emmc-64gb-sige5 -t large.trace.arrow",
	"batch -t large.trace.arrow -d m1-max --sizes 1,2,4",
	"traffic -t large.trace.arrow -d m1-max --find-rate --requests 100",
	"adaptive -t large.trace.arrow -d m1-max --dram-over-time 0:90%,20:64%",
	"speculate -t large.trace.arrow -d m1-max --window 2 --lambda 2 --most 4",
	"layout -t large.trace.arrow -d m1-max --gaps 0..8",
	"device compare m1-max jetson-orin-990pro",
	"device show samsung-860pro-sata --leave-one-out",
	"device fit grid.json -o h5.device.yaml",
	"reproduce",
	"report large.run.arrow --trace large.trace.arrow -o h6.html",
	"validate large.run.arrow large.run.arrow",
	"validate --suite emulated",
	"trace stats large.trace.arrow",
	"trace check large.trace.arrow",
	"trace cat large.trace.arrow --units",
	"trace merge large.trace.arrow large.trace.arrow -o h7.trace.arrow",
	"trace whatif large.trace.arrow --share 2% -o h8.trace.arrow",
	"train -t learn.trace.arrow --rank 64 --epochs 500 -o h9.predictor.safetensors",
	"train -t learn.trace.arrow --kind centroid --centroids 16 --epochs 500 -o " +
		"h10.predictor.safetensors",
	"eval -m tales.flash.safetensors --text large.txt",
	"generate -m tales.flash.safetensors -n 200 --prompts large.txt",
	"record -m tales.flash.safetensors --prompts large.txt -n 40 -o h11.trace.arrow",
	"probe tales.flash.safetensors --budget 20s -o h12.device.yaml",
	"probe . --budget 20s -o h13.device.yaml",
	"demo --dir h14",
	"calibrate -t tales.trace.arrow -m tales.flash.safetensors",
	"replay -t tales.trace.arrow -m tales.flash.safetensors",
}

// TestSignalTimes measures how long after a signal the program ends, for every input of every verb
// and every kind of odd file, and for verbs that compute. "make signals" runs it.
func TestSignalTimes(t *testing.T) {
	program := os.Getenv(timedProgram)
	if program == "" {
		t.Skip("measures times, for an idle machine; make signals runs it")
	}
	readerWorkspace(t)
	must(t, "synth", "trace", "--like", "opt-6.7b", "--tokens", "60", "-o", "large.trace.arrow")
	must(t, "sim", "-t", "large.trace.arrow", "-d", "m1-max", "-o", "large.run.arrow")
	write(t, "large.txt", strings.Repeat("Once upon a time there was a little girl.\n", 1<<16))
	random := rng.Stream(rng.DefaultSeed, "signal times")
	signals := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}
	var all []timedRun
	for _, line := range readers {
		for i := range inBraces.FindAllString(line, -1) {
			for _, kind := range odd {
				line := replaced(t, line, i, kind.make)
				for _, s := range signals {
					all = append(all, interrupted(t, program, line, s,
						time.Duration(random.IntN(300))*time.Millisecond))
				}
			}
		}
	}
	for _, line := range slices.Concat(heavy, readNothing) {
		for i := range 4 {
			all = append(all, interrupted(t, program, line, signals[i%2],
				time.Duration(random.IntN(500<<i))*time.Millisecond))
		}
	}
	slices.SortFunc(all, func(a, b timedRun) int { return int(b.took - a.took) })
	for _, r := range all[:12] {
		t.Log(r)
	}
	ended := 0
	for _, r := range all {
		if r.before {
			ended++
		}
		if r.took > time.Second {
			t.Errorf("longer than a second: %v", r)
		}
	}
	t.Logf("%d runs, of which %d ended before the signal", len(all), ended)
}

// timedRun is a process that got a signal.
type timedRun struct {
	line   string
	signal syscall.Signal
	after  time.Duration // since its start
	took   time.Duration // until its end
	before bool          // it had ended already
}

func (r timedRun) String() string {
	return r.took.Round(time.Millisecond).String() + " after " + r.signal.String() + " at " +
		r.after.String() + ": windrow " + r.line
}

func interrupted(t *testing.T, program, line string, signal syscall.Signal,
	after time.Duration) timedRun {
	t.Helper()
	for _, old := range []string{"h*.*", "d1", "d2"} { // what the run before left
		list, _ := filepath.Glob(old)
		for _, path := range list {
			os.RemoveAll(path)
		}
	}
	// The runtime needs a moment to listen.
	after += 50 * time.Millisecond
	r := timedRun{line: line, signal: signal, after: after}
	cmd := exec.CommandContext(t.Context(), program, words(t, line)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { cmd.Wait(); close(done) }()
	select {
	case <-done:
		r.before = true
		return r
	case <-time.After(after):
	}
	sent := time.Now()
	if cmd.Process.Signal(signal) != nil {
		r.before = true
	}
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		cmd.Process.Kill()
		<-done
	}
	r.took = time.Since(sent)
	return r
}
