package cpu

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/windrow-sim/windrow/kernels/ref"
)

// FuzzFormats compares dot products, updates and mat-vecs of every format with the plain ones, over all lengths.
func FuzzFormats(f *testing.F) {
	for _, n := range []uint16{0, 1, 8, 31, 255, 256, 300} {
		f.Add(n, uint64(n))
	}
	f.Fuzz(func(t *testing.T, n16 uint16, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 9))
		for _, format := range ref.Formats() {
			n := int(n16%1024) / format.Group() * format.Group()
			const rows = 5
			src, x := make([]float32, rows*n), make([]float32, n)
			for i := range src {
				src[i] = float32(random.NormFloat64())
			}
			for i := range x {
				x[i] = float32(random.NormFloat64())
			}
			w := make([]byte, format.Size(rows*n))
			format.Encode(w, src)
			size := format.Size(n)
			y := make([]float32, rows)
			pool := NewPool(2)
			pool.MatVecFormat(format, w, rows, n, x, y)
			pool.Close()
			for r := range rows {
				row := w[r*size : (r+1)*size]
				want := format.Dot(row, x)
				got := DotFormat(format, row, x, w[:size])
				// Sums in another order differ by some units in the last place of the largest partial sum.
				if bound := 1e-5 * (1 + math.Sqrt(float64(n))); math.Abs(float64(got-want)) > bound*2 || y[r] != DotFormat(format, row, x, nil) {
					t.Fatalf("%s, %d weights: dot %v, want %v; in the mat-vec %v", format, n, got, want, y[r])
				}
				into, plain := append([]float32{}, x...), append([]float32{}, x...)
				AxpyFormat(format, 0.7, row, into, nil)
				format.Axpy(0.7, row, plain)
				for i := range into {
					if math.Abs(float64(into[i]-plain[i])) > 1e-6*(1+math.Abs(float64(plain[i]))) {
						t.Fatalf("%s: element %d of an update is %v, want %v", format, i, into[i], plain[i])
					}
				}
			}
		}
	})
}

// BenchmarkFormats is a mat-vec whose matrix stays in the second-level cache, and an update that stays in the first.
func BenchmarkFormats(b *testing.B) {
	const rows, n = 32, 4096
	random := rand.New(rand.NewPCG(1, 1))
	src, x, y := floats(random, rows*n), floats(random, n), make([]float32, n)
	pool := NewPool(1)
	defer pool.Close()
	for _, format := range ref.Formats() {
		w := make([]byte, format.Size(rows*n))
		format.Encode(w, src)
		row := w[:format.Size(n)]
		for _, c := range []struct {
			name    string
			weights int
			f       func()
		}{
			{"MatVec", rows * n, func() { pool.MatVecFormat(format, w, rows, n, x, y[:rows]) }},
			{"Dot", n, func() { y[0] = DotFormat(format, row, x, nil) }},
			{"Axpy", n, func() { AxpyFormat(format, 1e-9, row, y, nil) }},
		} {
			b.Run(c.name+"/"+format.String(), func(b *testing.B) {
				b.SetBytes(int64(format.Size(c.weights)))
				for b.Loop() {
					c.f()
				}
				b.ReportMetric(float64(c.weights)*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gweights/s")
			})
		}
	}
}
