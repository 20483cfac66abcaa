package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/windrow-sim/windrow/cmd/windrow/report"
	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/replay/probe/gpu"
	"github.com/windrow-sim/windrow/sim/answers"
	"github.com/windrow-sim/windrow/traces"
)

// gpuFixture is a device model with a made-up GPU.
const gpuFixture = "devicemodels/testdata/made-up-gpu.device.yaml"

// TestSimulateOnGPU: a model without a GPU is refused with the remedy, and with one every verb that
// simulates computes on it.
func TestSimulateOnGPU(t *testing.T) {
	workspace(t)
	linkFixture(t, gpuFixture, "gpu.device.yaml")
	for _, line := range []string{
		"sim -t tiny.trace.arrow -d m1-max --backend cuda",
		"plan -t tiny.trace.arrow -d m1-max --backend cuda --dram 80%",
	} {
		if o := command(words(t, line)...); o.code != exitUsage || !strings.Contains(o.stderr,
			"windrow probe --backend cuda") {
			t.Errorf("%s: exit %d: %s", line, o.code, o.stderr)
		}
	}
	for line, says := range map[string]string{
		"sim -t tiny.trace.arrow -d gpu.device.yaml --backend gpu": "cpu and cuda",
		"sim -t tiny.trace.arrow -d gpu.device.yaml --observed": "observed, but the host " +
			"computes",
	} {
		if o := command(words(t, line)...); o.code != exitUsage || !strings.Contains(o.stderr,
			says) {
			t.Errorf("%s: exit %d: %s", line, o.code, o.stderr)
		}
	}
	wall := map[string]float64{}
	for name, flags := range map[string]string{"host": "", "free": " --backend cuda",
		"observed": " --backend cuda --observed"} {
		must(t,
			words(t, "sim -t tiny.trace.arrow -d gpu.device.yaml --force -o a.run.arrow"+flags)...)
		run, err := traces.ReadRun(t.Context(), "a.run.arrow")
		if err != nil {
			t.Fatal(err)
		}
		wall[name] = run.Meta.Totals.Wall.Seconds()
		var cfg struct {
			Backend  string
			Observed bool
		}
		if err := json.Unmarshal(run.Meta.Config, &cfg); err != nil ||
			(cfg.Backend == "cuda") != (name != "host") || cfg.Observed != (name == "observed") {
			t.Errorf("%s: the run says %+v, %v", name, cfg, err)
		}
	}
	if !(wall["free"] < wall["observed"] && wall["observed"] < wall["host"]) {
		t.Errorf("a GPU that is ten times as fast as the host, waited for and not: %v", wall)
	}

	plan := resultOf[answers.Plan](t, must(t, words(t, "plan -t tiny.trace.arrow "+
		"-d gpu.device.yaml --backend cuda --dram 90% --others m1-max --json")...))
	var names []string
	for _, s := range plan.Sensitivities {
		names = append(names, s.Name)
	}
	if text := strings.Join(names, ", "); !strings.Contains(text, "scatter to the GPU") ||
		strings.Contains(text, "row copies") {
		t.Errorf("speed depends on %s", text)
	}

	write(t, "s.yaml", "trace: {file: tiny.trace.arrow}\nwindows: [1, 3]\n"+
		"devices: gpu.device.yaml\nbackends: [cpu, cuda]\n")
	out := must(t, words(t, "sweep s.yaml -o r.jsonl --csv r.csv")...)
	saysAll(t, out, "made-up-gpu (cuda)", "4 configurations")
	write(t, "s.yaml", "trace: {file: tiny.trace.arrow}\nwindows: 1\ndevices: m1-max\n"+
		"backends: cuda\n")
	if o := command(words(t, "sweep s.yaml -o x.jsonl")...); o.code != exitUsage ||
		!strings.Contains(o.stderr, "windrow probe --backend cuda") {
		t.Errorf("a sweep without a GPU: exit %d: %s", o.code, o.stderr)
	}
}

// TestAddGPU: what a probe measured makes a valid device file that says where each number comes
// from.
func TestAddGPU(t *testing.T) {
	t.Chdir(t.TempDir())
	linkFixture(t, gpuFixture, "gpu.device.yaml")
	from, err := devicemodels.Load(t.Context(), "gpu.device.yaml")
	if err != nil {
		t.Fatal(err)
	}
	to, err := devicemodels.Preset("m1-max")
	if err != nil {
		t.Fatal(err)
	}
	gpu.Put(to, from.GPU, time.Unix(0, 0))
	if err := devicemodels.Save("new.device.yaml", to); err != nil {
		t.Fatal(err)
	}
	again, err := devicemodels.Load(t.Context(), "new.device.yaml")
	if err != nil || again.GPU == nil || !strings.Contains(again.Sources["gpu"],
		"1970-01-01T00:00:00Z") || !strings.Contains(again.Sources["gpu"], "missed by 0.133 %") ||
		!strings.HasPrefix(again.Sources["gpu.dense_rate"], "fit: a line over") {
		t.Errorf("%v: %q", err, again.Sources["gpu"])
	}
	var out strings.Builder
	if err := report.Write(&out, gpuDocument(from.GPU),
		report.Options{Format: "text"}); err != nil || !strings.Contains(out.String(), "195") ||
		!strings.Contains(out.String(), "8GiB of memory") {
		t.Errorf("%v\n%s", err, out.String())
	}
}
