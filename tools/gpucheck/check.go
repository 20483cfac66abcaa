package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/windrow-sim/windrow/kernels/cuda"
)

// document is what a check found. Times are left out when the device was emulated.
type document struct {
	Emulated bool            `json:"emulated"`
	Device   *cuda.Facts     `json:"device,omitempty"`
	Steps    []step          `json:"steps"`
	Texts    []text          `json:"generate,omitempty"`
	Replays  []replayed      `json:"replay,omitempty"`
	Probe    json.RawMessage `json:"probe,omitempty"` // the section gpu of a device model
	Compared []compared      `json:"simulated,omitempty"`
	Kernels  []kernelRate    `json:"kernels,omitempty"`
}

// compared is a simulation on the probed device beside a replay.
type compared struct {
	Name      string  `json:"name"`
	Same      bool    `json:"same_counters"`
	Simulated float64 `json:"simulated_tokens_per_s,omitempty"`
	Measured  float64 `json:"measured_tokens_per_s,omitempty"`
	Error     float64 `json:"error_percent,omitempty"`
	// simulated and measured: read, stage, scatter, compute, sync
	Phases [2][5]int64 `json:"phases_ns,omitzero"`
}

// step is one thing that was checked.
type step struct {
	Name    string  `json:"name"`
	OK      bool    `json:"ok"`
	Seconds float64 `json:"seconds,omitempty"`
	Says    string  `json:"says,omitempty"` // why it failed, or what it found
}

// text is a generation on both backends.
type text struct {
	Name string  `json:"name"`
	Same bool    `json:"same_tokens"`
	CPU  float64 `json:"cpu_tokens_per_s,omitempty"`
	CUDA float64 `json:"cuda_tokens_per_s,omitempty"`
}

// replayed is a replay of one trace on both backends.
type replayed struct {
	Name      string    `json:"name"`
	Same      bool      `json:"same_counters"`
	CPU, CUDA runTotals `json:"-"`
	CPURate   float64   `json:"cpu_tokens_per_s,omitempty"`
	CUDARate  float64   `json:"cuda_tokens_per_s,omitempty"`
	// attention, predict, read, scatter, feed-forward, other
	Parts []int64 `json:"cuda_part_ns,omitempty"`
}

// runTotals are the totals of a Run.
type runTotals struct {
	Rate                              float64 `json:"tokens_per_s"`
	Parts                             []int64 `json:"part_ns"`
	Hits, Misses, Evictions, Requests int64
	Bytes                             int64 `json:"flash_bytes_read"`
}

// counters are what both backends must agree on.
func (t *runTotals) counters() [5]int64 {
	return [5]int64{t.Hits, t.Misses, t.Evictions, t.Requests, t.Bytes}
}

// kernelRate is a kernel's rate beside that of a copy on the device, which reads and writes.
type kernelRate struct {
	Name  string  `json:"name"`
	Rate  float64 `json:"gb_per_s"`
	Share float64 `json:"share_of_copy"`
}

func (d *document) failed() (n int) {
	for _, s := range d.Steps {
		if !s.OK {
			n++
		}
	}
	return n
}

// check says what to run.
type check struct {
	bundle, repository, library, work string
	out                               string // of what is kept
	emulated                          bool
}

// all runs every step, also after one that failed, if there is a device.
func (c *check) all(ctx context.Context) *document {
	d := &document{Emulated: c.emulated}
	// All limits together are 6 minutes, with some seconds to spare for starting programs.
	if c.step(ctx, d, "device", 20*time.Second, c.device); d.Device == nil {
		return d
	}
	c.step(ctx, d, "kernels and conformance", 50*time.Second, func(ctx context.Context,
		_ *document) (string, error) {
		return c.tests(ctx, "kernels.test", "kernels/cuda", ".")
	})
	which := "."
	if c.emulated { // the rest runs with all tests
		which = "TestFamilies/cuda/(opt|llama-relu)$|TestPoliciesMoveRows/cuda"
	}
	c.step(ctx, d, "backend", 65*time.Second, func(ctx context.Context, _ *document) (string,
		error) {
		return c.tests(ctx, "backend.test", "engine/cuda", which)
	})
	c.step(ctx, d, "generate", 25*time.Second, c.generate)
	c.step(ctx, d, "record and replay", 60*time.Second, c.replay)
	c.step(ctx, d, "probe", 70*time.Second, c.probe)
	c.step(ctx, d, "simulation", 20*time.Second, c.simulate)
	if !c.emulated {
		c.step(ctx, d, "benchmarks", 40*time.Second, c.benchmarks)
	}
	return d
}

// step runs one step within a limit of time and notes how it went.
func (c *check) step(ctx context.Context, d *document, name string, limit time.Duration,
	do func(context.Context, *document) (string, error)) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	fmt.Fprintf(os.Stderr, "%s …\n", name)
	begin := time.Now()
	says, err := do(ctx, d)
	s := step{Name: name, OK: err == nil, Says: says}
	if err != nil {
		s.Says = err.Error()
		fmt.Fprintf(os.Stderr, "%s failed: %v\n", name, err)
	}
	if !c.emulated {
		s.Seconds = time.Since(begin).Seconds()
	}
	d.Steps = append(d.Steps, s)
}

// device finds the device, and when it is emulated the library that emulates it: the tests build
// that.
func (c *check) device(ctx context.Context, d *document) (string, error) {
	if c.emulated {
		out, err := c.run(ctx, filepath.Join(c.repository, "kernels/cuda"), nil,
			filepath.Join(c.bundle, "kernels.test"), "-test.run", "^TestFacts$", "-test.v")
		if err != nil {
			return "", err
		}
		found := regexp.MustCompile(`emulated device: (\S+)`).FindSubmatch(out)
		if found == nil {
			return "", errors.New("no stand-in was built: a C++ compiler is needed")
		}
		c.library = string(found[1])
	}
	driver, err := cuda.OpenLibrary(c.library)
	if err != nil {
		return "", err
	}
	device, err := cuda.Open(driver, 0)
	if err != nil {
		return "", err
	}
	d.Device = &device.Facts
	return device.Facts.Name, device.Close()
}

// run runs a program in a folder and returns what it printed.
func (c *check) run(ctx context.Context, folder string, env []string, program string,
	args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	passed := regexp.MustCompile(`(?m)^\s*(=== |--- PASS|--- SKIP).*\n`)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		const most = 2000
		said := strings.TrimSpace(passed.ReplaceAllString(string(out)+stderr.String(), ""))
		return out, fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "),
			err, said[max(0, len(said)-most):])
	}
	return out, nil
}

// onDevice lets tests and programs use the library.
func (c *check) onDevice() []string { return []string{libraryVariable + "=" + c.library} }

// libraryVariable names the driver library for tests and for the program.
const libraryVariable = "WINDROW_CUDA_LIBRARY"

// tests runs a test binary in its package's folder. Without a library the tests bring the stand-in,
// and know that it is one.
func (c *check) tests(ctx context.Context, binary, folder, which string) (string, error) {
	env := c.onDevice()
	if c.emulated {
		env = []string{libraryVariable + "="}
	}
	out, err := c.run(ctx, filepath.Join(c.repository, folder), env, filepath.Join(c.bundle,
		binary), "-test.run", which, "-test.v")
	return fmt.Sprintf("%d passed, %d skipped", bytes.Count(out, []byte("--- PASS")),
		bytes.Count(out, []byte("--- SKIP"))), err
}

// windrow runs the program.
func (c *check) windrow(ctx context.Context, args ...string) ([]byte, error) {
	return c.run(ctx, c.work, c.onDevice(), filepath.Join(c.bundle, "windrow"), args...)
}

// generate writes the same text on both backends, dense and from flash with recorded masks.
func (c *check) generate(ctx context.Context, d *document) (string, error) {
	n := "64"
	if c.emulated {
		n = "4"
	}
	if _, err := c.windrow(ctx, "pack", filepath.Join(c.repository, "examples/models/tales"), "-o",
		"tales.flash.safetensors"); err != nil {
		return "", err
	}
	prompts := filepath.Join(c.repository, "examples/prompts/tales.txt")
	for _, backend := range []string{"cpu", "cuda"} {
		if _, err := c.windrow(ctx, "record", "-m", "tales.flash.safetensors", "--prompts", prompts,
			"--limit", "1", "-n", n, "-o", backend+".trace.arrow", "--backend",
			backend); err != nil {
			return "", err
		}
	}
	same := true
	for _, t := range []struct {
		name string
		args []string
	}{
		{"dense", []string{"Once upon a time"}},
		{"from flash", []string{"--oracle", "BACKEND.trace.arrow", "--window", "4"}},
	} {
		var got [2]struct {
			Tokens []uint32
			Rate   float64 `json:"avg_ts"`
		}
		for i, backend := range []string{"cpu", "cuda"} {
			args := []string{"generate", "-m", "tales.flash.safetensors", "-n", n, "--json",
				"--backend", backend}
			for _, a := range t.args {
				args = append(args, strings.ReplaceAll(a, "BACKEND", backend))
			}
			out, err := c.windrow(ctx, args...)
			if err == nil {
				err = result(out, &got[i])
			}
			if err != nil {
				return "", fmt.Errorf("%s: %w", t.name, err)
			}
		}
		r := text{Name: t.name, Same: len(got[0].Tokens) > 0 &&
			fmt.Sprint(got[0].Tokens) == fmt.Sprint(got[1].Tokens)}
		if !c.emulated {
			r.CPU, r.CUDA = got[0].Rate, got[1].Rate
		}
		d.Texts, same = append(d.Texts, r), same && r.Same
	}
	if !same {
		return "", errors.New("the device wrote another text than the CPU")
	}
	return "the CPU's tokens", nil
}

// replay replays a synthetic trace on a synthetic image with both backends, on demand and a layer
// ahead.
func (c *check) replay(ctx context.Context, d *document) (string, error) {
	model, layers, tokens := "opt-6.7b", "4", "32"
	if c.emulated {
		model, layers, tokens = "opt-125m", "2", "2"
	}
	if _, err := c.windrow(ctx, "synth", "model", "--like", model, "--layers", layers, "-o",
		"synth.flash.safetensors"); err != nil {
		return "", err
	}
	if _, err := c.windrow(ctx, "synth", "trace", "--like", model, "--layers", layers, "--tokens",
		tokens, "--active", "0.033", "-o", "synth.trace.arrow"); err != nil {
		return "", err
	}
	same := true
	for _, schedule := range []string{"demand", "lookahead"} {
		var got [2]runTotals
		for i, backend := range []string{"cpu", "cuda"} {
			out, err := c.windrow(ctx, "replay", "-m", "synth.flash.safetensors", "-t",
				"synth.trace.arrow", "--window", "4", "--schedule", schedule, "--json", "--backend",
				backend)
			if err != nil {
				return "", err
			}
			if got[i], err = totals(out); err != nil {
				return "", err
			}
		}
		r := replayed{Name: model + ", " + layers + " layers, " + schedule,
			Same: got[0].counters() == got[1].counters()}
		if !c.emulated {
			r.CPURate, r.CUDARate, r.Parts = got[0].Rate, got[1].Rate, got[1].Parts
		}
		d.Replays, same = append(d.Replays, r), same && r.Same
	}
	if !same {
		return "", errors.New("hits, misses, evictions, requests or bytes are not the CPU's")
	}
	return "the CPU's counters", nil
}

// deviceFile is the device model that the probe writes.
func (c *check) deviceFile() string {
	if c.emulated { // a stand-in has no times: what is simulated is made up
		return filepath.Join(c.repository, "devicemodels/testdata/made-up-gpu.device.yaml")
	}
	return filepath.Join(c.out, "here.device.yaml")
}

// probe measures this machine, with the image and the trace that the step before it made. On a
// stand-in every call is made once, without a number.
func (c *check) probe(ctx context.Context, d *document) (string, error) {
	if c.emulated {
		out, err := c.windrow(ctx, "probe", "--backend", "cuda")
		if says := strings.TrimSpace(string(out)); err != nil ||
			!strings.Contains(says, "emulated, no timings") {
			return says, errors.Join(err, errors.New("the stand-in was not gone through as one"))
		}
		return strings.TrimSpace(string(out)), nil
	}
	out, err := c.windrow(ctx, "probe", "synth.flash.safetensors", "--trace", "synth.trace.arrow",
		"--io", "pread", "--backend", "cuda", "--budget", "25s", "--max-drift", "1000",
		"--force", "-o", c.deviceFile(), "--json")
	if err == nil {
		d.Probe, err = section(out)
		return "flash, host and GPU: " + filepath.Base(c.deviceFile()), err
	}
	// A drive that cannot be measured, such as one in memory, leaves the GPU.
	alone, second := c.windrow(ctx, "probe", "--backend", "cuda", "--json")
	if second == nil {
		second = result(alone, &d.Probe)
	}
	return "", errors.Join(err, second)
}

// result reads the result out of a document of --json (docs/schemas.md).
func result(document []byte, into any) error {
	var envelope struct {
		Schema string          `json:"schema"`
		Result json.RawMessage `json:"result"`
	}
	if err := json.Unmarshal(document, &envelope); err != nil {
		return err
	}
	if !strings.HasPrefix(envelope.Schema, "windrow/") || len(envelope.Result) == 0 {
		return fmt.Errorf("a document of schema %q; one of windrow is needed", envelope.Schema)
	}
	return json.Unmarshal(envelope.Result, into)
}

// section is the GPU of a device model.
func section(device []byte) (json.RawMessage, error) {
	var doc struct {
		GPU json.RawMessage `json:"gpu"`
	}
	if err := result(device, &doc); err != nil {
		return nil, err
	}
	if len(doc.GPU) == 0 {
		return nil, errors.New("the device model has no GPU")
	}
	return doc.GPU, nil
}

// simulate compares replays with simulations on the probed device.
func (c *check) simulate(ctx context.Context, d *document) (string, error) {
	if _, err := os.Stat(c.deviceFile()); err != nil {
		return "", fmt.Errorf("there is no device model to simulate: %w", err)
	}
	same := true
	for _, schedule := range []string{"demand", "lookahead"} {
		common := []string{"-m", "synth.flash.safetensors", "-t", "synth.trace.arrow", "--window",
			"2", "--io", "pread", "--parallel", "32", "--schedule", schedule, "--backend", "cuda"}
		replay, simulation := []string{"replay", "--force", "-o", "measured.run.arrow"}, []string{"sim", "-d",
			c.deviceFile(), "--observed", "--force", "-o", "simulated.run.arrow"}
		if c.emulated { // the made-up drive asks for another alignment than this one
			replay, simulation = append(replay, "--direct", "off", "--reference-every", "0"),
				append(simulation, "--align", "1B")
		}
		for _, args := range [][]string{replay, simulation} {
			if _, err := c.windrow(ctx, append(args, common...)...); err != nil {
				return "", err
			}
		}
		out, err := c.windrow(ctx, "validate", "simulated.run.arrow", "measured.run.arrow",
			"--json")
		r, bad := comparison(out)
		if bad != nil {
			return "", errors.Join(err, bad)
		}
		if r.Name = schedule; c.emulated {
			r = compared{Name: r.Name, Same: r.Same}
		}
		d.Compared, same = append(d.Compared, r), same && r.Same
	}
	if !same {
		return "", errors.New("the simulator's hits, misses, evictions, requests or bytes are " +
			"not the replay's")
	}
	return "the replay's counters", nil
}

// comparison reads the report of validate, whose exit code says only whether the rate is within its
// tolerance.
func comparison(report []byte) (r compared, err error) {
	var doc struct {
		Comparison *struct {
			Counters  bool    `json:"counters_equal"`
			Bytes     bool    `json:"bytes_equal"`
			Simulated float64 `json:"simulated_tokens_per_s"`
			Measured  float64 `json:"measured_tokens_per_s"`
			Error     float64 `json:"tokens_per_s_error_percent"`
		} `json:"comparison"`
		Runs []struct {
			Meta struct {
				Phases *struct {
					Read    int64 `json:"read_ns"`
					Stage   int64 `json:"stage_ns"`
					Scatter int64 `json:"scatter_ns"`
					Compute int64 `json:"compute_ns"`
					Sync    int64 `json:"sync_ns"`
				} `json:"phases"`
			} `json:"meta"`
		} `json:"runs"`
	}
	if err := result(report, &doc); err != nil {
		return r, err
	}
	if doc.Comparison == nil || len(doc.Runs) != 2 {
		return r, errors.New("a report without a comparison of two runs")
	}
	k := doc.Comparison
	r = compared{Same: k.Counters && k.Bytes, Simulated: k.Simulated, Measured: k.Measured,
		Error: k.Error}
	for i := range doc.Runs {
		if p := doc.Runs[i].Meta.Phases; p != nil {
			r.Phases[i] = [5]int64{p.Read, p.Stage, p.Scatter, p.Compute, p.Sync}
		}
	}
	return r, nil
}

// totals are those of the first run of a report.
func totals(report []byte) (runTotals, error) {
	var doc struct {
		Runs []struct {
			Meta struct {
				Totals runTotals `json:"totals"`
			} `json:"meta"`
		} `json:"runs"`
	}
	if err := result(report, &doc); err != nil {
		return runTotals{}, err
	}
	if len(doc.Runs) == 0 {
		return runTotals{}, errors.New("a report without a run")
	}
	return doc.Runs[0].Meta.Totals, nil
}

// benchmarks measures each kernel by the device's clock.
func (c *check) benchmarks(ctx context.Context, d *document) (string, error) {
	out, err := c.run(ctx, filepath.Join(c.repository, "kernels/cuda"), c.onDevice(),
		filepath.Join(c.bundle, "kernels.test"),
		"-test.run", "^$", "-test.bench", "Kernels", "-test.benchtime", "200x")
	if err != nil {
		return "", err
	}
	if d.Kernels, err = rates(string(out)); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d kernels", len(d.Kernels)-1), nil
}
