package serving

import (
	"math"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/synth"
)

// BenchmarkServe serves 200 requests of 512 prompt and 128 output tokens that come at once, on the
// whole OPT-6.7B shape.
func BenchmarkServe(b *testing.B) {
	src := &traces.Memory{}
	head, err := synth.Generate(b.Context(), synth.Options{Like: "opt-6.7b", Sequences: 4,
		Tokens: 48,
		Prompt: 32, Seed: 42}, func(t *traces.Token) error {
		kept := *t
		kept.Active = append([]mask.Mask{}, t.Active...)
		src.List = append(src.List, kept)
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	src.Head = head
	device, err := devicemodels.Preset("m1-max")
	if err != nil {
		b.Fatal(err)
	}
	s, err := New(src, Config{
		Sim: sim.Config{Engine: "pread", Parallel: 32, Device: device, Layout: layout.Options{
			Coalesce: true}},
		MaxBatch: 16, Chunk: 256, Compute: Once, Seed: 42,
	})
	if err != nil {
		b.Fatal(err)
	}
	var steps int64
	for b.Loop() {
		lengths, err := NewLengths(512, 128, 0, 42)
		if err != nil {
			b.Fatal(err)
		}
		load, err := NewShaped(lengths, Shape{Requests: 200, Rate: math.Inf(1), Seed: 42})
		if err != nil {
			b.Fatal(err)
		}
		r, err := s.Run(b.Context(), load)
		if err != nil {
			b.Fatal(err)
		}
		steps += r.Steps
	}
	b.ReportMetric(float64(steps)/b.Elapsed().Seconds(), "steps/s")
}
