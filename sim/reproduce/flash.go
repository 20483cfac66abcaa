package reproduce

import (
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/units"
)

// Presets of the machines of LLM in a flash.
const (
	m1CPU   = "m1-max"
	m1Metal = "m1-max-metal"
	m2Metal = "m2-ultra"
	rtx     = "rtx4090-linux"
)

// rate simulates reads of one size at random places with so many threads, on the flash of a preset,
// and returns their rate in GB/s.
func (s *study) rate(preset string, chunk units.Bytes, depth int) float64 {
	const total, most = 4 * units.GiB, 1 << 15
	device, err := s.device(preset)
	if err != nil {
		s.fail(err)
		return 0
	}
	station, err := flash.NewStation(device.Flash, flash.Config{Engine: ioengine.Pread,
		Parallel: depth, Cores: device.Host.Cores, Span: 2 * total})
	if err != nil {
		s.fail(err)
		return 0
	}
	reads := make([]flash.Read, min(total/chunk, most))
	for i := range reads {
		reads[i] = flash.Read{Offset: units.Bytes(i) * 2 * chunk, Length: chunk}
	}
	batch, err := station.Batch(0, reads)
	if err != nil {
		s.fail(err)
		return 0
	}
	return float64((units.Bytes(len(reads)) * chunk).Over(batch.End)) / 1e9
}

// sequential is the rate of one long read.
func (s *study) sequential(preset string) float64 { return s.rate(preset, units.GiB, 1) }

// flash adds the rows of throughputs. Numbers that the presets are fitted to are their cells.
func (s *study) flash() error {
	const cells = "flash.ltfb and flash.server_rate of m1-max: a cell of its fit"
	s.calibrate("flash/seq", "M1 Max, sequential", s.sequential(m1CPU), "flash.link_rate of m1-max")
	fit := tolerance{5, "a fit of two numbers to four cells"}
	for _, c := range []struct {
		id, what string
		chunk    units.Bytes
	}{
		{"flash/8k", "M1 Max, 8 KiB, 32 threads", 8 * units.KiB},
		{"flash/16k", "M1 Max, 16 KiB, 32 threads", 16 * units.KiB},
		{"flash/32k", "M1 Max, 32 KiB, 32 threads", 32 * units.KiB},
		{"flash/35k5", "M1 Max, 35.5 KiB, 32 threads", 36352},
	} {
		row := s.calibrate(c.id, c.what, s.rate(m1CPU, c.chunk, threads), cells)
		row.TolerancePercent, row.Why = fit.percent, fit.why
	}
	read := []Input{other("flash", "of the preset m1-max", "fitted to the four rows above")}
	figure := tolerance{15, "read off a figure"}
	s.row(Simulated, "flash/64k-32", "M1 Max, 64 KiB, 32 threads",
		s.rate(m1CPU, 64*units.KiB, threads), figure, read)
	s.calibrate("flash/4k-2", "M1 Max, 4 KiB, 2 threads", s.rate(m1CPU, 4*units.KiB, 2),
		"flash.servers of m1-max").TolerancePercent = figure.percent
	s.row(Simulated, "flash/16k-fig", "M1 Max, 16 KiB, threads not stated",
		s.rate(m1CPU, 16*units.KiB, threads), figure, read)
	s.row(Simulated, "flash/32k-fig", "M1 Max, 32 KiB, threads not stated",
		s.rate(m1CPU, 32*units.KiB, threads), figure, read)
	s.calibrate("flash/m2-seq", "M2 Ultra, sequential", s.sequential(m2Metal),
		"flash.link_rate of m2-ultra")
	s.without("flash/m2-16k", "M2 Ultra, 16 KiB, 32 threads", "I14: above the drive's own "+
		"sequential rate, so that the volume of that run is not known. The preset m2-ultra is "+
		"a limit.")
	s.calibrate("flash/linux-16k", "Linux machine, 16 KiB, 32 threads",
		s.rate(rtx, 16*units.KiB, threads), "flash.ltfb and flash.link_rate of rtx4090-linux")
	return nil
}
