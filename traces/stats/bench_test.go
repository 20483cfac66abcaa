package stats_test

import (
	"testing"

	"github.com/windrow-sim/windrow/traces/stats"
	"github.com/windrow-sim/windrow/traces/synth"
)

// BenchmarkCompute measures all windows of 0 to 64 tokens on 256 tokens of the OPT-6.7B layer shape
// (16,384 units) with one worker: 3.3 % active (true masks) and 9.9 % (predicted). An access is one
// active unit of one token and layer.
func BenchmarkCompute(b *testing.B) {
	for _, c := range []struct {
		name      string
		predicted bool
	}{{"true", false}, {"predicted", true}} {
		b.Run(c.name, func(b *testing.B) {
			m, err := synth.Collect(b.Context(), synth.Options{Like: "opt-6.7b", Layers: 8,
				Tokens: 256,
				Seed:   42, Predicted: c.predicted})
			if err != nil {
				b.Fatal(err)
			}
			accesses := int64(0)
			for b.Loop() {
				s, err := stats.Compute(m, stats.Options{Workers: 1, Predicted: c.predicted})
				if err != nil {
					b.Fatal(err)
				}
				accesses += s.Accesses
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(accesses), "ns/access")
			b.ReportMetric(float64(accesses)/b.Elapsed().Seconds()/1e6, "Maccesses/s")
		})
	}
}
