package predictor

import (
	"fmt"

	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/kernels/cpu"
)

// Runner predicts with a Predictor on the threads of a pool. It holds the scratch memory, so it is
// not safe for concurrent use; Runners are cheap.
type Runner struct {
	p    *Predictor
	pool *cpu.Pool
	mid  []float32 // (largest rank)
	z    []float32 // (units)
}

// Runner returns a Runner. A nil pool means the caller's thread alone.
func (p *Predictor) Runner(pool *cpu.Pool) *Runner {
	rank := 0
	for l := range p.layers {
		rank = max(rank, p.layers[l].Rank)
	}
	return p.runner(rank, pool)
}

// runner returns a Runner for layers of at most the given rank. It reads no layer: others may be in
// training.
func (p *Predictor) runner(rank int, pool *cpu.Pool) *Runner {
	return &Runner{p: p, pool: pool, mid: make([]float32, rank), z: make([]float32, p.units)}
}

// Words is the length of a mask.
func (r *Runner) Words() int { return mask.Words(r.p.units) }

// Predict sets need to the units predicted for the layer from its feature h. It allocates nothing.
// NaN counts as predicted, so that a broken input costs time, not results.
func (r *Runner) Predict(layer int, h []float32, need mask.Mask) error {
	if layer < 0 || layer >= len(r.p.layers) || len(h) != r.p.width || len(need) != r.Words() {
		return fmt.Errorf("predictor: layer %d with a feature of %d and a mask of %d words: it "+
			"has %d layers, features of %d and masks of %d words",
			layer, len(h), len(need), len(r.p.layers), r.p.width, r.Words())
	}
	l := &r.p.layers[layer]
	if l.Rank == 0 {
		need.Fill(r.p.units)
		return nil
	}
	z := r.values(l, h)
	for w := range need {
		var word uint64
		for i, v := range z[w*64 : min(len(z), w*64+64)] {
			if !(v < l.MinLogit) {
				word |= 1 << i
			}
		}
		need[w] = word
	}
	return nil
}

// values computes the units' values before the sigmoid, valid until the next call. The layer must
// have a rank.
func (r *Runner) values(l *Layer, h []float32) []float32 {
	mid := r.mid[:l.Rank]
	r.matVec(l.W1, l.Rank, r.p.width, h, mid)
	addTo(mid, l.B1)
	if r.p.kind == ReLU {
		for i, v := range mid {
			mid[i] = max(v, 0)
		}
	}
	r.matVec(l.W2, r.p.units, l.Rank, mid, r.z)
	addTo(r.z, l.B2)
	return r.z
}

func (r *Runner) matVec(w []uint16, rows, cols int, x, y []float32) {
	if r.pool == nil {
		cpu.MatVec(w, rows, cols, x, y)
		return
	}
	r.pool.MatVec(w, rows, cols, x, y)
}

func addTo(dst, src []float32) {
	for i, v := range src {
		dst[i] += v
	}
}
