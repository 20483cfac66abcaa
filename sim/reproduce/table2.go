package reproduce

import (
	"fmt"

	"github.com/windrow-sim/windrow/internal/units"
)

// window is the policy of a sliding window that keeps the rows of so many tokens before the current
// one.
func window(tokens float64) string { return fmt.Sprintf("window:%d", int(tokens)) }

// optWindow is the window of OPT-6.7B. With the current token its 4 tokens are "the past 5 tokens"
// (inconsistency I05).
func (s *study) optWindow() string { return window(s.val("window/opt/k")) }

// table2 adds the five steps of Table 2. The I/O of naive and hybrid is theoretical in the paper
// too: bytes over the sequential rate (section 4.1).
func (s *study) table2() error {
	opt, err := s.model("opt")
	if err != nil {
		return err
	}
	seq := s.sequential(m1CPU)
	whole := sized(opt.moved(), 2)
	shape := []Input{other("weights", whole.String(), "shape of OPT-6.7B, 2 B each"),
		calibrated("flash.link_rate", "of the preset m1-max", "table2/naive/throughput")}
	digit := tolerance{2, "half of the last printed digit"}
	s.row(Arithmetic, "table2/naive/flash_to_dram", "naive: volume", gb(whole), digit, shape[:1])
	s.calibrate("table2/naive/throughput", "naive: rate", seq, "flash.link_rate of m1-max")
	s.row(Arithmetic, "table2/naive/io_latency", "naive: time", 1e3*gb(whole)/seq, digit, shape)
	s.row(Arithmetic, "table2/hybrid/flash_to_dram", "hybrid: volume", gb(whole/2), digit,
		append(shape[:1:1], s.given("resident half: DRAM", "table2/hybrid/dram")))
	s.row(Identity, "table2/hybrid/throughput", "hybrid: rate", seq, digit, shape[1:])
	s.row(Arithmetic, "table2/hybrid/io_latency", "hybrid: time", 1e3*gb(whole/2)/seq, digit, shape)
	resident := sized(opt.embedding+opt.attention+opt.predictor, 2)
	dram := tolerance{10, "I06 and I08: the paper's own shares give 6.9 to 7.0 GB, and its " +
		"predictors have two sizes"}
	for _, step := range []struct {
		key, what, policy string
		unbundled         bool
	}{
		{"predictor", "+ predictor", "none", true},
		{"windowing", "+ windowing", s.optWindow(), true},
		{"bundling", "+ bundling", s.optWindow(), false},
	} {
		c := scenario{model: "OPT-6.7B", dtype: "f16", device: m1CPU, policy: step.policy,
			unbundled: step.unbundled}
		m, err := s.simulate(c)
		if err != nil {
			return err
		}
		id, inputs := "table2/"+step.key, s.inputs(c)
		// The column has one digit: half of the last digit is 5 % of 0.9 and 25 % of 0.2.
		volume := tolerance{100 * 0.05 / s.val(id+"/flash_to_dram"),
			"half of the last printed digit"}
		chunk := 16 * units.KiB
		if step.unbundled {
			chunk = 8 * units.KiB
		}
		rate := s.rate(m1CPU, chunk, threads)
		switch step.key {
		case "predictor": // without a window no row is kept
			s.row(Arithmetic, id+"/dram", step.what+": DRAM", gb(resident), dram, shape[:1])
			s.row(Simulated, id+"/flash_to_dram", step.what+": volume", gb(m.read), volume, inputs)
			s.row(Identity, id+"/throughput", step.what+": rate", rate, digit, inputs)
		case "windowing":
			s.row(Simulated, id+"/dram", step.what+": DRAM", gb(resident+m.resident), dram, inputs)
			s.row(Simulated, id+"/flash_to_dram", step.what+": volume", gb(m.read), volume, inputs)
			s.calibrate(id+"/throughput", step.what+": rate", rate, "flash.ltfb and "+
				"flash.server_rate of m1-max")
		case "bundling": // it changes no decision
			s.row(Identity, id+"/dram", step.what+": DRAM", gb(resident+m.resident), dram, inputs)
			s.row(Identity, id+"/flash_to_dram", step.what+": volume", gb(m.read), volume, inputs)
			s.calibrate(id+"/throughput", step.what+": rate", rate, "flash.ltfb and "+
				"flash.server_rate of m1-max")
		}
		s.row(Simulated, id+"/io_latency", step.what+": time", m.io.Millis(), tolerance{8,
			"I13: the paper has 87 and 92 ms for one run"}, inputs)
	}
	return nil
}

func gb(b units.Bytes) float64 { return float64(b) / 1e9 }
