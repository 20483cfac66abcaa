package reproduce

import (
	"fmt"
	"slices"

	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/shapes"
	"github.com/windrow-sim/windrow/traces/synth"
)

// readOff is the tolerance of numbers read off a figure.
const readOff = 20

// figures adds the shapes of Figures 4a, 7, 8 and 12.
func (s *study) figures() error {
	for _, f := range []func() error{s.figure4a, s.figure7, s.figure8, s.figure12} {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// figure4a adds the aggregated use of Falcon-7B, true masks.
func (s *study) figure4a() error {
	e, err := s.expect("Falcon-7B", 0)
	if err != nil {
		return err
	}
	trace := other("trace", "synth falcon-7b, closed form",
		"5 % active (section 3.1); temporal statistics fitted to OPT-6.7B; its Δ(29)/Δ(4) of "+
			"predicted masks was taken from this figure")
	at := func(k int) float64 { return 100 * e.ActiveSAgg[k] }
	s.predict("figure4a/s1", "Falcon-7B, layer 10: s_agg(1)", at(1), readOff, trace)
	s.predict("figure4a/s5", "Falcon-7B, layer 10: s_agg(5)", at(5), readOff, trace)
	s.predict("figure4a/s30", "Falcon-7B, layer 10: s_agg(30)", at(30), readOff, trace)
	s.predict("figure4a/delta5", "Falcon-7B, layer 10: s_agg(5) − s_agg(4)", at(5)-at(4), readOff,
		trace)
	s.predict("figure4a/delta30", "Falcon-7B, layer 10: s_agg(30) − s_agg(29)", at(30)-at(29),
		readOff, trace)
	return nil
}

// figure7 adds I/O against DRAM on the GPU machine, with the window as the parameter.
func (s *study) figure7() error {
	opt, err := s.model("opt")
	if err != nil {
		return err
	}
	e, err := s.expect("OPT-6.7B", 0)
	if err != nil {
		return err
	}
	linux := s.machines.devices[rtx]
	rate := linux.Flash.Throughput(ioengine.Pread, linux.Host.Cores, bundleBytes, threads)
	io := func(window int) units.Nanos {
		return rate.Time(sized(part(opt.ffn, e.PredictedSAgg[window+1]-e.PredictedSAgg[window]), 2))
	}
	longest := synth.MaxWindow - 1
	falls := 0
	for window := 1; window <= longest; window++ {
		if io(window) < io(window-1) {
			falls++
		}
	}
	inputs := append(s.optTrace(), calibrated("flash.link_rate", linux.Flash.LinkRate.String(),
		"flash/linux-16k"))
	least, most := s.pub("figure7/35/load"), s.pub("figure7/80/load")
	// The published end points fall: a window longer by a token always reads less.
	always := derived("figure7/monotone", 100, 100, "%", least, most)
	s.predictAgainst("figure7/monotone", always,
		fmt.Sprintf("steps of the window from 0 to %d at which I/O falls", longest),
		100*float64(falls)/float64(longest), 0, inputs...)
	ratio := derived("figure7/ratio", most.Mid()/least.Mid(), most.Mid()/least.Mid(), "x", least,
		most)
	s.predictAgainst("figure7/ratio", ratio,
		fmt.Sprintf("I/O with a window of %d over I/O without: 80 %% and 35 %% of the model in "+
			"the figure", longest),
		io(longest).Seconds()/io(0).Seconds(), readOff, inputs...)
	floor := opt.percent(opt.embedding + opt.attention + opt.predictor + part(opt.ffn,
		e.PredictedSAgg[1]))
	s.predictAgainst("figure7/least", derived("figure7/least", 35, 35, "%", least),
		"least DRAM that a token runs in", floor, readOff, inputs...)
	return nil
}

// figure8 adds I/O over a long generation.
func (s *study) figure8() error {
	run, err := s.simulate(s.optCPU())
	if err != nil {
		return err
	}
	inputs := append(s.optTrace(), s.machines.m1Reads...)
	first := s.interval("figure8/first", "ms")
	late := s.interval("figure8/late", "ms")
	s.predictAgainst("figure8/first", first, "OPT-6.7B, M1 Max CPU: I/O of the first token",
		run.byToken[0].Millis(), readOff, inputs...)
	s.predictAgainst("figure8/late", late, "OPT-6.7B, M1 Max CPU: I/O after the window has filled",
		run.io.Millis(), readOff, inputs...)
	mean := func(list []units.Nanos) float64 {
		sum := units.Nanos(0)
		for _, v := range list {
			sum += v
		}
		return sum.Seconds() / float64(len(list))
	}
	half := len(run.byToken) / 2
	flat := derived("figure8/flat", 1, 1, "x", s.pub("figure8/late/low"))
	s.predictAgainst("figure8/flat", flat, "I/O of the later half over the earlier, window full",
		mean(run.byToken[half:])/mean(run.byToken[s.optWindow()+1:half]), 10, inputs...)
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
	inputs := []Input{other("trace", fmt.Sprintf("synth opt-6.7b, one layer of middle depth, %d "+
		"tokens, predicted masks", tokens), "units are independent given their popularity "+
		"(traces/synth)")}
	first := s.pub("figure12/1")
	first.High = 100 // "at least"
	s.predictAgainst("figure12/1", first, "co-activation with the closest friend, least of the "+
		"units", friends[0].least, 5, inputs...)
	s.predict("figure12/4", "co-activation with the 4th closest friend, mean", friends[3].mean, 5,
		inputs...)
	s.predict("figure12/8", "co-activation with the 8th closest friend, mean", friends[7].mean, 5,
		inputs...)
	s.predict("figure12/run", "contiguous run of active units, mean, true masks", meanRun(trace), 5,
		inputs...)
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
