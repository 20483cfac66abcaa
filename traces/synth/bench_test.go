package synth

import (
	"testing"

	"github.com/windrow-sim/windrow/traces"
)

// BenchmarkGenerate makes 256 tokens of the whole OPT-6.7B shape, 32 layers of 16,384 units, with
// predicted masks.
func BenchmarkGenerate(b *testing.B) {
	opt := Options{Like: "opt-6.7b", Tokens: 256, Seed: 42, Predicted: true}
	for b.Loop() {
		if _, err := Generate(b.Context(), opt,
			func(*traces.Token) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	bits := 256.0 * 32 * 16384
	b.ReportMetric(bits*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mbits/s")
}
