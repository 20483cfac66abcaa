package gpu

import (
	"fmt"
	"math"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/units"
)

// fit makes a device of samples: a line over the sizes of every kind of call, and the median of
// those that have one size.
func fit(samples []sample) (*devicemodels.GPU, error) {
	g := &devicemodels.GPU{Precisions: map[string]devicemodels.Precision{}}
	lines := []struct {
		of    string
		fixed *units.Nanos
		rate  *units.Rate
	}{
		{"transfer", &g.TransferFixed, &g.TransferRate}, {"scatter", &g.ScatterFixed,
			&g.ScatterRate}, {"move", &g.MoveFixed, &g.MoveRate},
		{"dense", &g.DenseFixed, &g.DenseRate}, {"rows", &g.RowFixed, &g.RowRate},
		{"kv", &g.KVFixed, &g.KVRate},
	}
	for _, line := range lines {
		var err error
		if *line.fixed, *line.rate, err = lineOver(samples, line.of); err != nil {
			return nil, err
		}
	}
	kernel, launch, waited := single(samples, "kernel"), single(samples, "launch"), single(samples,
		"sync")
	if kernel == 0 || launch == 0 || waited == 0 {
		return nil, fmt.Errorf("a kernel, its launch and waiting for it take %v, %v and %v; "+
			"each must be measured", kernel, launch, waited)
	}
	// Who waits for a launch has asked for it, and the device has done it.
	g.KernelFixed, g.LaunchFixed, g.SyncFixed = digits4(kernel), digits4(launch),
		digits4(max(waited-launch-kernel, 0))
	for i := range samples {
		if s := &samples[i]; s.precision != "" {
			p := g.Precisions[s.precision]
			switch s.of {
			case "dense":
				p.DenseRate = beyond(s, g.DenseFixed)
			case "rows":
				p.RowRate = beyond(s, g.RowFixed)
			}
			g.Precisions[s.precision] = p
		}
	}
	for i := range samples {
		s := &samples[i]
		g.Samples = append(g.Samples, devicemodels.GPUSample{
			Of: s.of, Kind: devicemodels.SampleMeasured, Shape: s.shape, Bytes: s.bytes,
			Time: s.took, SpreadPct: s.spread, Runs: s.runs, Model: modelOf(g, s),
		})
	}
	return g, nil
}

// beyond is the rate of what a call takes beyond its fixed time.
func beyond(s *sample, fixed units.Nanos) units.Rate {
	return digits4(s.bytes.Over(max(s.took-fixed, 1)))
}

// modelOf is what a device says of a sample.
func modelOf(g *devicemodels.GPU, s *sample) units.Nanos {
	c := g.At(s.precision, &devicemodels.Host{})
	switch s.of {
	case "transfer":
		return g.TransferFixed + g.TransferRate.Time(s.bytes)
	case "scatter":
		return c.Transfer.Time(s.bytes, 1)
	case "move":
		return c.Copy.Time(s.bytes, 1)
	case "dense":
		return c.Dense.Time(s.bytes, 1)
	case "rows":
		return c.Rows.Time(s.bytes, 1)
	case "kv":
		return c.KV.Time(s.bytes, 1)
	case "kernel":
		return g.KernelFixed
	case "launch":
		return g.LaunchFixed
	}
	return g.LaunchFixed + g.KernelFixed + g.SyncFixed
}

// Worst is by how many percent the numbers of a device miss its worst sample, and which that is.
func Worst(g *devicemodels.GPU) (percent float64, sample *devicemodels.GPUSample) {
	for i := range g.Samples {
		s := &g.Samples[i]
		if off := 100 * math.Abs(float64(s.Model)/float64(s.Time)-1); sample == nil ||
			off > percent {
			percent, sample = off, s
		}
	}
	return percent, sample
}

func single(samples []sample, of string) units.Nanos {
	for i := range samples {
		if samples[i].of == of {
			return samples[i].took
		}
	}
	return 0
}

// lineOver fits time = fixed + bytes/rate to the samples of one kind in the device's own precision:
// least squares of relative errors, so that each size counts as much. Where that makes the fixed
// part negative, there is none, and the line goes through the origin.
func lineOver(samples []sample, of string) (fixed units.Nanos, rate units.Rate, err error) {
	var sums struct{ w, x, y, xx, xy float64 } // weighted with 1/time²
	n := 0
	for i := range samples {
		s := &samples[i]
		if s.of != of || s.precision != "" {
			continue
		}
		n++
		x, y := float64(s.bytes), float64(s.took)
		w := 1 / (y * y)
		sums.w, sums.x, sums.y, sums.xx, sums.xy = sums.w+w, sums.x+w*x, sums.y+w*y, sums.xx+w*x*x,
			sums.xy+w*x*y
	}
	if n < 2 {
		return 0, 0, fmt.Errorf("%s: %d sizes fit into the memory of the device, a line needs "+
			"2; end what else uses it", of, n)
	}
	slope := (sums.w*sums.xy - sums.x*sums.y) / (sums.w*sums.xx - sums.x*sums.x)
	intercept := (sums.y - slope*sums.x) / sums.w
	if intercept < 0 {
		slope, intercept = sums.xy/sums.xx, 0
	}
	if !(slope > 0) {
		return 0, 0, fmt.Errorf("%s: more bytes do not take longer; something else disturbs the "+
			"device: measure again", of)
	}
	return digits4(units.Nanos(math.Round(intercept))),
		digits4(units.Rate(math.Round(1e9 / slope))), nil
}

// digits4 keeps four significant digits, more than the measurement has, so that people can read the
// device file.
func digits4[T units.Rate | units.Nanos](v T) T {
	scale := T(1)
	for v/scale >= 10_000 {
		scale *= 10
	}
	return (v + scale/2) / scale * scale
}
