package centroid

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/kernels/cpu"
)

func newTestPool(t *testing.T, workers int) *cpu.Pool {
	t.Helper()
	pool := cpu.NewPool(workers)
	t.Cleanup(pool.Close)
	return pool
}

// memory is samples in memory.
type memory struct {
	shape    Shape
	features [][]float32
	masks    [][]mask.Mask // token, Shape.head
}

func (m *memory) Len() int     { return len(m.features) }
func (m *memory) Shape() Shape { return m.shape }
func (m *memory) Feature(i int, dst []float32) error {
	copy(dst, m.features[i])
	return nil
}
func (m *memory) Mask(i, layer, projection int, dst mask.Mask) error {
	copy(dst, m.masks[i][m.shape.head(layer, projection)])
	return nil
}

// world draws tokens of a made-up model: each has one of several states, which its feature shows
// with noise; in every layer and projection a state has a pattern, and the mask is that pattern
// with a few bits flipped.
type world struct {
	shape    Shape
	features [][]float32   // by state
	patterns [][]mask.Mask // by state and head
	flips    float64
	rng      *rand.Rand
}

func newWorld(shape Shape, states int, flips float64) *world {
	w := &world{shape: shape, flips: flips, rng: rng.Stream(11, "test/world")}
	for range states {
		f := make([]float32, shape.Width)
		for j := range f {
			f[j] = float32(3*w.rng.NormFloat64()) + 5
		}
		w.features = append(w.features, f)
		var p []mask.Mask
		for range shape.heads() {
			p = append(p, random(shape.Units, 0.3, w.rng))
		}
		w.patterns = append(w.patterns, p)
	}
	return w
}

func (w *world) tokens(n int) *memory {
	m := &memory{shape: w.shape}
	for range n {
		state := w.rng.IntN(len(w.features))
		f := make([]float32, w.shape.Width)
		for j, v := range w.features[state] {
			f[j] = v + float32(w.rng.NormFloat64())
		}
		var masks []mask.Mask
		for _, p := range w.patterns[state] {
			flipped := slices.Clone(p)
			for u := range w.shape.Units {
				if w.rng.Float64() < w.flips {
					flipped[u/64] ^= 1 << (u % 64)
				}
			}
			masks = append(masks, flipped)
		}
		m.features, m.masks = append(m.features, f), append(m.masks, masks)
	}
	return m
}

var gated = Shape{Layers: 4, Projections: 2, Units: 70, Width: 12}

// trained builds and trains on tokens of a world with as many centroids as states.
func trained(t *testing.T, s Samples, opt TrainOptions) *Predictor {
	t.Helper()
	fit, held, err := Split(s, 0.2)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	book, err := Build(ctx, fit, BuildOptions{ClusterOptions: ClusterOptions{Count: 6, Seed: 1,
		Workers: opt.Workers}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := Train(ctx, fit, held, book, opt)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
