package predictor

import (
	"math/rand/v2"
	"testing"

	"github.com/windrow-sim/windrow/internal/mask"
)

// shapes are one layer of the shipped model and of OPT-6.7B, with the paper's two ranks.
var shapes = []struct {
	name               string
	width, units, rank int
}{{"tales", 256, 1024, 64}, {"opt-6.7b", 4096, 16384, 128}, {"opt-6.7b-last", 4096, 16384, 1024}}

func BenchmarkPredict(b *testing.B) {
	for _, c := range shapes {
		b.Run(c.name, func(b *testing.B) {
			p := random(b, ReLU, c.width, c.units, c.rank, true, 1)
			run, h, mask := p.Runner(nil), make([]float32, c.width), mask.New(c.units)
			b.SetBytes(int64(p.Bytes()))
			for b.Loop() {
				if err := run.Predict(0, h, mask); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkStep is one step of training on one core; a 16th of the elements is active.
func BenchmarkStep(b *testing.B) {
	const size = 64
	for _, c := range shapes[:2] {
		b.Run(c.name, func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 2))
			bt := newBatch(newPlain(1, 1, c.width, c.units), 0, size, false)
			bt.n = size
			for i := range bt.x {
				bt.x[i] = float32(r.NormFloat64())
			}
			for i := range bt.active {
				bt.active[i] = r.Uint64() & r.Uint64() & r.Uint64() & r.Uint64()
			}
			net, grad, w := newNetwork(c.width, c.rank, c.units, Linear), newNetwork(c.width,
				c.rank, c.units, Linear), balanced(1./16)
			net.init(&survey{samples: size, count: make([]int, c.units)}, w, r)
			ws, descent := net.workspace(size), newAdam(net, 0.01)
			for b.Loop() {
				net.forward(bt, ws)
				net.gradient(bt, ws, w, grad)
				descent.update(net.params, grad.params, 1e-3)
			}
			// Forward, and backward to both matrices and to the inner values.
			flops := 2 * size * c.rank * (2*c.width + 3*c.units)
			b.ReportMetric(float64(flops)*float64(b.N)/float64(b.Elapsed().Nanoseconds()),
				"GFLOP/s")
		})
	}
}
