package reproduce

import (
	"fmt"
	"math"

	"github.com/windrow-sim/windrow/internal/decisions/schedule"
)

// Tolerances of Tables 3 and 5.
var (
	partTolerance = tolerance{15, "the standard deviations of Table 5 are 17 % of I/O and " +
		"memory of OPT-6.7B"}
	totalTolerance = tolerance{10, "the standard deviation of Table 5 is 6 % of OPT-6.7B's " +
		"total"}
	baselineTolerance = tolerance{5, "theoretical in the paper too (section 4.1)"}
	sumTolerance      = tolerance{10, "a sum of rows above"}
)

// naive is a run with all weights in memory, for the compute of the baselines.
func naive(m *model, dtype, device string) scenario {
	return scenario{model: m.name, dtype: dtype, active: activeShare(m), device: device,
		policy: "none", schedule: schedule.LookAhead, dense: m.shape.Layers}
}

// activeShare is the active share of the models of which none is published. It is chosen so that
// the I/O of their rows of Table 5 comes out.
func activeShare(m *model) float64 {
	switch m.key {
	case "persimmon":
		return 0.0645
	case "phi":
		return 0.1435
	}
	return 0
}

// all is the run of the whole method on the M1 Max's CPU.
func (s *study) all(m *model) scenario {
	c := scenario{model: m.name, dtype: "f32", active: activeShare(m), device: m1CPU,
		policy: s.optWindow(), rank: m.meanRank()}
	switch m.key {
	case "falcon", "llama": // "of n tokens" includes the current one
		c.policy = window(s.val("window/"+m.key+"/k") - 1)
	case "persimmon", "phi":
		// Memory decides how long their windows are (appendices C.3 and C.4). With one token they
		// load as much as the I/O says and keep no more than the limit allows.
		c.policy = window(1)
	}
	return c
}

func (s *study) table3() error {
	for _, k := range modelKeys() {
		m, err := s.model(k.key)
		if err != nil {
			return err
		}
		if err := s.baselines(m); err != nil {
			return err
		}
		if err := s.allRows(m, "table3/"+m.key+"/cpu/all"); err != nil {
			return err
		}
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
		if err := s.allRows(m, "table5/"+key+"/cpu/all"); err != nil {
			return err
		}
	}
	if err := s.gpu("table5/opt/gpu"); err != nil {
		return err
	}
	return s.speculative("table5/opt/gpu")
}

// repeats reports whether a row of Table 3 is of the run of Table 5, rounded. Persimmon-8B's are
// two runs (I19).
func (s *study) repeats(id string) bool {
	_, five := s.published["table5"+id[len("table3"):]]
	a, b := s.published[id], s.published["table5"+id[len("table3"):]]
	return five && math.Abs(a.Mid()/b.Mid()-1) < 0.02
}

// baselines adds the naive and the hybrid row of a model on the CPU. All weights that are not
// resident are read at the sequential rate, in the paper and here.
func (s *study) baselines(m *model) error {
	c := naive(m, "f32", m1CPU)
	run, err := s.simulate(c)
	if err != nil {
		return err
	}
	inputs := s.inputs(c)
	// as 16-bit weights, though the run is in 32 bits: inconsistency I12
	whole := gb(sized(m.moved(), 2))
	compute := run.compute.Millis()
	for _, method := range []struct {
		name  string
		share float64
	}{{"naive", 1}, {"hybrid", s.notResident(m)}} {
		id := fmt.Sprintf("table3/%s/cpu/%s", m.key, method.name)
		if _, ok := s.published[id+"/io"]; !ok {
			continue
		}
		what := m.name + ", M1 Max CPU, " + method.name
		read := []Input{other("weights read", number(method.share*whole)+" GB", "shape, 2 B each "+
			"(I12), without an input embedding of its own (I22)"),
			calibrated("flash.link_rate", "of the preset m1-max", "table2/naive/throughput")}
		io := 1e3 * method.share * whole / s.sequential(m1CPU)
		s.row(Arithmetic, id+"/io", what+": I/O", io, baselineTolerance, read)
		switch {
		case m.key == "opt":
			s.calibrate(id+"/compute", what+": compute", compute, "host.dense_rate of m1-max")
		case method.name == "naive":
			s.row(Simulated, id+"/compute", what+": compute", compute, totalTolerance, inputs)
		default: // the paper prints the naive row's compute again
			s.row(Identity, id+"/compute", what+": compute", compute, totalTolerance, inputs)
		}
		s.row(Identity, id+"/total", what+": total", io+compute, sumTolerance,
			append(read, inputs...))
	}
	return nil
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

// allRows adds the four columns of an "all" row of the CPU.
func (s *study) allRows(m *model, id string) error {
	c := s.all(m)
	run, err := s.simulate(c)
	if err != nil {
		return err
	}
	inputs := s.inputs(c)
	shareFrom := "table5/" + m.key + "/cpu/all/io"
	if c.active > 0 {
		inputs = append(inputs, calibrated("active share", number(100*c.active)+" %", shareFrom))
	}
	// Parts that the preset, or the active share, is fitted to.
	fixes := map[string]string{}
	switch m.key {
	case "opt":
		fixes["io"] = "flash.ltfb and flash.server_rate of m1-max: the 32 KiB cell of its fit"
		fixes["mem"] = "host.copy_rate and host.copy_fixed of m1-max"
	case "falcon":
		fixes["io"] = "flash.ltfb and flash.server_rate of m1-max: the 35.5 KiB cell of its fit"
	case "phi":
		fixes["io"] = "the active share of its trace"
	case "persimmon":
		if shareFrom == id+"/io" {
			fixes["io"] = "the active share of its trace"
		}
	}
	s.columns(id, m.name+", M1 Max CPU, all", run, fixes, inputs)
	return nil
}

// columns adds the rows of I/O, memory, compute and total of a run. fixes names the parameters that
// columns calibrate.
func (s *study) columns(id, what string, run *measured, fixes map[string]string, inputs []Input) {
	for _, c := range []struct {
		name, label string
		ours        float64
		t           tolerance
	}{
		{"io", "I/O", run.io.Millis(), partTolerance},
		{"mem", "memory", run.memory.Millis(), partTolerance},
		{"compute", "compute", run.compute.Millis(), partTolerance},
		{"total", "total", run.total.Millis(), totalTolerance},
	} {
		row, label := id+"/"+c.name, what+": "+c.label
		switch {
		case fixes[c.name] != "":
			r := s.calibrate(row, label, c.ours, fixes[c.name])
			if c.name == "io" {
				r.TolerancePercent, r.Why = c.t.percent, "a cell among others, with the ends of "+
					"batches"
			}
		case c.name == "total" && len(fixes) == 3:
			s.row(Identity, row, label, c.ours, c.t, inputs).Note = "the sum of calibrated parts"
		case id[:len("table3")] == "table3" && s.repeats(row):
			s.row(Identity, row, label, c.ours, c.t, inputs).Note = "the run of Table 5"
		default:
			s.row(Simulated, row, label, c.ours, c.t, inputs)
		}
	}
}

// metal adds the rows of the two Macs' GPUs.
func (s *study) metal() error {
	opt, err := s.model("opt")
	if err != nil {
		return err
	}
	for _, mac := range []struct{ key, what, device string }{
		{"metal-m1", "OPT-6.7B, M1 Max Metal", m1Metal},
		{"metal-m2", "OPT-6.7B, M2 Ultra Metal", m2Metal},
	} {
		id := "table3/opt/" + mac.key
		if err := s.gpuNaive(opt, id+"/naive", mac.what+", naive", mac.device, "f16",
			mac.device); err != nil {
			return err
		}
	}
	c := scenario{model: opt.name, dtype: "f16", device: m1Metal, policy: s.optWindow(),
		rank: opt.meanRank()}
	run, err := s.simulate(c)
	if err != nil {
		return err
	}
	s.columns("table3/opt/metal-m1/all", "OPT-6.7B, M1 Max Metal, all", run, map[string]string{
		"mem":     "host.copy_rate and host.copy_fixed of m1-max",
		"compute": "host.row_rate of m1-max-metal"}, s.inputs(c))
	for _, column := range []string{"io", "mem", "compute", "total"} {
		s.without("table3/opt/metal-m2/all/"+column, "OPT-6.7B, M2 Ultra Metal, all: "+column,
			s.misses["m2"])
	}
	return nil
}

// gpuNaive adds the naive row of a GPU, whose compute fixes its dense rate. drive is the preset
// whose sequential rate the I/O has.
func (s *study) gpuNaive(opt *model, id, what, device, dtype, drive string) error {
	run, err := s.simulate(naive(opt, dtype, device))
	if err != nil {
		return err
	}
	whole := gb(sized(opt.moved(), 2))
	io := 1e3 * whole / s.sequential(drive)
	from := "table2/naive/throughput"
	if drive == m2Metal {
		from = "flash/m2-seq"
	}
	read := []Input{other("weights read", number(whole)+" GB", "shape, 2 B each"),
		calibrated("flash.link_rate", "of the preset "+drive, from)}
	s.row(Arithmetic, id+"/io", what+": I/O", io, baselineTolerance, read)
	s.calibrate(id+"/compute", what+": compute", run.compute.Millis(), "host.dense_rate of "+device)
	s.row(Identity, id+"/total", what+": total", io+run.compute.Millis(), sumTolerance, read)
	return nil
}

// gpuAll is the run of the RTX 4090.
func (s *study) gpuAll(opt *model) scenario {
	return scenario{model: opt.name, dtype: "bf16", device: rtx, policy: s.optWindow(),
		rank: opt.meanRank()}
}

// gpu adds the rows of the RTX 4090. Its SSD and its synchronisation are not known, so that the
// three parts of "all" are calibrated.
func (s *study) gpu(prefix string) error {
	opt, err := s.model("opt")
	if err != nil {
		return err
	}
	if prefix == "table3/opt/gpu" { // theoretical, with the M1 Max's drive: inconsistency I15
		if err := s.gpuNaive(opt, prefix+"/naive", "OPT-6.7B, RTX 4090, naive", rtx, "bf16",
			m1CPU); err != nil {
			return err
		}
	}
	c := s.gpuAll(opt)
	run, err := s.simulate(c)
	if err != nil {
		return err
	}
	s.columns(prefix+"/all", "OPT-6.7B, RTX 4090, all", run, map[string]string{
		"io":      "flash.ltfb and flash.link_rate of rtx4090-linux",
		"mem":     "host.copy_rate of rtx4090-linux",
		"compute": "host.row_rate of rtx4090-linux"}, s.inputs(c))
	return nil
}
