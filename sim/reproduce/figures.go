package reproduce

import (
	"fmt"
	"slices"

	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/shapes"
	"github.com/windrow-sim/windrow/traces/synth"
)

// readOff is the tolerance of numbers read off a figure.
var readOff = tolerance{20, "read off a figure"}

// figures adds the shapes of Figures 4a, 7, 8 and 12.
func (s *study) figures() error {
	for _, f := range []func() error{s.figure4a, s.figure7, s.figure8, s.figure12} {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// figure4a adds the aggregated use of Falcon-7B, true masks: the rows that a window of k−1 tokens
// keeps are those of k tokens, and what it loads is the next step.
func (s *study) figure4a() error {
	falcon, err := s.model("falcon")
	if err != nil {
		return err
	}
	at := func(k int) (kept, loaded float64, inputs []Input, err error) {
		c := scenario{model: falcon.name, dtype: "f32", device: m1CPU, truth: true,
			policy: window(float64(k - 1))}
		m, err := s.simulate(c)
		if err != nil {
			return 0, 0, nil, err
		}
		return m.share(m.resident), m.share(m.read), s.inputs(c), nil
	}
	for _, r := range []struct {
		id, what string
		k        int
		step     bool
	}{
		{"s1", "s_agg(1)", 1, false}, {"s5", "s_agg(5)", 5, false},
		{"s30", "s_agg(30)", 30, false}, {"delta5", "s_agg(5) − s_agg(4)", 5, true},
		{"delta30", "s_agg(30) − s_agg(29)", 30, true},
	} {
		kept, loaded, inputs, err := at(r.k)
		if err != nil {
			return err
		}
		ours := kept
		if r.step {
			ours = loaded
		}
		s.row(Simulated, "figure4a/"+r.id, "Falcon-7B, mean over layers: "+r.what, ours, readOff,
			inputs)
	}
	return nil
}

// figure7 adds I/O against DRAM on the GPU machine, with the window as the parameter.
func (s *study) figure7() error {
	opt, err := s.model("opt")
	if err != nil {
		return err
	}
	windows := []float64{0, 1, 2, 4, 8, 16, 32}
	var io []float64
	c := s.gpuAll(opt)
	for _, w := range windows {
		c.policy = window(w)
		m, err := s.simulate(c)
		if err != nil {
			return err
		}
		io = append(io, m.io.Seconds())
	}
	steps, falls := len(windows)-1, 0
	for i := range steps {
		if io[i+1] < io[i] {
			falls++
		}
	}
	inputs := s.inputs(s.gpuAll(opt))
	least, most := s.pub("figure7/35/load"), s.pub("figure7/80/load")
	// The published end points fall: a longer window always reads less.
	s.against(Simulated, "figure7/monotone", derived("figure7/monotone", 100, 100, "%", least,
		most), fmt.Sprintf("windows from 0 to %g with which I/O falls", windows[steps]),
		100*float64(falls)/float64(steps), tolerance{0, "a shape"}, inputs)
	s.against(Simulated, "figure7/ratio", derived("figure7/ratio", most.Mid()/least.Mid(),
		most.Mid()/least.Mid(), "x", least, most), fmt.Sprintf("I/O with a window of %g over I/O "+
		"without: 80 %% and 35 %% of the model in the figure", windows[steps]), io[steps]/io[0],
		readOff, inputs)
	e, err := s.expect("OPT-6.7B", 0)
	if err != nil {
		return err
	}
	floor := opt.percent(opt.embedding + opt.attention + opt.predictor + part(opt.ffn,
		e.PredictedSAgg[1]))
	s.against(Arithmetic, "figure7/least", derived("figure7/least", 35, 35, "%", least),
		"least DRAM that a token runs in", floor, readOff, inputs)
	return nil
}

// figure8 adds I/O over a long generation.
func (s *study) figure8() error {
	opt, err := s.model("opt")
	if err != nil {
		return err
	}
	c := s.all(opt)
	run, err := s.simulate(c)
	if err != nil {
		return err
	}
	inputs := s.inputs(c)
	s.against(Simulated, "figure8/first", s.interval("figure8/first", "ms"), "OPT-6.7B, M1 Max "+
		"CPU: I/O of the first token", run.byToken[0].Millis(), readOff, inputs)
	s.against(Simulated, "figure8/late", s.interval("figure8/late", "ms"), "OPT-6.7B, M1 Max CPU: "+
		"I/O after the window has filled", run.io.Millis(), readOff, inputs)
	mean := func(list []units.Nanos) float64 {
		sum := units.Nanos(0)
		for _, v := range list {
			sum += v
		}
		return sum.Seconds() / float64(len(list))
	}
	half, full := len(run.byToken)/2, int(s.val("window/opt/k"))+1
	s.against(Simulated, "figure8/flat", derived("figure8/flat", 1, 1, "x",
		s.pub("figure8/late/low")), "I/O of the later half over the earlier, window full",
		mean(run.byToken[half:])/mean(run.byToken[full:half]), totalTolerance, inputs)
	return nil
}

// interval joins two published numbers, the ends of a range.
func (s *study) interval(id, unit string) Published {
	low, high := s.pub(id+"/low"), s.pub(id+"/high")
	return derived(id, low.Low, high.High, unit, low, high)
}

// figure12 adds the co-activation of a unit with its closest friends.
func (s *study) figure12() error {
	const tokens, sampled, enough = 512, 64, 32
	shape, _, err := shapes.Lookup("OPT-6.7B")
	if err != nil {
		return err
	}
	shape.Layers = 1
	trace, err := synth.Collect(s.ctx, synth.Options{Like: "OPT-6.7B", Shape: shape, Tokens: tokens,
		Seed: s.seed, Predicted: true})
	if err != nil {
		return err
	}
	friends := closest(trace, sampled, enough)
	read := tolerance{5, "a caption's two digits"}
	inputs := []Input{other("trace", fmt.Sprintf("synth opt-6.7b, one layer of middle depth, %d "+
		"tokens, predicted masks", tokens), "units are independent given their popularity "+
		"(traces/synth)")}
	first := s.pub("figure12/1")
	first.High = 100 // "at least"
	s.against(Arithmetic, "figure12/1", first, "co-activation with the closest friend, least of "+
		"the units", friends[0].least, read, inputs)
	s.row(Arithmetic, "figure12/4", "co-activation with the 4th closest friend, mean",
		friends[3].mean, read, inputs)
	s.row(Arithmetic, "figure12/8", "co-activation with the 8th closest friend, mean",
		friends[7].mean, read, inputs)
	s.row(Arithmetic, "figure12/run", "contiguous run of active units, mean, true masks",
		meanRun(trace), read, inputs)
	return nil
}

// friend is the co-activation with the n-th closest friend, in percent.
type friend struct{ mean, least float64 }

// closest counts the co-activation of every other unit with the first units of the trace's only
// layer that are active often enough.
func closest(trace *traces.Memory, sampled, enough int) [8]friend {
	var out [8]friend
	for i := range out {
		out[i].least = 100
	}
	counts := make([]int, trace.Head.Units)
	n := 0
	for u := 0; u < trace.Head.Units && n < sampled; u++ {
		clear(counts)
		own := 0
		for t := range trace.List {
			predicted := trace.List[t].Predicted[0]
			if !predicted.Has(uint32(u)) {
				continue
			}
			own++
			for v := range predicted.Each {
				counts[v]++
			}
		}
		if own < enough {
			continue
		}
		n++
		counts[u] = 0
		slices.SortFunc(counts, func(a, b int) int { return b - a })
		for i := range out {
			percent := 100 * float64(counts[i]) / float64(own)
			out[i].mean += percent
			out[i].least = min(out[i].least, percent)
		}
	}
	for i := range out {
		out[i].mean /= float64(max(n, 1))
	}
	return out
}

// meanRun is the mean length of runs of active units, true masks.
func meanRun(trace *traces.Memory) float64 {
	active, runs := 0, 0
	for t := range trace.List {
		for _, m := range trace.List[t].Active {
			active += m.Count()
			runs += m.Runs()
		}
	}
	return float64(active) / float64(max(runs, 1))
}
