package reproduce

import (
	"fmt"
	"maps"
	"slices"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces/synth"
)

// jetson is the machine and the model of NeuroPrefetcher, calibrated.
type jetson struct {
	device *devicemodels.Device
	model  *model
	// Calibrations, as inputs of the rows.
	compute, reads, reserve, faults Input
	volumes                         []Input

	pipeline *Pipeline // at K_max = 5,500
}

// Numbers from the paper's text, and defaults of the system.
const (
	neuroRecord = 24576 // bytes: inconsistency I37
	neuroKMax   = 5500  // of the memory sweep
	// size of the read of one fault of a mapped file (read_ahead_kb of Linux, 128 by default)
	linuxReadAhead = 128 * units.KiB
)

// neuroMachine calibrates the Jetson:
//
//	compute    the efficiency of the RTX 4090's naive row (Table 3 of the other paper), of the
//	           Orin's memory rate
//	volumes    per layer, a straight line over depth through the two published volumes per token
//	requests   host time per request, so that the token at d = 2 takes the published time
func (s *study) neuroMachine() (*jetson, error) {
	device, err := devicemodels.Preset("jetson-orin-990pro")
	if err != nil {
		return nil, err
	}
	j := &jetson{device: device}
	if j.model, err = modelOf("mistral", "Mistral-7B-v0.1"); err != nil {
		return nil, err
	}
	opt, err := modelOf("opt", "OPT-6.7B")
	if err != nil {
		return nil, err
	}
	gpu := s.machines.devices[rtx]
	gpuRate, gpuFrom := s.denseRate(opt, "gpu", 2)
	efficiency := float64(gpuRate) / float64(gpu.Host.MemoryRate)
	rate := units.Rate(efficiency * float64(device.Host.MemoryRate))
	j.compute = calibrated("dense rate", fmt.Sprintf("%v: %.2f of the memory's", rate, efficiency),
		gpuFrom.From)
	j.reserve = s.given("memory that must stay free", "neuro/reserve")
	p := s.neuroPipeline(j, neuroKMax)
	p.Compute = dense(rate, "f16")
	j.pipeline = p
	s.neuroVolumes(j)
	if err := s.neuroFaults(j); err != nil {
		return nil, err
	}
	return j, s.neuroReads(j)
}

// neuroPipeline returns the pipeline with its sizes: from the shape, the predictor's published
// share, and the published reserve.
func (s *study) neuroPipeline(j *jetson, kMax int) *Pipeline {
	m := j.model
	layers := units.Bytes(m.shape.Layers)
	p := &Pipeline{
		Layers: m.shape.Layers, Attention: sized(m.attention, 2) / layers, MLP: sized(m.ffn, 2) /
			layers, Rows: units.Bytes(kMax) * neuroRecord,
		Predictor: sized(part(m.total, s.val("neuro/predictor")/100), 2), Head: sized(m.head, 2),
		Reserve: gib(s.val("neuro/reserve")),
	}
	p.Fixed = sized(m.total, 2) - sized(m.ffn+m.attention+m.head, 2)
	return p
}

// neuroVolumes sets the bytes that a sparse layer reads: a + b·layer, through the volumes at d = 2
// and d = 28.
func (s *study) neuroVolumes(j *jetson) {
	layers := j.model.shape.Layers
	mean := func(id, from string) (perLayer, depth float64) {
		d := int(s.val(from))
		return s.val(id) * float64(units.MiB) / float64(layers-d), float64(d+layers-1) / 2
	}
	v1, x1 := mean("neuro/volume/9.0", "neuro/d/9.0")
	v2, x2 := mean("neuro/volume/14.8", "neuro/d/14.8")
	slope := (v2 - v1) / (x2 - x1)
	j.pipeline.New = func(layer int) units.Bytes {
		return units.Bytes(v1 + slope*(float64(layer)-x1))
	}
	line := fmt.Sprintf("%v in layer 2 to %v in layer 31", j.pipeline.New(2), j.pipeline.New(31))
	j.volumes = []Input{
		calibrated("rows read", line, "neuro/volume/9.0"), calibrated("rows read", line,
			"neuro/volume/14.8"),
		s.given("dense layers of that volume", "neuro/d/9.0"),
		s.given("dense layers of that volume", "neuro/d/14.8"),
	}
}

// neuroReads sets the host's time per request so that the token at d = 2 takes the published time:
// the rate that reads need, and the cost of a serial ring that gives it.
func (s *study) neuroReads(j *jetson) error {
	const id = "neuro/latency/9.0"
	d := int(s.val("neuro/d/9.0"))
	without := j.pipeline.Token(d, gib(9.0))
	left := s.ms(id) - without.Rest
	if left <= 0 {
		return fmt.Errorf("compute alone takes %v at d = %d", without.Rest, d)
	}
	perRequest := neuroRecord * left.Seconds() / float64(without.Read)
	cost := j.device.Flash.Engines[ioengine.Uring]
	cost.Submit = units.FromSeconds(perRequest / 2)
	cost.Complete = units.FromSeconds(perRequest) - cost.Submit
	j.device.Flash.Engines = maps.Clone(j.device.Flash.Engines)
	j.device.Flash.Engines[ioengine.Uring] = cost
	j.pipeline.Reads = j.device.Flash.Throughput(ioengine.Uring, j.device.Host.Cores, neuroRecord,
		int(s.val("neuro/depth")))
	j.reads = calibrated("host time per request", fmt.Sprintf("%v: %v", cost.Submit+cost.Complete,
		j.pipeline.Reads), id)
	return nil
}

// neuroFaults sets the host's time per fault so that llama.cpp takes the published time at 11.9
// GiB: mapped weights, of which CyclicMiss is read for every token, one fault at a time, each with
// Linux's default read-ahead.
func (s *study) neuroFaults(j *jetson) error {
	const id = "neuro/llama/11.9"
	missed := CyclicMiss(float64(sized(j.model.total, 2)), float64(gib(11.9)), Random) *
		float64(sized(j.model.total, 2))
	left := units.FromSeconds(1/s.val(id)) - j.llamaCompute()
	perFault := units.FromSeconds(left.Seconds() * float64(linuxReadAhead) / missed)
	host := perFault - units.FromSeconds(float64(linuxReadAhead)/float64(faultRate(j.device, 0)))
	if host < 0 {
		return fmt.Errorf("faults of %v are faster than the drive", perFault)
	}
	j.pipeline.Paging = faultRate(j.device, host)
	j.faults = calibrated("host time per fault", fmt.Sprintf("%v of %v: %v", host, perFault,
		j.pipeline.Paging), id)
	return nil
}

// llamaCompute is the time of a token with all weights in memory.
func (j *jetson) llamaCompute() units.Nanos {
	return j.pipeline.Compute.Time(sized(j.model.moved(), 2), 1)
}

// llama is the time of a token of llama.cpp in the given memory. A mapped file needs no contiguous
// memory, so that there is no reserve.
func (j *jetson) llama(level float64) units.Nanos {
	size := float64(sized(j.model.total, 2))
	missed := CyclicMiss(size, float64(gib(level)), Random) * size
	return j.llamaCompute() + j.pipeline.Paging.Time(units.Bytes(missed))
}

// faultRate is the rate of a mapped file whose pages are all missing.
func faultRate(device *devicemodels.Device, host units.Nanos) units.Rate {
	spec := device.Flash
	spec.Engines = map[string]flash.EngineCost{ioengine.Mmap: {Cached: true}}
	spec.PageCache = &flash.PageCache{ReadAhead: linuxReadAhead, Fault: host}
	return spec.Throughput(ioengine.Mmap, 1, units.GiB, 1)
}

// times are the inputs of every time of the pipeline.
func (j *jetson) times() []Input { return append([]Input{j.compute, j.reads}, j.volumes...) }

func gib(v float64) units.Bytes { return units.Bytes(v * float64(units.GiB)) }

func inGiB(b units.Bytes) float64 { return float64(b) / float64(units.GiB) }

func (s *study) neuro() error {
	j, err := s.neuroMachine()
	if err != nil {
		return err
	}
	s.neuroSizes(j)
	s.neuroLatency(j)
	s.neuroSplit(j)
	s.neuroPaging(j)
	return s.neuroTrace(j)
}

// neuroSizes adds the numbers that follow from shapes.
func (s *study) neuroSizes(j *jetson) {
	shape := other("shape", j.model.name, "traces/shapes/models.csv")
	s.predict("neuro/record", "record of a neuron", neuroRecord/float64(units.KiB), 5,
		shape).Note = "I37: 24,576 B are 24.0 KiB or 24.58 kB, a slip of units"
	s.predict("neuro/footprint/mistral", "Mistral-7B in fp16", inGiB(sized(j.model.total, 2)), 1,
		shape)
	if opt, err := modelOf("opt", "OPT-6.7B"); err == nil {
		s.predict("neuro/footprint/opt", "OPT-6.7B in fp16", inGiB(sized(opt.total, 2)), 1,
			other("shape", opt.name, "traces/shapes/models.csv"))
	}
	for _, k := range []int{5500, 7168, 9865} {
		id := fmt.Sprintf("neuro/kmax/%d/", k)
		active := 100 * float64(k) / float64(j.model.shape.DFFN)
		s.predict(id+"active", fmt.Sprintf("K_max = %d: active", k), active, 1, shape)
		s.predict(id+"sparsity", fmt.Sprintf("K_max = %d: sparsity", k), 100-active, 1, shape)
	}
}

// neuroD is the published number of dense layers at a level of memory.
func (s *study) neuroD(level float64) int {
	if level == 11.9 {
		return int(s.val("neuro/d/5500"))
	}
	return int(s.val(fmt.Sprintf("neuro/d/%.1f", level)))
}

// neuroLatency adds times per token and the share of I/O.
func (s *study) neuroLatency(j *jetson) {
	inputs := append(j.times(), s.given("d", "neuro/d/5500"))
	at := func(level float64) Token { return j.pipeline.Token(s.neuroD(level), gib(level)) }
	low, mid, high := at(9.0), at(11.9), at(14.8)
	s.calibrate("neuro/latency/9.0", "9.0 GiB, d = 2: time per token", low.Total.Millis(),
		"host time per request of the Jetson", append(j.volumes, j.compute)...)
	s.predict("neuro/throughput/11.9", "11.9 GiB, d = 14: throughput", 1/mid.Total.Seconds(), 10,
		inputs...)
	s.predict("neuro/latency/14.8", "14.8 GiB, d = 28: time per token", high.Total.Millis(), 10,
		inputs...)
	share := s.pub("neuro/io-share")
	for _, l := range []struct {
		key string
		t   Token
	}{{"9.0", low}, {"11.9", mid}, {"14.8", high}} {
		s.predictAgainst("neuro/io-share/"+l.key, share, l.key+" GiB: I/O share of the time",
			100*l.t.Share(), 10, inputs...)
	}
	span := 100 * max(high.IO, high.Prefix).Seconds() / high.Total.Seconds()
	s.predictAgainst("neuro/io-share/14.8@overlap", share,
		"14.8 GiB: share of the stage in which I/O and prefix run", span, 10, inputs...)
}

// neuroSplit adds d*, "the largest dense prefix that fits within the memory budget", and the
// regimes of the sweep of d.
func (s *study) neuroSplit(j *jetson) {
	const level = 11.9
	inputs := append(j.times(), j.reserve)
	sizes := []Input{j.reserve, s.given("predictor", "neuro/predictor"), other("shape",
		j.model.name, "traces/shapes/models.csv")}
	seen := map[Regime]bool{}
	for _, k := range []int{5500, 7168, 9865} {
		p := *j.pipeline
		p.Rows = units.Bytes(k) * neuroRecord
		p.New = func(layer int) units.Bytes {
			return units.Bytes(float64(j.pipeline.New(layer)) * float64(k) / neuroKMax)
		}
		for d := 2; d <= p.Layers; d++ {
			t := p.Token(d, gib(level))
			seen[t.Regime()] = true
		}
		s.predict(fmt.Sprintf("neuro/d/%d", k),
			fmt.Sprintf("11.9 GiB, K_max = %d: largest d that fits", k),
			float64(p.Largest(gib(level))), 10, sizes...)
	}
	s.predict("neuro/d/9.0", "9.0 GiB: largest d that fits", float64(j.pipeline.Largest(gib(9.0))),
		10, sizes...)
	s.predict("neuro/d/14.8", "14.8 GiB: largest d that fits",
		float64(j.pipeline.Largest(gib(14.8))), 10, sizes...)
	// "three-regime trade-off", section 4.3 of the same text
	three := derived("neuro/regimes", 3, 3, "regimes", s.pub("neuro/available"))
	three.Quality = "text"
	names := slices.Sorted(maps.Keys(seen))
	s.predictAgainst("neuro/regimes", three,
		fmt.Sprintf("regimes of the sweep of d at 11.9 GiB: %v", names), float64(len(seen)), 0,
		inputs...)
}

// neuroPaging adds llama.cpp, whose mapped weights are paged.
func (s *study) neuroPaging(j *jetson) {
	rate := func(t units.Nanos) float64 { return 1 / t.Seconds() }
	ours := func(level float64) float64 {
		t := j.pipeline.Token(j.pipeline.Best(gib(level)), gib(level))
		return rate(t.Total)
	}
	replaced := other("replacement", "random", "Linux is between it and LRU, which is the row "+
		"beside it")
	inputs := append(j.times(), j.reserve, j.faults, replaced, s.given("d", "neuro/d/5500"))
	s.calibrate("neuro/llama/11.9", "11.9 GiB: llama.cpp, random replacement", rate(j.llama(11.9)),
		"host time per fault of the Jetson", j.compute, replaced)
	drive := faultRate(j.device, 0)
	s.predictAgainst("neuro/llama/11.9@lru", s.pub("neuro/llama/11.9"), "11.9 GiB: llama.cpp, LRU",
		rate(j.llamaCompute()+drive.Time(sized(j.model.total, 2))), 10,
		j.compute, other("rate of faults", drive.String(),
			"preset jetson-orin-990pro, 128 KiB read-ahead, no host time"))
	mid := j.pipeline.Token(s.neuroD(11.9), gib(11.9))
	s.predict("neuro/speedup/11.9", "11.9 GiB: NeuroPrefetcher over llama.cpp",
		rate(mid.Total)/rate(j.llama(11.9)), 10, inputs...)
	size := float64(sized(j.model.total, 2))
	most, least := 0.0, 0.0
	available := s.pub("neuro/available")
	const levels = 7
	for i := range levels {
		level := available.Low + (available.High-available.Low)*float64(i)/(levels-1)
		if size <= float64(gib(level)) { // beyond the crossover
			continue
		}
		ratio := ours(level) / rate(j.llama(level))
		most = max(most, ratio)
		if least == 0 || ratio < least {
			least = ratio
		}
	}
	split := []Input{other("d", "fastest that fits", "the model's own"),
		s.given("levels, seven evenly spaced (I41)", "neuro/available")}
	s.predict("neuro/speedup/max", "largest advantage before the crossover", most, 10,
		append(inputs, split...)...)
	s.predict("neuro/speedup/min", "smallest advantage before the crossover", least, 10,
		append(inputs, split...)...)
	const crossover = 13.9
	s.predict("neuro/crossover/speedup", "13.9 GiB: NeuroPrefetcher over llama.cpp, the model fits",
		ours(crossover)/rate(j.llama(crossover)), 15, append(inputs, split...)...)
}

// neuroTrace adds rows with the volumes of a synthetic trace, which has the model's published
// persistence, in place of the published volumes.
func (s *study) neuroTrace(j *jetson) error {
	e, err := synth.Expect(synth.Options{Like: j.model.name, Tokens: 1, Predicted: true})
	if err != nil {
		return err
	}
	trace := []Input{other("trace", "synth mistral-7b-v0.1, closed form",
		"neuro/persistence and K_max, traces/synth/targets.csv")}
	one, two := e.PredictedSAgg[1], e.PredictedSAgg[2]
	s.calibrate("neuro/persistence", "predicted rows that were predicted a token before",
		100*(2*one-two)/one, "core of the synthetic process for Mistral-7B")
	layer := units.Bytes((two - one) * float64(j.model.shape.DFFN) * neuroRecord)
	for _, level := range []string{"9.0", "14.8"} {
		d := int(s.val("neuro/d/" + level))
		read := units.Bytes(j.model.shape.Layers-d) * layer
		s.predict("neuro/volume/"+level, level+" GiB: read per token, of the trace",
			float64(read)/float64(units.MiB), 10, append(trace, s.given("d", "neuro/d/"+level))...)
	}
	alone := *j
	pipeline := *j.pipeline
	pipeline.New = func(int) units.Bytes { return layer }
	device := *j.device
	alone.pipeline, alone.device = &pipeline, &device
	if err := s.neuroReads(&alone); err != nil {
		return err
	}
	t := alone.pipeline.Token(s.neuroD(11.9), gib(11.9))
	s.predictAgainst("neuro/throughput/11.9@trace", s.pub("neuro/throughput/11.9"),
		"11.9 GiB, d = 14: throughput, volumes of the trace", 1/t.Total.Seconds(), 10,
		append(trace, alone.compute, alone.reads, s.given("d", "neuro/d/5500"),
			s.given("d of the calibration", "neuro/d/9.0"))...)
	return nil
}
