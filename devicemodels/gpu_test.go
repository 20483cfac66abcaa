package devicemodels

import (
	"errors"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
)

// sampleGPU is a made-up GPU with every field set.
func sampleGPU() *GPU {
	return &GPU{
		Model: "made up", Memory: 24 * units.GiB,
		TransferRate: 25 * units.GBps, TransferFixed: 7 * units.Microsecond, ScatterRate: 22 *
			units.GBps, ScatterFixed: 6 * units.Microsecond,
		MoveRate: 400 * units.GBps, MoveFixed: 3 * units.Microsecond, DenseRate: 800 * units.GBps,
		DenseFixed: 4 * units.Microsecond,
		RowRate:    600 * units.GBps, RowFixed: 9 * units.Microsecond, KVRate: 700 * units.GBps,
		KVFixed:     5 * units.Microsecond,
		KernelFixed: 2 * units.Microsecond, LaunchFixed: 3500, SyncFixed: 8 * units.Microsecond,
		Precisions: map[string]Precision{"q8": {DenseRate: 700 * units.GBps, RowRate: 500 *
			units.GBps}},
		Samples: []GPUSample{{
			Of: "dense", Kind: SampleMeasured, Shape: "4096 x 4096 f16", Bytes: 32 * units.MiB,
			Time: 46 * units.Microsecond, SpreadPct: 1.5, Runs: 20, Model: 45943,
		}},
	}
}

func TestGPUIsChecked(t *testing.T) {
	for says, spoil := range map[string]func(d *Device){
		"gpu.model":        func(d *Device) { d.GPU.Model = "" },
		"gpu.memory":       func(d *Device) { d.GPU.Memory = 0 },
		"gpu.dense_rate":   func(d *Device) { d.GPU.DenseRate = 0 },
		"gpu.scatter_rate": func(d *Device) { d.GPU.ScatterRate = -1 },
		"gpu.kv_rate":      func(d *Device) { d.GPU.KVRate = gpuRateRange.Most + 1 },
		"gpu.sync_fixed":   func(d *Device) { d.GPU.SyncFixed = -1 },
		"gpu.launch_fixed": func(d *Device) { d.GPU.LaunchFixed = gpuFixedRange.Most + 1 },
		"gpu.precisions": func(d *Device) {
			d.GPU.Precisions["f64"] = Precision{
				DenseRate: 1}
		},
		"gpu.samples[0].of":             func(d *Device) { d.GPU.Samples[0].Of = "thinking" },
		"gpu.samples[0].kind":           func(d *Device) { d.GPU.Samples[0].Kind = "guessed" },
		"gpu.samples[0].time":           func(d *Device) { d.GPU.Samples[0].Time = 0 },
		"gpu.samples[0].spread_percent": func(d *Device) { d.GPU.Samples[0].SpreadPct = -1 },
		"gpu.samples[0].runs":           func(d *Device) { d.GPU.Samples[0].Runs = 0 },
		"where the numbers of the GPU":  func(d *Device) { delete(d.Sources, "gpu") },
	} {
		d := sample()
		if err := d.Validate(); err != nil {
			t.Fatal(err)
		}
		spoil(d)
		if err := d.Validate(); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

func TestGPUFileIsStrict(t *testing.T) {
	data, err := Marshal(sample())
	if err != nil {
		t.Fatal(err)
	}
	for old, changed := range map[string]string{
		"  scatter_rate: ":    "  scater_rate: ",
		"launch_fixed: 3.5us": "launch_fixed: 3.5",
	} {
		text := strings.Replace(string(data), old, changed, 1)
		if text == string(data) {
			t.Fatalf("the file has no %q:\n%s", old, data)
		}
		if _, err := Parse("x.device.yaml", []byte(text)); !errors.Is(err, ErrFormat) ||
			!strings.Contains(err.Error(), "x.device.yaml:") {
			t.Errorf("%q: %v, want an error with its line", changed, err)
		}
	}
}

func TestGPUPrecisions(t *testing.T) {
	g, host := sampleGPU(), &sample().Host
	for name, want := range map[string]struct {
		rate  units.Rate
		basis Basis
	}{"": {800 * units.GBps, Measured}, "F16": {800 * units.GBps, Measured},
		"q8": {700 * units.GBps, Measured}, "f32": {800 * units.GBps, Scaled}} {
		c := g.At(name, host)
		if c.Dense.Rate != want.rate || c.Dense.Basis != want.basis {
			t.Errorf("%q: dense at %v, %v", name, c.Dense.Rate, c.Dense.Basis)
		}
		if c.Predictor != host.At(name).Predictor {
			t.Errorf("%q: predictors run on the host, not at %v", name, c.Predictor)
		}
	}
}
