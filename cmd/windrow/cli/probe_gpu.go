package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/cmd/windrow/devices"
	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/replay/probe/gpu"
)

// probesGPU reads --backend of probe.
func probesGPU(c *cli.Context) (bool, error) {
	switch name := c.String("backend"); name {
	case "cpu":
		return false, nil
	case "cuda":
		return true, nil
	default:
		return false, usageError("--backend %q: probe measures the host always, and with cuda a "+
			"GPU too", name)
	}
}

// probeGPU measures the GPU of this machine. A device without a clock is gone through without
// numbers, which nothing may be written of: the result is nil then.
func (e *env) probeGPU(c *cli.Context) (g *devicemodels.GPU, err error) {
	d, err := devices.CUDA()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if err := gpu.Clock(d); errors.Is(err, gpu.ErrNoClock) {
		if c.IsSet("out") {
			return nil, fmt.Errorf("%w; without -o and PATH every call is made once as a check, "+
				"and no number comes of it", err)
		}
		calls, err := gpu.Check(c.Context, d)
		if err != nil {
			return nil, err
		}
		return nil, e.put(c, checkDocument(d.Facts.Name, calls))
	} else if err != nil {
		return nil, err
	}
	e.note("%s: %v of memory", d.Facts.Name, d.Facts.Memory)
	p := e.startProgress("probe GPU")
	defer p.done()
	return gpu.Measure(c.Context, d, gpu.Options{Progress: p.update})
}

// checkDocument describes a device without a clock.
func checkDocument(device string, calls int) *document.Document {
	return &document.Document{Name: "probe-check", Title: "windrow probe",
		Headline: fmt.Sprintf("%s: emulated, no timings: %d calls work", device, calls),
		Result:   map[string]any{"device": device, "emulated": true, "calls": calls}}
}

// flashOnly are the flags of a probe that measure what PATH is on.
func flashOnly() []string {
	return []string{"budget", "io", "chunks", "depths", "file-size", "max-drift", "trace", "mmap",
		"samples", "resume"}
}

// probeGPUAlone is probe --backend cuda without PATH: into the device file that is there, or just
// shown.
func (e *env) probeGPUAlone(c *cli.Context) error {
	for _, name := range flashOnly() {
		if c.IsSet(name) {
			return usageError("--%s is about the flash: give PATH to measure that too", name)
		}
	}
	var device *devicemodels.Device
	if out := c.String("out"); c.IsSet("out") {
		if err := checkOutput(out, ""); err != nil {
			return err
		}
		if err := e.claimFile(out, true); err != nil {
			return err
		}
		if _, err := os.Stat(out); err != nil {
			return usageError("%s does not exist yet: give PATH too, to measure the flash that "+
				"it describes; without -o the GPU is only shown", out)
		}
		var err error
		if device, err = devicemodels.Load(c.Context, out); err != nil {
			return err
		}
	}
	g, err := e.probeGPU(c)
	if err != nil || g == nil {
		return err
	}
	if device != nil {
		gpu.Put(device, g, e.now())
		if name := c.String("name"); name != "" {
			device.Name = name
		}
		if err := devicemodels.Save(c.String("out"), device); err != nil {
			return err
		}
	}
	return e.put(c, gpuDocument(g))
}

// gpuDocument describes a GPU alone.
func gpuDocument(g *devicemodels.GPU) *document.Document {
	d := &document.Document{Name: "probe-gpu", Title: "windrow probe", Result: g,
		Headline: fmt.Sprintf("%s: %v of memory", g.Model, g.Memory)}
	addGPUSections(d, g)
	return d
}

// addGPUSections puts the samples of a GPU beside what the numbers made of them say.
func addGPUSections(d *document.Document, g *devicemodels.GPU) {
	d.Fact("GPU", "%s: dense mat-vec %v, rows %v, keys and values %v, scatter %v, transfer %v; "+
		"launch %v, wait %v", g.Model, g.DenseRate, g.RowRate, g.KVRate, g.ScatterRate,
		g.TransferRate, g.LaunchFixed, g.SyncFixed)
	t := document.NewTable(document.Text("of"), document.Text("shape"),
		document.Number("measured", "us"), document.Number("+/-", "%"),
		document.Number("rate", "GB/s"), document.Number("model", "us"))
	for i := range g.Samples {
		s := &g.Samples[i]
		rate := ""
		if s.Bytes > 0 {
			rate = document.Sig3(float64(s.Rate()) / 1e9)
		}
		t.Add(s.Of, s.Shape, document.Sig3(float64(s.Time)/1e3), document.Sig3(s.SpreadPct), rate,
			document.Sig3(float64(s.Model)/1e3))
	}
	d.Add("Samples of the GPU", "", *t)
}
