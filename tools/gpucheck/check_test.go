package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windrow-sim/windrow/cmd/windrow/cli"
)

// canned in the environment makes the program of the bundle answer from a table: "same" for a
// device that does what the CPU does, "other" for one that does not, "broken" for a program that
// ends with an error. Without it the program is windrow itself, which computes on the CPU where it
// is asked for a device.
const canned = "GPUCHECK_TEST_CANNED"

// TestMain lets the test binary be the programs of a bundle, by the names that they are called by.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "windrow":
		os.Exit(windrow(os.Args[1:]))
	case "kernels.test":
		fmt.Print("=== RUN   TestA\n--- PASS: TestA (0.00s)\n--- SKIP: TestB (0.00s)\n",
			"--- PASS: TestC (0.00s)\n", benchmarks)
		os.Exit(0)
	case "backend.test":
		fmt.Print("=== RUN   TestA\n--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.00s)\n")
		fmt.Fprintln(os.Stderr, "the device is on fire")
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// windrow is the program of the bundle.
func windrow(args []string) int {
	at := slices.Index(args, "--backend") + 1
	onDevice := at > 0 && args[at] == "cuda"
	if kind := os.Getenv(canned); kind != "" {
		return answer(args[0], onDevice, kind)
	}
	switch {
	case args[0] == "probe" && onDevice:
		fmt.Println("a stand-in: emulated, no timings")
		return 0
	case args[0] != "sim" && onDevice:
		args[at] = "cpu"
	}
	return cli.Run(context.Background(), os.Stdin, os.Stdout, os.Stderr, args)
}

func answer(verb string, onDevice bool, kind string) int {
	if kind == "broken" {
		fmt.Fprintln(os.Stderr, "windrow: no driver here")
		return 4
	}
	other := kind == "other" && onDevice
	result := any(map[string]any{})
	switch verb {
	case "generate":
		result = map[string]any{"tokens": []int{1, map[bool]int{false: 2, true: 3}[other]},
			"avg_ts": 5}
	case "replay":
		result = map[string]any{"runs": []any{map[string]any{"meta": map[string]any{
			"totals": map[string]any{"hits": map[bool]int{false: 2, true: 3}[other],
				"tokens_per_s": 7, "part_ns": []int{1, 2}}}}}}
	case "validate":
		run := map[string]any{"meta": map[string]any{}}
		result = map[string]any{"runs": []any{run, run}, "comparison": map[string]any{
			"counters_equal": kind == "same", "bytes_equal": true,
			"simulated_tokens_per_s": 11, "measured_tokens_per_s": 10,
			"tokens_per_s_error_percent": 10}}
	case "probe":
		result = map[string]any{"gpu": map[string]any{"model": "some device"}}
	}
	text, err := json.Marshal(map[string]any{"schema": "windrow/" + verb + "/1", "result": result})
	if err != nil {
		return 1
	}
	fmt.Println(string(text))
	return 0
}

// newCheck makes a bundle whose programs are this test binary.
func newCheck(t *testing.T, emulated bool) *check {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	c := &check{bundle: t.TempDir(), repository: repository, work: t.TempDir(), out: t.TempDir(),
		library: "none.so", emulated: emulated}
	for _, name := range []string{"windrow", "kernels.test", "backend.test"} {
		if err := os.Symlink(self, filepath.Join(c.bundle, name)); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	return c
}

// TestStepsUnderstandWindrow runs the steps with windrow itself: they read what it prints today. A
// device that is the CPU in disguise agrees with the CPU.
func TestStepsUnderstandWindrow(t *testing.T) {
	c, d := newCheck(t, true), &document{Emulated: true}
	for name, do := range map[string]func(context.Context, *document) (string, error){
		"generate": c.generate, "probe": c.probe} {
		if _, err := do(t.Context(), d); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if says, err := c.replay(t.Context(), d); err != nil || says != "the CPU's counters" {
		t.Fatalf("%q, %v", says, err)
	}
	if says, err := c.simulate(t.Context(), d); err != nil || says != "the replay's counters" {
		t.Errorf("%q, %v", says, err)
	}
	if len(d.Texts) != 2 || !d.Texts[0].Same || !d.Texts[1].Same || len(d.Replays) != 2 ||
		!d.Replays[0].Same || len(d.Compared) != 2 || !d.Compared[1].Same {
		t.Errorf("%+v", d)
	}
}

// TestStepsNoticeAnotherResult: a device with other tokens or counters fails its step, and the page
// says which. With the CPU's the steps pass, and the rates are there.
func TestStepsNoticeAnotherResult(t *testing.T) {
	for _, kind := range []string{"same", "other", "broken"} {
		t.Setenv(canned, kind)
		c, d := newCheck(t, false), &document{}
		if err := os.WriteFile(c.deviceFile(), nil, 0o666); err != nil {
			t.Fatal(err)
		}
		c.step(t.Context(), d, "generate", time.Minute, c.generate)
		c.step(t.Context(), d, "replay", time.Minute, c.replay)
		c.step(t.Context(), d, "simulation", time.Minute, c.simulate)
		c.step(t.Context(), d, "probe", time.Minute, c.probe)
		want := map[string][]string{
			"same": {"the CPU's tokens", "the CPU's counters", "the replay's counters",
				"flash, host and GPU: here.device.yaml"},
			"other": {"the device wrote another text than the CPU", "are not the CPU's",
				"are not the replay's", "flash, host and GPU: here.device.yaml"},
			"broken": {"no driver here", "no driver here", "no driver here", "no driver here"},
		}[kind]
		for i, s := range d.Steps {
			ok := kind == "same" || kind == "other" && s.Name == "probe"
			if s.OK != ok || !strings.Contains(s.Says, want[i]) || s.Seconds == 0 {
				t.Errorf("%s: %+v, want %v, %q", kind, s, ok, want[i])
			}
		}
		if kind == "same" && (d.Texts[0].CUDA != 5 || d.Replays[0].CPURate != 7 ||
			!slices.Equal(d.Replays[1].Parts, []int64{1, 2}) || d.Compared[0].Error != 10 ||
			string(d.Probe) != `{"model":"some device"}`) {
			t.Errorf("%+v", d)
		}
	}
}

// TestTestsAndBenchmarks: the counts of a test binary, what one that fails says last, and the rates
// of kernels.
func TestTestsAndBenchmarks(t *testing.T) {
	c, d := newCheck(t, false), &document{}
	if says, err := c.tests(t.Context(), "kernels.test", "kernels/cuda", "."); err != nil ||
		says != "2 passed, 1 skipped" {
		t.Errorf("%q, %v", says, err)
	}
	_, err := c.tests(t.Context(), "backend.test", "engine/cuda", ".")
	if err == nil || !strings.Contains(err.Error(), "--- FAIL: TestB") ||
		!strings.Contains(err.Error(), "on fire") || strings.Contains(err.Error(), "TestA") {
		t.Errorf("%v", err)
	}
	if says, err := c.benchmarks(t.Context(), d); err != nil || says != "2 kernels" ||
		len(d.Kernels) != 3 {
		t.Errorf("%q, %v, %+v", says, err, d.Kernels)
	}
}

// TestRunWithoutADevice writes both documents, and ends with an error that names the page. Nothing
// is run on a device that is not there.
func TestRunWithoutADevice(t *testing.T) {
	c, out := newCheck(t, false), filepath.Join(t.TempDir(), "new")
	err := run(c, out)
	if err == nil || !strings.Contains(err.Error(), "1 of 1 steps failed") ||
		!strings.Contains(err.Error(), "gpu-check.md") {
		t.Errorf("%v", err)
	}
	var d document
	data, err := os.ReadFile(filepath.Join(out, "gpu-check.json"))
	if err == nil {
		err = json.Unmarshal(data, &d)
	}
	if err != nil || len(d.Steps) != 1 || d.Steps[0].OK || d.Device != nil {
		t.Errorf("%v, %+v", err, d)
	}
	page, err := os.ReadFile(filepath.Join(out, "gpu-check.md"))
	if err != nil || !strings.Contains(string(page), "| device | **failed** |") {
		t.Errorf("%v, %s", err, page)
	}
	if _, err := os.Stat(c.work); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the working folder is left: %v", err)
	}
	// A program that takes longer than its step may is ended, and the step fails.
	d = document{}
	c.step(t.Context(), &d, "slow", time.Nanosecond, func(ctx context.Context, _ *document) (string,
		error) {
		<-ctx.Done()
		return "", ctx.Err()
	})
	if d.Steps[0].OK {
		t.Error("a step beyond its limit passed")
	}
}
