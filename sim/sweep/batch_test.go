package sweep

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/sim/answers"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/batch"
	"github.com/windrow-sim/windrow/traces/synth"
	"github.com/windrow-sim/windrow/traces/whatif"
)

// inBatches repeats configurations for batches of so many.
func inBatches(list []Config, sizes ...int) (all []Config) {
	for _, size := range sizes {
		for _, c := range list {
			c.Batch = size
			all = append(all, c)
		}
	}
	return all
}

// Invariant 5: a batch is sim.Run on the unions of its lanes, to the nanosecond, but for the keys
// and values of all its sequences.
func TestBatchesEqualRunsOnUnions(t *testing.T) {
	device := testDevice("limited", func(f *flash.Spec) {
		f.Limit = &flash.Limit{Rate: 300 * units.MBps, Interval: 20 * units.Millisecond}
	})
	src := smallTrace(t)
	stream, err := batch.NewStream(src)
	if err != nil {
		t.Fatal(err)
	}
	configs := inBatches(mixed(device)[38:], 1, 2, 3, 7)
	for i, r := range run(t, FromSource(src, 0), configs, Options{}) {
		union, err := stream.Union(configs[i].Batch, 1)
		if err != nil {
			t.Fatal(err)
		}
		single, err := sim.Run(t.Context(), union, configs[i].Config)
		if err != nil {
			t.Fatal(err)
		}
		want := single.Meta.Totals
		if r.Batch != configs[i].Batch || r.Tokens != want.Tokens*r.Batch {
			t.Errorf("a batch of %d: %d tokens in %d steps of %d", r.Batch, r.Tokens, want.Tokens,
				configs[i].Batch)
		}
		want.Tokens *= r.Batch
		sameDecisions(t, &r, &want)
		keys := units.Nanos(0)
		lanes := union.Lanes()
		for step := range lanes.Steps {
			all, one := src.Head.Shape.KVBytes()*units.Bytes(lanes.Positions(step)),
				src.Head.Shape.KVBytes()*units.Bytes(step+1)
			kv := device.Host.At(src.Head.DType).KV
			keys += units.Nanos(src.Head.Layers) * (kv.Time(all, 1) - kv.Time(one, 1))
		}
		want.PartNanos[traces.PartAttention] += keys
		for p, part := range r.Parts {
			if part.Nanos != want.PartNanos[p] {
				t.Errorf("a batch of %d, %s: %s takes %v, on the union %v", r.Batch, r.Policy,
					part.Name, part.Nanos, want.PartNanos[p])
			}
		}
		if r.Wall != want.Wall+keys || r.TokensPerS != float64(r.Tokens)/r.Wall.Seconds() ||
			r.Basis != single.Meta.Prediction.Basis {
			t.Errorf("a batch of %d, %s: %v, %g tokens/s, want %v", r.Batch, r.Policy, r.Wall,
				r.TokensPerS, want.Wall+keys)
		}
	}
}

// What a sweep says of a batch is what package batching says of it.
func TestBatchesAgreeWithBatching(t *testing.T) {
	device := testDevice("limited", func(f *flash.Spec) {
		f.Limit = &flash.Limit{Rate: 300 * units.MBps, Interval: 20 * units.Millisecond}
	})
	src, sizes := smallTrace(t), []int{1, 2, 5}
	base := Config{Config: sim.Config{Device: device, Engine: "pread", Parallel: 8, Predicted: true,
		Layout: layout.Options{Coalesce: true}}}
	stream, err := batch.NewStream(src)
	if err != nil {
		t.Fatal(err)
	}
	want, err := answers.SimulateBatches(t.Context(), stream, answers.BatchConfig{Sim: base.Config,
		Sizes:   sizes,
		AtLeast: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range run(t, FromSource(src, 0), inBatches([]Config{base}, sizes...), Options{}) {
		part := func(parts ...traces.Part) (sum units.Nanos) {
			for _, p := range parts {
				sum += r.Parts[p].Nanos
			}
			n := units.Nanos(r.Tokens)
			return (sum + n/2) / n
		}
		row := &want.Rows[i]
		compute := part(traces.PartAttention, traces.PartFFN, traces.PartOther)
		if part(traces.PartIO) != row.IO || part(traces.PartPredict) != row.Decide ||
			part(traces.PartMemory) != row.Memory || compute != row.Compute {
			t.Errorf("a batch of %d: I/O %v, compute %v per token; batching says %+v", r.Batch,
				part(traces.PartIO), compute, row)
		}
		if bytes := float64(r.Bytes) / float64(r.Tokens); bytes != row.Bytes {
			t.Errorf("a batch of %d reads %g bytes per token, batching says %g", r.Batch, bytes,
				row.Bytes)
		}
	}
}

// A batch of a synthetic trace is that of a file with as many sequences.
func TestSyntheticBatch(t *testing.T) {
	configs := mixed(testDevice("servers", nil))[:12]
	for _, prompt := range []int{0, 5, 70} {
		opt := synth.Options{Like: "opt-125m", Layers: 2, Units: 500, Tokens: 70, Prompt: prompt,
			Seed: 9, ActiveShare: 0.08, Predicted: true}
		for _, most := range []int{0, 20} {
			made, err := FromSynth(opt, most)
			if err != nil {
				t.Fatal(err)
			}
			file := opt
			file.Sequences = 3
			memory, err := synth.Collect(t.Context(), file)
			if err != nil {
				t.Fatal(err)
			}
			list := inBatches(configs, 3)
			got, want := run(t, made, slices.Clone(list), Options{}),
				run(t, FromSource(memory, most), list, Options{})
			if !slices.Equal(lines(t, got), lines(t, want)) {
				t.Errorf("%d prompt tokens, at most %d: a batch made on the way is another than "+
					"that of a file", prompt, most)
			}
		}
	}
}

// A what-if of a file is sim.Run on what package whatif makes of it, also in batches; a synthetic
// trace is made with the share.
func TestWhatIfs(t *testing.T) {
	device := testDevice("limited", func(f *flash.Spec) {
		f.Limit = &flash.Limit{Rate: 300 * units.MBps, Interval: 20 * units.Millisecond}
	})
	src := smallTrace(t)
	var configs []Config
	for _, w := range []whatif.Options{{}, {Share: 0.03}, {Share: 0.15}, {Predictor: true},
		{Share: 0.05, FalseNegatives: 0.05, FalsePositives: 0.1, Predictor: true}} {
		for batch := range 3 {
			configs = append(configs, Config{
				Config: sim.Config{Device: device, Engine: "pread", Parallel: 8,
					Policy:    policy.SlidingWindow(3),
					Predicted: w.Predictor, Layout: layout.Options{Coalesce: true}},
				Variant: Variant{WhatIf: w, Batch: batch},
			})
		}
	}
	for i, r := range run(t, FromSource(src, 0), configs, Options{}) {
		v := configs[i].Variant
		changed, _, err := whatif.Apply(src, v.WhatIf)
		if err != nil {
			t.Fatal(err)
		}
		if v.Batch > 0 {
			stream, err := batch.NewStream(changed)
			if err != nil {
				t.Fatal(err)
			}
			if changed, err = stream.Union(v.Batch, 1); err != nil {
				t.Fatal(err)
			}
		}
		single, err := sim.Run(t.Context(), changed, configs[i].Config)
		if err != nil {
			t.Fatal(err)
		}
		want := single.Meta.Totals
		want.Tokens *= max(v.Batch, 1)
		sameDecisions(t, &r, &want)
		if r.Parts[traces.PartIO].Nanos != want.PartNanos[traces.PartIO] {
			t.Errorf("%+v: I/O takes %v, in a run of its own %v", v, r.Parts[traces.PartIO].Nanos,
				want.PartNanos[traces.PartIO])
		}
		if (r.Share == nil) != (v.WhatIf.Share == 0) ||
			(r.FalseNegatives == nil) == v.WhatIf.Predictor || r.Share != nil &&
			*r.Share != v.WhatIf.Share {
			t.Errorf("%+v: the result says %v active, %v missed", v, r.Share, r.FalseNegatives)
		}
	}

	opt := synth.Options{Like: "opt-125m", Layers: 2, Units: 500, Tokens: 30, Seed: 9,
		ActiveShare: 0.08, Predicted: true}
	made, err := FromSynth(opt, 0)
	if err != nil {
		t.Fatal(err)
	}
	opt.ActiveShare = 0.02
	other, err := FromSynth(opt, 0)
	if err != nil {
		t.Fatal(err)
	}
	plain := inBatches(mixed(device)[:6], 0, 2)
	asked := slices.Clone(plain)
	for i := range asked {
		asked[i].WhatIf.Share = 0.02
	}
	got, want := run(t, made, asked, Options{}), run(t, other, plain, Options{})
	for i := range got {
		got[i].Share = nil
	}
	if !slices.Equal(lines(t, got), lines(t, want)) {
		t.Error("a synthetic trace of another share is not the one that is made with it")
	}
}

func TestBatchesThatCannotBe(t *testing.T) {
	file := FromSource(smallTrace(t), 0)
	several, err := FromSynth(synth.Options{Like: "opt-125m", Layers: 1, Tokens: 3, Sequences: 2,
		ActiveShare: 0.05}, 0)
	if err != nil {
		t.Fatal(err)
	}
	large, err := FromSynth(synth.Options{Like: "opt-6.7b", Tokens: 1000}, 0)
	if err != nil {
		t.Fatal(err)
	}
	good := Config{Config: sim.Config{Device: testDevice("servers", nil), Engine: "pread",
		Parallel: 4, Policy: policy.SlidingWindow(2), Layout: layout.Options{Coalesce: true}}}
	for _, c := range []struct {
		src  *Trace
		size int
		want string
	}{{file, 1000, "record more tokens"}, {several, 2, "name no sequences"},
		{large, 200, "--sequences 200"}} {
		bad := good
		bad.Batch = c.size
		err := Run(context.Background(), c.src, List{good, bad}, Options{},
			func(*Result) error { return errors.New("a result") })
		if !errors.Is(err, sim.ErrConfig) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("a batch of %d: error %v, want one of kind sim.ErrConfig with %q", c.size, err,
				c.want)
		}
	}
}

// Passes are of the same batches, and bounded: long traces are read for at least leastShared
// configurations by table.
func TestPassesAreBounded(t *testing.T) {
	device := testDevice("servers", nil)
	var configs []Config
	for gap := range 1000 {
		configs = append(configs, Config{Config: sim.Config{Device: device, Engine: "pread",
			Parallel: 4, Policy: policy.SlidingWindow(2), Layout: layout.Options{Coalesce: true,
				Gap: gap}}})
	}
	configs = inBatches(configs, 0, 2)
	for _, c := range []struct{ tokens, tables, events int }{
		{256, 1000, passWork / (256 * 4 * eventWork)},
		{1 << 17, leastShared, 1},
		{1 << 29, leastShared, 1},
	} {
		src, err := FromSynth(synth.Options{Like: "opt-125m", Layers: 4, Tokens: c.tokens,
			ActiveShare: 0.05}, 0)
		if err != nil {
			t.Fatal(err)
		}
		s := newSweeper(src, List(configs), Options{})
		if err := s.check(t.Context()); err != nil {
			t.Fatal(err)
		}
		var all []*simulation
		for i := range 1000 {
			cfg, err := s.config(i)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, &simulation{cfg: &cfg.Config, variant: cfg.Variant})
		}
		fits := func(from int) int {
			configs, err := s.fitting(from)
			if err != nil {
				t.Fatal(err)
			}
			return from + len(configs)
		}
		if tables, events := fits(0), s.fit(all); tables != c.tables || events != c.events {
			t.Errorf("%d tokens: %d configurations by table and %d by events in a pass, want %d "+
				"and %d", c.tokens, tables, events, c.tables, c.events)
		}
		if last := fits(1995); last != 2000 {
			t.Errorf("the last pass ends at %d", last)
		}
	}
}
