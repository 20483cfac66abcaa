package reproduce

import (
	"fmt"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/units"
)

// tolerances of Tables 3 and 5, in percent.
const (
	baselineTolerance = 5  // naive and hybrid: theoretical reads, and one rate of compute
	allTolerance      = 10 // the method
)

// times are the four columns of a row of Table 3, with their inputs.
type times struct {
	io, memory, compute             units.Nanos
	ioFrom, memoryFrom, computeFrom []Input
}

func (t *times) total() units.Nanos { return t.io + t.memory + t.compute }

// columns adds the rows of the four columns. fixes names the parameters that columns calibrate. A
// total with a calibrated part is predicted in its other parts, and says how much that is.
func (s *study) columns(id, what string, t *times, fixes map[string]string) {
	for _, c := range []struct {
		name   string
		time   units.Nanos
		inputs []Input
	}{{"io", t.io, t.ioFrom}, {"mem", t.memory, t.memoryFrom}, {"compute", t.compute,
		t.computeFrom}} {
		names := map[string]string{"io": "I/O", "mem": "memory", "compute": "compute"}
		label := what + ": " + names[c.name]
		if fix := fixes[c.name]; fix != "" {
			s.calibrate(id+"/"+c.name, label, c.time.Millis(), fix, c.inputs...)
			continue
		}
		s.predict(id+"/"+c.name, label, c.time.Millis(), allTolerance, c.inputs...)
	}
	parts := append(append(append([]Input{}, t.ioFrom...), t.memoryFrom...), t.computeFrom...)
	if len(fixes) == 3 {
		s.calibrate(id+"/total", what+": total", t.total().Millis(),
			"nothing new: the sum of three calibrated parts", parts...)
		return
	}
	row := s.predict(id+"/total", what+": total", t.total().Millis(), allTolerance, parts...)
	for _, c := range []struct {
		name string
		time units.Nanos
	}{{"io", t.io}, {"mem", t.memory}, {"compute", t.compute}} {
		if fixes[c.name] != "" {
			row.Note = fmt.Sprintf("%s of %s ms are calibrated on this run",
				number(c.time.Millis()), number(t.total().Millis()))
		}
	}
}

// denseRate is the rate of compute of a model's naive row: the bytes of all weights that a token
// multiplies with, divided by its time.
func (s *study) denseRate(m *model, backend string, dtype int) (units.Rate, Input) {
	id := fmt.Sprintf("table3/%s/%s/naive/compute", m.key, backend)
	rate := sized(m.moved(), dtype).Over(s.ms(id))
	return rate, calibrated("host.dense_rate", rate.String(), id)
}

// compute is the time of an "all" row in a machine without other costs: resident weights and the
// cached rows, at the dense rate.
func (s *study) compute(m *model, backend string, dtype int, cached units.Bytes,
	cachedFrom string) (units.Nanos, []Input) {
	rate, from := s.denseRate(m, backend, dtype)
	term := dense(rate, map[int]string{2: "f16", 4: "f32"}[dtype])
	resident := sized(m.dense(), dtype)
	return term.Time(resident+cached, 1), []Input{from,
		other("resident weights", resident.String(), "shape and predictor ranks: attention, "+
			"output head, predictors"),
		other("cached rows", cached.String(), cachedFrom)}
}

func (s *study) table3() error {
	for _, k := range modelKeys() {
		m, err := s.model(k.key)
		if err != nil {
			return err
		}
		s.baselines(m)
		t, err := s.allCPU(m, "table3/"+m.key+"/cpu/all")
		if err != nil {
			return err
		}
		s.columns("table3/"+m.key+"/cpu/all", m.name+", M1 Max CPU, all", t, cpuFixes(m.key))
	}
	if err := s.metal(); err != nil {
		return err
	}
	if err := s.gpu("table3/opt/gpu"); err != nil {
		return err
	}
	return s.speculative("table3/opt/gpu")
}

func (s *study) table5() error {
	for _, key := range []string{"opt", "persimmon", "phi"} {
		m, err := s.model(key)
		if err != nil {
			return err
		}
		id := "table5/" + key + "/cpu/all"
		t, err := s.allCPU(m, id)
		if err != nil {
			return err
		}
		s.columns(id, m.name+", M1 Max CPU, all", t, cpuFixes(key))
	}
	if err := s.gpu("table5/opt/gpu"); err != nil {
		return err
	}
	return s.speculative("table5/opt/gpu")
}

// cpuFixes are the parameters that the "all" rows of the CPU fix.
func cpuFixes(key string) map[string]string {
	switch key {
	case "opt":
		return map[string]string{"mem": "host.copy_rate of the M1 Max CPU (from Table 5)"}
	case "persimmon", "phi":
		return map[string]string{"io": "the volume per token of this run, which is not published"}
	}
	return nil
}

// baselines adds the naive and the hybrid row of a model on the CPU. All weights that are not
// resident are read at the sequential rate.
func (s *study) baselines(m *model) {
	seq := sequential(s.machines.devices[m1CPU])
	opt, err := modelOf("opt", "OPT-6.7B")
	if err != nil {
		s.err = err
		return
	}
	optRate, optFrom := s.denseRate(opt, "cpu", 4)
	// as 16-bit weights, though the run is in 32 bits: inconsistency I12
	whole := sized(m.moved(), 2)
	size := other("weights read", whole.String(), "shape, 2 B each (I12), without an input "+
		"embedding of its own (I22)")
	compute := dense(optRate, "f32").Time(sized(m.moved(), 4), 1)
	for _, method := range []struct {
		name  string
		share float64
	}{{"naive", 1}, {"hybrid", s.notResident(m)}} {
		id := fmt.Sprintf("table3/%s/cpu/%s", m.key, method.name)
		if _, ok := s.published[id+"/io"]; !ok {
			continue
		}
		what := m.name + ", M1 Max CPU, " + method.name
		io := seq.Time(units.Bytes(method.share * float64(whole)))
		share := other("share read", number(100*method.share)+" %", "what DRAM does not hold")
		s.predict(id+"/io", what+": I/O", io.Millis(), baselineTolerance, size, share,
			s.machines.m1Reads[0])
		if m.key == "opt" {
			s.calibrate(id+"/compute", what+": compute", compute.Millis(),
				"host.dense_rate of the M1 Max CPU for OPT-6.7B")
		} else {
			s.predict(id+"/compute", what+": compute", compute.Millis(), allTolerance, optFrom,
				other("weights", sized(m.moved(), 4).String(), "shape, 4 B each"))
		}
		s.predict(id+"/total", what+": total", (io + compute).Millis(), allTolerance, size, share,
			s.machines.m1Reads[0], optFrom)
	}
}

// notResident is the share of a model that a hybrid run reads for every token.
func (s *study) notResident(m *model) float64 {
	switch m.key {
	case "phi":
		return 1 - s.val("dram/phi/limit")/100
	case "llama":
		return 1 - s.val("dram/llama/limit")/100
	}
	return 0.5 // section 4.1: DRAM for half of the model
}

// copyRate is the rate of memory management on the M1 Max CPU: the bytes that the row cache moves
// for a token of OPT-6.7B, divided by the time of Table 5.
func (s *study) copyRate() (units.Rate, Input, error) {
	m, err := s.simulate(s.optCPU())
	if err != nil {
		return 0, Input{}, err
	}
	const id = "table5/opt/cpu/all/mem"
	rate := m.copied.Over(s.ms(id))
	return rate, calibrated("host.copy_rate", rate.String(), id), nil
}

func (s *study) optCPU() workload {
	return workload{like: "OPT-6.7B", dtype: 4, window: s.optWindow(), machine: m1CPU}
}

// copying is the term of row-cache copies at a calibrated rate.
func copying(rate units.Rate) devicemodels.Term {
	host := devicemodels.Host{CopyRate: rate}
	return host.At("f32").Copy
}

// allCPU computes an "all" row of the CPU. The volume of a run is simulated if the statistics are
// published. The sparsity of two models is not: their volume is calibrated on the I/O of the row
// itself.
func (s *study) allCPU(m *model, id string) (*times, error) {
	copyRate, copyFrom, err := s.copyRate()
	if err != nil {
		return nil, err
	}
	switch m.key {
	case "persimmon", "phi":
		return s.allOfVolume(m, id, copyRate, copyFrom)
	}
	w, trace := s.cpuWorkload(m)
	run, err := s.simulate(w)
	if err != nil {
		return nil, err
	}
	t := &times{io: run.io, memory: copying(copyRate).Time(run.copied, 1)}
	volume := other("volume", run.read.String(),
		fmt.Sprintf("simulated: %s %% of the FFN per token", number(run.share(run.read))))
	t.ioFrom = append(append(trace, volume), s.machines.m1Reads...)
	t.memoryFrom = append(append([]Input{}, trace...), other("bytes copied", run.copied.String(),
		"simulated"), copyFrom)
	cached, from := run.resident, fmt.Sprintf("simulated: %s %% of the FFN",
		number(run.share(run.resident)))
	if m.key == "falcon" {
		share := s.val("window/falcon/cached")
		cached, from = units.Bytes(share/100*float64(run.ffn)),
			"window/falcon/cached: "+number(share)+" % of the FFN (appendix C.2)"
	}
	t.compute, t.computeFrom = s.compute(m, "cpu", 4, cached, from)
	return t, nil
}

// cpuWorkload is the run of a model whose sparsity is published. A window "of n tokens" is taken to
// include the current token, as for OPT-6.7B.
func (s *study) cpuWorkload(m *model) (workload, []Input) {
	w := s.optCPU()
	if m.key == "opt" {
		return w, s.optTrace()
	}
	w.like = m.name
	id := "window/" + m.key + "/k"
	w.window = int(s.val(id)) - 1
	return w, []Input{
		s.given("window, the current token included", id),
		other("trace", "synth "+m.name, "active share published (section 3.1); predictor errors "+
			"and temporal statistics assumed as OPT-6.7B"),
	}
}

// allOfVolume computes a row from the volume per token that gives its published I/O.
func (s *study) allOfVolume(m *model, id string, copyRate units.Rate, copyFrom Input) (*times,
	error) {
	device := s.machines.devices[m1CPU]
	record := units.Bytes(m.shape.Rows*m.shape.DModel) * 4
	rate := device.Flash.Throughput(ioengine.Pread, device.Host.Cores, record, threads)
	volume := units.Bytes(float64(rate) * s.ms(id+"/io").Seconds())
	ffn := sized(m.ffn, 4)
	t := &times{io: rate.Time(volume)}
	from := calibrated("volume", fmt.Sprintf("%v, %s %% of the FFN", volume,
		number(100*float64(volume)/float64(ffn))), id+"/io")
	t.ioFrom = append([]Input{from, other("reads", record.String(), "one record in fp32")},
		s.machines.m1Reads...)
	// Every loaded row replaces one: the gap is filled and the row is appended, two copies.
	t.memory = copying(copyRate).Time(2*volume, 1)
	t.memoryFrom = []Input{from, copyFrom}
	cached, cachedFrom := s.cachedByLimit(m)
	t.compute, t.computeFrom = s.compute(m, "cpu", 4, sized(cached, 4), cachedFrom)
	return t, nil
}

// cachedByLimit is the number of FFN weights within the published limit of DRAM.
func (s *study) cachedByLimit(m *model) (int64, string) {
	if m.key == "persimmon" {
		share := s.val("dram/persimmon/cached_of_ffn")
		return part(m.ffn, share/100), "dram/persimmon/cached_of_ffn: " + number(share) +
			" % of the FFN"
	}
	limit := s.val("dram/phi/limit")
	room := part(m.total, limit/100) - m.embedding - m.attention - m.predictor
	return room, fmt.Sprintf("dram/phi/limit: %s %% of the model less embeddings, attention and "+
		"predictors", number(limit))
}

// metal adds the rows of the two Macs' GPUs. The compute of the M1's "all" row fixes the cost of
// resident rows there. The M2 is predicted with both rates, in the proportion of the naive rows.
func (s *study) metal() error {
	opt, err := s.model("opt")
	if err != nil {
		return err
	}
	copyRate, copyFrom, err := s.copyRate()
	if err != nil {
		return err
	}
	var heldRate units.Rate
	var m1Compute units.Nanos
	for _, mac := range []struct{ key, what, machine string }{{"metal-m1", "OPT-6.7B, M1 Max Metal",
		m1Metal}, {"metal-m2", "OPT-6.7B, M2 Ultra Metal", m2Metal}} {
		s.macNaive(opt, "table3/opt/"+mac.key+"/naive", mac.what+", naive", mac.machine)
		run, err := s.simulate(workload{like: "OPT-6.7B", dtype: 2, window: s.optWindow(),
			machine: mac.machine})
		if err != nil {
			return err
		}
		id := "table3/opt/" + mac.key + "/all"
		t := &times{io: run.io, ioFrom: append(s.optTrace(), s.machines.m1Reads...),
			memory:     copying(copyRate).Time(run.copied, 1),
			memoryFrom: []Input{other("bytes copied", run.copied.String(), "simulated"), copyFrom}}
		plain, from := s.compute(opt, mac.key, 2, run.resident, "simulated")
		fixes := map[string]string{}
		if mac.key == "metal-m1" {
			heldRate = run.resident.Over(s.ms(id+"/compute") - plain)
			fixes["compute"] = "host.held_rate of the M1 Max GPU: what keeping cached rows " +
				"visible to it costs"
			m1Compute = s.ms("table3/opt/metal-m1/naive/compute")
		} else {
			heldRate = units.Rate(float64(heldRate) * float64(m1Compute) /
				float64(s.ms("table3/opt/metal-m2/naive/compute")))
		}
		host := devicemodels.Host{HeldRate: heldRate}
		t.compute = plain + host.At("f16").Held.Time(run.resident, 1)
		t.computeFrom = append(from, calibrated("host.held_rate", heldRate.String(),
			"table3/opt/metal-m1/all/compute"))
		s.columns(id, mac.what+", all", t, fixes)
	}
	return nil
}

// macNaive adds the naive row of a GPU, whose compute fixes its dense rate.
func (s *study) macNaive(opt *model, id, what, machine string) {
	read := sized(opt.moved(), 2)
	size := other("weights read", read.String(), "shape, 2 B each")
	device := s.machines.devices[machine]
	link := s.machines.m1Reads[0]
	if machine == m2Metal {
		link = calibrated("flash.link_rate", device.Flash.LinkRate.String(), "flash/m2-seq")
	}
	if machine == rtx {
		device = s.machines.devices[m1CPU] // theoretical, and that of the M1 Max: inconsistency I15
	}
	io := sequential(device).Time(read)
	rate, _ := s.denseRate(opt, map[string]string{m1Metal: "metal-m1", m2Metal: "metal-m2",
		rtx: "gpu"}[machine], 2)
	compute := dense(rate, "f16").Time(read, 1)
	s.predict(id+"/io", what+": I/O", io.Millis(), baselineTolerance, size, link)
	s.calibrate(id+"/compute", what+": compute", compute.Millis(), "host.dense_rate of "+machine)
	s.predict(id+"/total", what+": total", (io + compute).Millis(), baselineTolerance, size, link,
		calibrated("host.dense_rate", rate.String(), id+"/compute"))
}

// gpu adds the rows of the RTX 4090. Its SSD and its synchronisation are not known, so that the
// three parts of "all" are calibrated. Speculative decoding is predicted from them.
func (s *study) gpu(prefix string) error {
	opt, err := s.model("opt")
	if err != nil {
		return err
	}
	if prefix == "table3/opt/gpu" {
		s.macNaive(opt, prefix+"/naive", "OPT-6.7B, RTX 4090, naive", rtx)
	}
	t, err := s.gpuTimes()
	if err != nil {
		return err
	}
	s.columns(prefix+"/all", "OPT-6.7B, RTX 4090, all", t, map[string]string{
		"io":      "flash.ltfb and flash.link_rate of the Linux machine (from Table 5)",
		"mem":     "host.copy_rate of the RTX 4090 (from Table 5)",
		"compute": "host.sync_fixed of the RTX 4090 (from Table 5)"})
	return nil
}

// gpuTimes are the parts of the "all" row of the RTX 4090.
func (s *study) gpuTimes() (*times, error) {
	opt, err := s.model("opt")
	if err != nil {
		return nil, err
	}
	run, err := s.simulate(workload{like: "OPT-6.7B", dtype: 2, window: s.optWindow(),
		machine: rtx})
	if err != nil {
		return nil, err
	}
	const id = "table5/opt/gpu/all"
	linux := s.machines.devices[rtx]
	// ends of batches are inside the calibrated rate
	reads := linux.Flash.Throughput(ioengine.Pread, linux.Host.Cores, bundleBytes, threads)
	t := &times{io: reads.Time(run.read), ioFrom: append(s.optTrace(), calibrated("flash.link_rate",
		linux.Flash.LinkRate.String(), "flash/linux-16k"))}
	rate := run.copied.Over(s.ms(id + "/mem"))
	t.memory, t.memoryFrom = copying(rate).Time(run.copied, 1), []Input{calibrated("host.copy_rate",
		rate.String(), id+"/mem")}
	plain, from := s.compute(opt, "gpu", 2, run.resident, "simulated")
	sync := max(s.ms(id+"/compute")-plain, 0) / units.Nanos(opt.shape.Layers)
	t.compute = plain + units.Nanos(opt.shape.Layers)*sync
	t.computeFrom = append(from, calibrated("host.sync_fixed", sync.String()+" per layer",
		id+"/compute"))
	return t, nil
}
