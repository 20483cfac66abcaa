package cli

import (
	"math"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/cmd/windrow/devices"
	"github.com/windrow-sim/windrow/kernels/cuda/standin"
	"github.com/windrow-sim/windrow/replay/quality"
	"github.com/windrow-sim/windrow/traces"
)

// TestNoDevice: a machine without a driver says so, with the exit code of what the host lacks; auto
// goes on without.
func TestNoDevice(t *testing.T) {
	workspace(t)
	t.Setenv(devices.LibraryVariable, "/nowhere/libcuda.so.1")
	const line = "-m tales.flash.safetensors --backend "
	for _, c := range []struct {
		line string
		code int
		says string
	}{
		{"generate -n 2 " + line + "cuda Once", exitHost, "use the CPU backend"},
		{"record -n 1 --limit 1 --prompts prompts.txt -o x.trace.arrow " + line + "cuda", exitHost,
			"no usable CUDA device"},
		{"replay -t tales.trace.arrow " + line + "cuda", exitHost, "no usable CUDA device"},
		{"eval --text prompts.txt " + line + "cuda", exitHost, "no usable CUDA device"},
		{"generate -n 2 " + line + "auto Once", exitOK, "computing on the CPU"},
		{"generate -n 2 " + line + "gpu Once", exitUsage, "cpu, cuda, metal or auto"},
	} {
		if runtime.GOOS == "darwin" && strings.Contains(c.line, "auto") {
			continue // that is about Metal there
		}
		write(t, "prompts.txt", "Once upon a time\n")
		if o := command(words(t, c.line)...); o.code != c.code || !strings.Contains(o.stderr,
			c.says) {
			t.Errorf("%s: exit %d, want %d and %q:\n%s", c.line, o.code, c.code, c.says, o.stderr)
		}
	}
}

// TestNoMetal: a system that is not a Mac's says so, too.
func TestNoMetal(t *testing.T) {
	if runtime.GOOS == "darwin" {
		t.Skip("this is about systems without Metal")
	}
	workspace(t)
	write(t, "prompts.txt", "Once upon a time\n")
	for _, line := range []string{"generate -n 2|Once",
		"record -n 1 --limit 1 --prompts prompts.txt -o x.trace.arrow",
		"replay -t tales.trace.arrow", "eval --text prompts.txt"} {
		verb, argument, _ := strings.Cut(line, "|")
		o := command(words(t, verb+" -m tales.flash.safetensors --backend metal "+argument)...)
		if o.code != exitHost || !strings.Contains(o.stderr,
			"no usable Metal device: Metal is for macOS on Apple silicon") ||
			!strings.Contains(o.stderr, "use the CPU backend") {
			t.Errorf("%s: exit %d, want %d and what is missing:\n%s", line, o.code, exitHost,
				o.stderr)
		}
	}
}

// TestBackendCUDA runs the verbs on the stand-in for a device: the texts, masks and counters of the
// CPU.
func TestBackendCUDA(t *testing.T) {
	workspace(t)
	library := os.Getenv(devices.LibraryVariable)
	if library == "" {
		library = standin.Open(t).Path()
	}
	t.Setenv(devices.LibraryVariable, library)
	const model = " -m tales.flash.safetensors"
	write(t, "prompts.txt", "Once upon\nThe fox\n")
	both := func(line, argument string) (cpu, cuda string) {
		t.Helper()
		return must(t, words(t, line+argument)...),
			must(t, words(t, line+" --backend cuda"+argument)...)
	}
	for _, line := range []string{
		"generate -n 3" + model + "|Once",
		"generate -n 3 --prompts prompts.txt --batch 2 --prefill-chunk 2" + model,
	} {
		line, argument, _ := strings.Cut(line, "|")
		if cpu, cuda := both(line, " "+argument); cpu != cuda {
			t.Errorf("%s: on the device %q, on the CPU %q", line, cuda, cpu)
		}
	}
	var perplexity [2]float64
	cpu, cuda := both("eval --json --text prompts.txt --max-tokens 4 --context 4 "+
		"--prefill-chunk 3"+model,
		"")
	for i, text := range []string{cpu, cuda} {
		perplexity[i] = resultOf[quality.Result](t, text).Rows[0].Perplexity
	}
	if !(math.Abs(perplexity[0]/perplexity[1]-1) < 1e-4) {
		t.Errorf("perplexity %g on the CPU, %g on the device", perplexity[0], perplexity[1])
	}
	for _, line := range []string{
		"generate -n 3" + model + " --backend cuda --device-memory 64KiB Once",
		"eval --text prompts.txt --max-tokens 4 --context 4 --backend cuda --device-memory 64KiB" +
			model,
		"record -n 3 --limit 1 --prompts prompts.txt -o x.trace.arrow --backend cuda " +
			"--device-memory 64KiB" + model,
		"replay -t tales.trace.arrow --backend cuda --device-memory 64KiB" + model,
	} {
		if o := command(words(t, line)...); o.code != exitUsage || !strings.Contains(o.stderr,
			"the budget is 64KiB, and ") || !strings.Contains(o.stderr, " are needed at least") {
			t.Errorf("%s: exit %d: %s", line, o.code, o.stderr)
		}
	}
	if o := command(words(t,
		"generate -n 3"+model+" --device-memory 64KiB Once")...); o.code != exitUsage ||
		!strings.Contains(o.stderr, "--dram") {
		t.Errorf("device memory for the CPU: exit %d: %s", o.code, o.stderr)
	}
	must(t, words(t, "generate -n 1"+model+" --backend cuda --device-memory 512MiB Once")...)
	both("record -n 3 --limit 1 --prompts prompts.txt --force -o device.trace.arrow"+model, "")
	both("generate -n 3 --oracle device.trace.arrow --window 1 --io pread"+model, "")
	both("replay -t device.trace.arrow --window 1 --io pread --reference-every 0 -o "+
		"device.run.arrow --force"+model, "")
	run, err := traces.ReadRun(t.Context(), "device.run.arrow")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(run.Meta.Warnings, "\n"), "computed on") {
		t.Errorf("the run does not say what computed it: %q", run.Meta.Warnings)
	}
}

// TestProbeGPU: no GPU is exit 4; a stand-in is gone through without a number, and nothing is
// written of it.
func TestProbeGPU(t *testing.T) {
	t.Chdir(t.TempDir())
	preset := must(t, "device", "show", "m1-max")
	write(t, "here.device.yaml", preset)
	t.Setenv(devices.LibraryVariable, "/nowhere/libcuda.so.1")
	for _, c := range []struct {
		line string
		code int
		says string
	}{
		{"probe --backend cuda", exitHost, "no usable CUDA device"},
		{"probe --backend cuda -o here.device.yaml", exitHost, "no usable CUDA device"},
		{"probe . --backend cuda -o new.device.yaml", exitHost, "no usable CUDA device"},
		{"probe --backend cuda -o new.device.yaml", exitUsage, "give PATH too"},
		{"probe --backend cuda --budget 3s", exitUsage, "--budget is about the flash"},
		{"probe --backend gpu", exitUsage, "--backend"},
		{"probe .", exitUsage, "-o names the device file"},
	} {
		if o := command(words(t, c.line)...); o.code != c.code || !strings.Contains(o.stderr,
			c.says) || o.stdout != "" {
			t.Errorf("%s: exit %d, want %d and %q:\n%s%s", c.line, o.code, c.code, c.says, o.stdout,
				o.stderr)
		}
	}
	t.Setenv(devices.LibraryVariable, standin.Open(t).Path())
	if out := must(t, "probe", "--backend", "cuda"); !strings.Contains(out,
		"emulated, no timings") || strings.Contains(out, "GB/s") {
		t.Errorf("on the stand-in: %q", out)
	}
	if out := must(t, "probe", "--backend", "cuda", "--json"); !strings.Contains(out,
		`"emulated": true`) {
		t.Errorf("on the stand-in: %q", out)
	}
	for _, line := range []string{"probe --backend cuda -o here.device.yaml",
		"probe . --backend cuda -o new.device.yaml"} {
		if o := command(words(t, line)...); o.code != exitHost || !strings.Contains(o.stderr,
			"has no clock") {
			t.Errorf("%s: exit %d: %s", line, o.code, o.stderr)
		}
	}
	if data, err := os.ReadFile("here.device.yaml"); err != nil || string(data) != preset {
		t.Errorf("a refused probe changed the file: %v\n%s", err, data)
	}
	if left := names(t, "."); len(left) != 1 {
		t.Errorf("refused probes left %v", left)
	}
}
