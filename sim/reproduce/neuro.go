package reproduce

import (
	"fmt"

	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/units"
)

// Numbers from the text of NeuroPrefetcher.
const (
	jetson      = "jetson-orin-990pro"
	neuroRecord = 24576 // bytes: inconsistency I37
	neuroKMax   = 5500  // of the memory sweep
)

// neuroRun is NeuroPrefetcher with so many dense layers: the rows of all other layers are read in
// one batch of io_uring while the dense prefix computes.
func (s *study) neuroRun(m *model, d int) scenario {
	predictor := s.val("neuro/predictor") / 100 * float64(m.total)
	return scenario{model: m.name, dtype: "f16", device: jetson,
		policy: fmt.Sprintf("delta:%d", neuroKMax),
		rank:   int(predictor / float64(m.shape.Layers*(m.shape.DModel+m.shape.DFFN))),
		engine: ioengine.Uring, parallel: int(s.val("neuro/depth")),
		schedule: schedule.Token, dense: d}
}

func gib(v float64) units.Bytes { return units.Bytes(v * float64(units.GiB)) }

func inGiB(b units.Bytes) float64 { return float64(b) / float64(units.GiB) }

func (s *study) neuro() error {
	m, err := modelOf("mistral", "Mistral-7B-v0.1")
	if err != nil {
		return err
	}
	s.neuroSizes(m)
	s.neuroSplit(m)
	return s.neuroTimes(m)
}

// neuroSizes adds the numbers that follow from shapes.
func (s *study) neuroSizes(m *model) {
	shape := []Input{other("shape", m.name, "traces/shapes/models.csv")}
	s.row(Arithmetic, "neuro/record", "record of a neuron", neuroRecord/float64(units.KiB),
		tolerance{5, "I37"}, shape).Note = "I37: 24,576 B are 24.0 KiB or 24.58 kB, a slip of units"
	printed := tolerance{1, "the last printed digit"}
	s.row(Arithmetic, "neuro/footprint/mistral", "Mistral-7B in fp16", inGiB(sized(m.total, 2)),
		printed, shape)
	if opt, err := modelOf("opt", "OPT-6.7B"); err == nil {
		s.row(Arithmetic, "neuro/footprint/opt", "OPT-6.7B in fp16", inGiB(sized(opt.total, 2)),
			printed, []Input{other("shape", opt.name, "traces/shapes/models.csv")})
	}
	for _, k := range []int{5500, 7168, 9865} {
		id := fmt.Sprintf("neuro/kmax/%d/", k)
		active := 100 * float64(k) / float64(m.shape.DFFN)
		s.row(Arithmetic, id+"active", fmt.Sprintf("K_max = %d: active", k), active, printed, shape)
		s.row(Arithmetic, id+"sparsity", fmt.Sprintf("K_max = %d: sparsity", k), 100-active,
			printed, shape)
	}
}

// largestPrefix is the largest number of dense layers with which a model is in memory: all but the
// MLPs, the MLPs of the dense layers, K_max rows of the others, the predictor, and what must stay
// free.
func (s *study) largestPrefix(m *model, kMax int, memory units.Bytes) int {
	layers := m.shape.Layers
	fixed := sized(m.total-m.ffn, 2) + gib(s.val("neuro/reserve"))
	predictor := sized(part(m.total, s.val("neuro/predictor")/100), 2)
	mlp, rows := sized(m.ffn, 2)/units.Bytes(layers), units.Bytes(kMax)*neuroRecord
	for d := layers; d > 1; d-- {
		size := fixed + units.Bytes(d)*mlp
		if d < layers {
			size += predictor + units.Bytes(layers-d)*rows
		}
		if size <= memory {
			return d
		}
	}
	return 1
}

// neuroSplit adds d*, "the largest dense prefix that fits within the memory budget".
func (s *study) neuroSplit(m *model) {
	const middle = 11.9
	sizes := []Input{s.given("memory that must stay free", "neuro/reserve"), s.given("predictor",
		"neuro/predictor"), other("shape", m.name, "traces/shapes/models.csv")}
	layer := tolerance{10, "one layer of 14 is 7 %"}
	for _, k := range []int{5500, 7168, 9865} {
		s.row(Arithmetic, fmt.Sprintf("neuro/d/%d", k),
			fmt.Sprintf("11.9 GiB, K_max = %d: largest "+
				"d that fits", k), float64(s.largestPrefix(m, k, gib(middle))), layer, sizes)
	}
	for _, level := range []float64{9.0, 14.8} {
		id := fmt.Sprintf("neuro/d/%.1f", level)
		s.row(Arithmetic, id, fmt.Sprintf("%.1f GiB: largest d that fits", level),
			float64(s.largestPrefix(m, neuroKMax, gib(level))), layer, sizes)
	}
}

// neuroTimes adds the rows of runs with the published d.
func (s *study) neuroTimes(m *model) error {
	share, speed := s.pub("neuro/io-share"),
		tolerance{10, "medians of many runs, printed with two " +
			"or three digits"}
	volume := tolerance{25, "I42 and I43: the two published volumes contradict the persistence"}
	persistence := 0.0
	for _, level := range []struct{ key, d string }{{"9.0", "neuro/d/9.0"}, {"11.9",
		"neuro/d/5500"}, {"14.8", "neuro/d/14.8"}} {
		d := int(s.val(level.d))
		c := s.neuroRun(m, d)
		run, err := s.simulate(c)
		if err != nil {
			return err
		}
		inputs := append(s.inputs(c), s.given("d", level.d))
		what := fmt.Sprintf("%s GiB, d = %d: ", level.key, d)
		switch level.key {
		case "9.0":
			s.calibrate("neuro/latency/9.0", what+"time per token", run.total.Millis(),
				"flash.engines.uring of jetson-orin-990pro")
		case "11.9":
			s.row(Simulated, "neuro/throughput/11.9", what+"throughput", 1/run.total.Seconds(),
				speed, inputs)
		case "14.8":
			s.calibrate("neuro/latency/14.8", what+"time per token", run.total.Millis(),
				"host.dense_rate of jetson-orin-990pro")
		}
		hidden := run.run.Meta.Prefetches.Hidden / units.Nanos(len(run.byToken))
		s.against(Simulated, "neuro/io-share/"+level.key, share, what+"share of the time with "+
			"reads in flight", 100*(run.io+hidden).Seconds()/run.total.Seconds(), speed, inputs)
		if level.key == "9.0" { // of the sparse layers
			rows := float64(neuroKMax * (m.shape.Layers - d))
			persistence = 1 - float64(run.read)/neuroRecord/rows
		}
		if level.key != "11.9" {
			s.row(Simulated, "neuro/volume/"+level.key, what+"read per token",
				float64(run.read)/float64(units.MiB), volume, inputs)
		}
	}
	s.calibrate("neuro/persistence", "predicted rows that were predicted a token before",
		100*persistence, "the process of traces/synth for Mistral-7B")
	return s.neuroPaging()
}

// neuroPaging adds the numbers that rest on llama.cpp, whose mapped weights are paged.
func (s *study) neuroPaging() error {
	const reason = "The simulator pages the feed-forward part of a model from a mapped file. " +
		"llama.cpp maps all weights, and its reads are of the whole model: there is no scenario " +
		"for it yet."
	s.pub("neuro/available") // the range of the speedups
	s.without("neuro/llama/11.9", "11.9 GiB: llama.cpp", reason)
	for _, r := range []struct{ id, what string }{
		{"neuro/speedup/11.9", "11.9 GiB: NeuroPrefetcher over llama.cpp"},
		{"neuro/speedup/max", "largest advantage before the crossover"},
		{"neuro/speedup/min", "smallest advantage before the crossover"},
		{"neuro/crossover/speedup", "13.9 GiB: NeuroPrefetcher over llama.cpp, the model fits"},
	} {
		s.without(r.id, r.what, "As neuro/llama/11.9.")
	}
	return nil
}
