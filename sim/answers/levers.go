package answers

import (
	"maps"
	"math"
	"slices"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
)

// lever is a parameter of a device that can be better or worse.
type lever struct {
	name string
	unit string // "B/s", "ns", "IOPS", times, or "" for a number
	// value is the present value; 0 = the device does not have the parameter, or it is no limit.
	value func(d *devicemodels.Device) float64
	// inverse levers are better if smaller.
	inverse bool
	whole   bool // only whole numbers
	// set multiplies the value by a factor, on a copy.
	set func(d *devicemodels.Device, factor float64)
	// on is the one backend that uses the parameter; anyBackend = all.
	on sim.Backend
}

// anyBackend marks levers of all backends.
const anyBackend sim.Backend = "any"

// leversOf returns the levers of a backend.
func leversOf(backend sim.Backend) []lever {
	return slices.DeleteFunc(levers(), func(l lever) bool {
		return l.on != anyBackend &&
			l.on != backend
	})
}

// The units of levers without a physical unit: a multiple of the present value, and a share of 1.
const (
	times = "times"
	share = "share"
)

// levers are all levers, in the order of reports.
func levers() []lever {
	link := func(d *devicemodels.Device, f float64) { scaleRate(&d.Flash.LinkRate, f) }
	server := func(d *devicemodels.Device, f float64) { scaleRate(&d.Flash.ServerRate, f) }
	// its distribution is relative to it
	ltfb := func(d *devicemodels.Device, f float64) { scaleTime(&d.Flash.LTFB, f) }
	iops := func(d *devicemodels.Device, f float64) { scaleIOPS(&d.Flash, f) }
	return []lever{
		{name: "link rate", on: anyBackend, unit: "B/s", set: link,
			value: func(d *devicemodels.Device) float64 { return float64(d.Flash.LinkRate) }},
		{name: "rate of a server", on: anyBackend, unit: "B/s", set: server,
			value: func(d *devicemodels.Device) float64 { return float64(d.Flash.ServerRate) }},
		{name: "LTFB", on: anyBackend, unit: "ns", inverse: true, set: ltfb,
			value: func(d *devicemodels.Device) float64 { return float64(d.Flash.LTFB) }},
		{name: "servers", on: anyBackend, whole: true, value: func(d *devicemodels.Device) float64 {
			if d.Flash.Placement == flash.PlaceInRounds {
				return 0 // they do not count
			}
			return float64(d.Flash.Servers)
		}, set: func(d *devicemodels.Device, f float64) {
			d.Flash.Servers = max(int(math.Round(float64(d.Flash.Servers)*f)), 1)
		}},
		{name: "request limit", on: anyBackend, unit: "IOPS", set: iops,
			value: func(d *devicemodels.Device) float64 { return float64(d.Flash.MaxIOPS) }},
		{name: "processor time per read", on: anyBackend, unit: "ns", inverse: true,
			set: scaleEngines, value: func(d *devicemodels.Device) float64 {
				most := units.Nanos(0)
				for _, c := range d.Flash.Engines {
					most = max(most, c.Submit+c.Complete)
				}
				return float64(most)
			}},
		{name: "all of the flash", on: anyBackend, unit: times,
			value: func(*devicemodels.Device) float64 { return 1 },
			set: func(d *devicemodels.Device, f float64) {
				link(d, f)
				server(d, f)
				iops(d, f)
				ltfb(d, 1/f)
				scaleEngines(d, 1/f)
			}},
		{name: "compute", unit: times, value: func(d *devicemodels.Device) float64 {
			return min(float64(d.Host.Cores), 1)
		}, set: func(d *devicemodels.Device, f float64) {
			scaleHost(&d.Host, f)
		}},
		{name: "row copies", unit: "B/s", value: func(d *devicemodels.Device) float64 {
			return float64(d.Host.CopyRate)
		}, set: func(d *devicemodels.Device, f float64) {
			scaleRate(&d.Host.CopyRate, f)
		}},
		{name: "compute of host and GPU", unit: times, on: sim.OnCUDA,
			value: func(*devicemodels.Device) float64 { return 1 },
			set: func(d *devicemodels.Device, f float64) {
				scaleHost(&d.Host, f)
				scaleGPU(d.GPU, f)
			}},
		{name: "scatter to the GPU", unit: "B/s", on: sim.OnCUDA,
			value: func(d *devicemodels.Device) float64 { return float64(d.GPU.ScatterRate) },
			set: func(d *devicemodels.Device, f float64) {
				scaleRate(&d.GPU.ScatterRate, f)
			}},
	}
}

// ends are the factors one step below and one step above, for central differences. Whole numbers
// move by at least one.
func (l *lever) ends(now, step float64) (low, high float64) {
	if !l.whole {
		return 1 - step, 1 + step
	}
	by := max(math.Round(now*step), 1)
	return max(now-by, 1) / now, (now + by) / now
}

// moved returns a copy of the device with the lever at factor times its value.
func (l *lever) moved(d *devicemodels.Device, factor float64) *devicemodels.Device {
	out := *d
	out.Flash.Engines = maps.Clone(d.Flash.Engines)
	out.Flash.Spans = append([]flash.Span(nil), d.Flash.Spans...)
	out.Host.Precisions = maps.Clone(d.Host.Precisions)
	if d.GPU != nil {
		gpu := *d.GPU
		gpu.Precisions = maps.Clone(gpu.Precisions)
		out.GPU = &gpu
	}
	l.set(&out, factor)
	return &out
}

// scaleRate scales a rate. It leaves "no limit" as it is and keeps a limit a limit.
func scaleRate(r *units.Rate, f float64) {
	if *r > 0 {
		*r = units.Rate(max(math.Round(float64(*r)*f), 1))
	}
}

// scaleIOPS scales the IOPS of the device, and those of its short spans.
func scaleIOPS(s *flash.Spec, f float64) {
	scale := func(v *int64) {
		if *v > 0 {
			*v = int64(max(math.Round(float64(*v)*f), 1))
		}
	}
	scale(&s.MaxIOPS)
	for i := range s.Spans {
		scale(&s.Spans[i].MaxIOPS)
	}
}

func scaleTime(t *units.Nanos, f float64) { *t = units.Nanos(math.Round(float64(*t) * f)) }

// scaleEngines scales the host's time per request and batch, of all engines.
func scaleEngines(d *devicemodels.Device, f float64) {
	for name, c := range d.Flash.Engines {
		scaleTime(&c.Batch, f)
		scaleTime(&c.Submit, f)
		scaleTime(&c.Complete, f)
		d.Flash.Engines[name] = c
	}
}

// scaleHost makes a host f times as fast, with copies and decisions.
func scaleHost(h *devicemodels.Host, f float64) {
	for _, r := range []*units.Rate{&h.MemoryRate, &h.DenseRate, &h.RowRate, &h.CopyRate, &h.KVRate,
		&h.PredictorRate, &h.TransferRate, &h.HeldRate} {
		scaleRate(r, f)
	}
	for _, t := range []*units.Nanos{&h.DenseFixed, &h.RowFixed, &h.CopyFixed, &h.LayerFixed,
		&h.TokenFixed, &h.DecideFixed, &h.DecideUnit, &h.TransferFixed, &h.SyncFixed} {
		scaleTime(t, 1/f)
	}
	h.ComputeGFLOPS *= f
	scalePrecisions(h.Precisions, f)
}

func scalePrecisions(list map[string]devicemodels.Precision, f float64) {
	for name, p := range list {
		scaleRate(&p.DenseRate, f)
		scaleRate(&p.RowRate, f)
		list[name] = p
	}
}

// scaleGPU makes a GPU f times as fast, with its bus and its launches.
func scaleGPU(g *devicemodels.GPU, f float64) {
	for _, r := range []*units.Rate{&g.TransferRate, &g.ScatterRate, &g.MoveRate, &g.DenseRate,
		&g.RowRate, &g.KVRate} {
		scaleRate(r, f)
	}
	for _, t := range []*units.Nanos{
		&g.TransferFixed, &g.ScatterFixed, &g.MoveFixed, &g.DenseFixed, &g.RowFixed, &g.KVFixed,
		&g.KernelFixed, &g.LaunchFixed, &g.SyncFixed,
	} {
		scaleTime(t, 1/f)
	}
	scalePrecisions(g.Precisions, f)
}
