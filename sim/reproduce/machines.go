package reproduce

import (
	"fmt"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/units"
)

// The machines of LLM in a flash, as workloads name them.
const (
	m1CPU   = "M1 Max, CPU"
	m1Metal = "M1 Max, Metal"
	m2Metal = "M2 Ultra, Metal"
	rtx     = "RTX 4090"
)

// machines are the calibrated machines.
type machines struct {
	devices map[string]*devicemodels.Device
	m1Reads []Input // the numbers that calibrate the flash of the M1 Max
}

// calibrateMachines sets up the machines of LLM in a flash. All other parameters are the preset's.
// Costs of the host other than the dense rate are calibrated beside the rows that fix them.
func (s *study) calibrateMachines() (*machines, error) {
	m := &machines{devices: map[string]*devicemodels.Device{}}
	m1, err := devicemodels.Preset("m1-max")
	if err != nil {
		return nil, err
	}
	m1.Flash.LinkRate = s.rate("table2/naive/throughput")
	if err := calibrateReads(&m1.Flash, s.rate("table2/windowing/throughput"),
		s.rate("table2/bundling/throughput")); err != nil {
		return nil, err
	}
	m.m1Reads = []Input{
		calibrated("flash.link_rate", m1.Flash.LinkRate.String(), "table2/naive/throughput"),
		calibrated("flash.ltfb", m1.Flash.LTFB.String(), "table2/windowing/throughput"),
		calibrated("flash.server_rate", m1.Flash.ServerRate.String(), "table2/bundling/throughput"),
	}
	m.devices[m1CPU], m.devices[m1Metal] = m1, m1
	m2, err := devicemodels.Preset("m2-ultra")
	if err != nil {
		return nil, err
	}
	m2.Flash = m1.Flash // random reads of the M2 Ultra are not published in a usable form
	m2.Flash.LinkRate = s.rate("flash/m2-seq")
	m.devices[m2Metal] = m2
	if m.devices[rtx], err = devicemodels.Preset("rtx4090-linux"); err != nil {
		return nil, err
	}
	return m, nil
}

// The sizes of reads behind Table 2: a row and a bundle of OPT-6.7B in fp16.
const (
	rowBytes    = 8192
	bundleBytes = 2 * rowBytes
)

// calibrateReads sets the latency to first byte and the server rate of a device. A loop that keeps
// all its servers busy then reads rows and bundles at the two rates. k servers take c/rate = (LTFB
// + c/ServerRate)/k per read of c bytes: two equations for two unknowns.
func calibrateReads(spec *flash.Spec, rows, bundles units.Rate) error {
	k := float64(spec.Servers)
	one, two := k*rowBytes/float64(rows), k*bundleBytes/float64(bundles) // seconds
	perByte := (two - one) / rowBytes
	if !(perByte > 0 && one > perByte*rowBytes) {
		return fmt.Errorf("rates of %v for rows and %v for bundles are not of a latency and a rate",
			rows, bundles)
	}
	spec.ServerRate = units.Rate(1 / perByte)
	spec.LTFB = units.FromSeconds(one - perByte*rowBytes)
	return nil
}

// dense is the term of resident mat-vecs with weights of a precision, at a calibrated rate.
func dense(rate units.Rate, precision string) devicemodels.Term {
	host := devicemodels.Host{DenseRate: rate, Precisions: map[string]devicemodels.Precision{
		precision: {DenseRate: rate}}}
	return host.At(precision).Dense
}

// sequential is the closed form of large reads.
func sequential(d *devicemodels.Device) units.Rate {
	const chunk = units.MiB
	return d.Flash.Throughput(ioengine.Pread, d.Host.Cores, chunk, threads)
}

// flash adds the rows of throughputs.
func (s *study) flash() error {
	m1, cores := &s.machines.devices[m1CPU].Flash, s.machines.devices[m1CPU].Host.Cores
	at := func(chunk units.Bytes, depth int) float64 {
		return float64(m1.Throughput(ioengine.Pread, cores, chunk, depth)) / 1e9
	}
	s.calibrate("flash/seq", "M1 Max, sequential",
		float64(sequential(s.machines.devices[m1CPU]))/1e9, "flash.link_rate (as Table 2, naive)")
	s.calibrate("flash/8k", "M1 Max, 8 KiB, 32 threads", at(rowBytes, threads),
		"flash.ltfb (as Table 2, windowing)")
	s.calibrate("flash/16k", "M1 Max, 16 KiB, 32 threads", at(bundleBytes, threads),
		"flash.server_rate (as Table 2, bundling)")
	s.predict("flash/32k", "M1 Max, 32 KiB, 32 threads", at(32*units.KiB, threads), 10,
		s.machines.m1Reads...)
	s.predict("flash/35k5", "M1 Max, 35.5 KiB, 32 threads", at(36352, threads), 10,
		s.machines.m1Reads...)
	s.predict("flash/64k-32", "M1 Max, 64 KiB, 32 threads", at(64*units.KiB, threads), 15,
		s.machines.m1Reads...)
	servers := other("flash.servers", fmt.Sprint(m1.Servers),
		"preset m1-max: chosen with this reading in sight, so that this row is a weak prediction")
	s.predict("flash/4k-2", "M1 Max, 4 KiB, 2 threads", at(4*units.KiB, 2), 15,
		append([]Input{servers}, s.machines.m1Reads...)...)
	s.predict("flash/16k-fig", "M1 Max, 16 KiB, threads not stated", at(16*units.KiB, threads), 15,
		s.machines.m1Reads...)
	s.predict("flash/32k-fig", "M1 Max, 32 KiB, threads not stated", at(32*units.KiB, threads), 15,
		s.machines.m1Reads...)
	m2 := s.machines.devices[m2Metal]
	s.calibrate("flash/m2-seq", "M2 Ultra, sequential", float64(sequential(m2))/1e9,
		"flash.link_rate of the M2 Ultra")
	s.predict("flash/m2-16k", "M2 Ultra, 16 KiB, 32 threads",
		float64(m2.Flash.Throughput(ioengine.Pread,
			m2.Host.Cores, bundleBytes, threads))/1e9, 10,
		append([]Input{other("flash", "that of the M1 Max",
			"assumed: not published in a usable form")}, s.machines.m1Reads...)...)
	linux := s.machines.devices[rtx]
	s.calibrate("flash/linux-16k", "Linux machine, 16 KiB, 32 threads",
		float64(linux.Flash.Throughput(ioengine.Pread, linux.Host.Cores, bundleBytes, threads))/1e9,
		"flash.ltfb and flash.link_rate of the preset rtx4090-linux")
	return nil
}
