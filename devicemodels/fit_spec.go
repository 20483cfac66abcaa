package devicemodels

import (
	"maps"
	"math"

	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/bounds"
	"github.com/windrow-sim/windrow/internal/units"
)

// inside returns the nearest value of a range. Measurements that contradict each other may be
// fitted best by a device that there is not.
func inside(r bounds.Range[int], v float64) int {
	return int(min(max(math.Round(v), float64(r.Least)), float64(r.Most)))
}

// spec writes a candidate as a device.
func (s *search) spec(c candidate) flash.Spec {
	l := s.loop(c.shape, c.theta)
	f := *s.opt.Known
	f.Servers, f.LTFB, f.Align = inside(serverRange, l.Servers),
		toNanos(math.Exp(c.theta[paramLTFB])), s.opt.Align
	f.ServerRate, f.LinkRate = toRate(1/l.PerByte), toRate(1/l.LinkByte)
	switch {
	case c.ceiling:
		f.MaxIOPS = int64(min(digits4(1/l.PerIO), float64(iopsRange.Most)))
	case !s.spread:
		f.MaxIOPS = 0
	}
	f.Placement = c.placement
	if f.Placement == flash.PlaceAny {
		f.Placement = ""
	}
	if f.Placement == flash.PlaceInRounds {
		f.ServerRate = 0
	}
	s.keepFixed(&f)
	if f.Align == 0 {
		f.Align = 4096
	}
	f.Engines = make(map[string]flash.EngineCost, len(s.engines))
	maps.Copy(f.Engines, s.opt.Known.Engines)
	for i := range s.engines {
		h := &s.engines[i]
		if h.fixed {
			continue
		}
		cost := toNanos(h.seconds(c.theta))
		f.Engines[h.name] = flash.EngineCost{Submit: cost / 2, Complete: cost - cost/2,
			Serial: h.serial}
	}
	return f
}

// keepFixed copies the fixed fields without rounding.
func (s *search) keepFixed(f *flash.Spec) {
	known := s.opt.Known
	for _, name := range s.opt.Fixed {
		switch name {
		case "flash.ltfb":
			f.LTFB = known.LTFB
		case "flash.server_rate":
			f.ServerRate = known.ServerRate
		case "flash.link_rate":
			f.LinkRate = known.LinkRate
		case "flash.servers":
			f.Servers = known.Servers
		case "flash.max_iops":
			f.MaxIOPS = known.MaxIOPS
		case "flash.placement":
			f.Placement = known.Placement
		}
	}
}

// toRate rounds a fitted rate; above a petabyte per second it is 0, no limit.
func toRate(r float64) units.Rate {
	if r > float64(rateRange.Most) {
		return 0
	}
	return max(rateRange.Least, units.Rate(digits4(r)))
}

func toNanos(seconds float64) units.Nanos {
	return units.Nanos(digits4(min(seconds*1e9, float64(latencyRange.Most))))
}

// digits4 keeps four significant digits, more than any measurement has, so that people can read a
// device file.
func digits4(v float64) float64 {
	if v < 1 {
		return math.Round(v)
	}
	scale := math.Pow(10, math.Floor(math.Log10(v))-3)
	return math.Round(math.Round(v/scale) * scale)
}
