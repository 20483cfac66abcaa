package centroid

import (
	"context"
	"fmt"
	"sync"

	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/cpu"
)

// Codebook holds the vocabularies of all predicted layers and how often each unit was active. It is
// immutable.
type Codebook struct {
	shape  Shape
	vocabs []*Vocabulary // by Shape.head
	// (layer − 1, unit): number of training tokens with the unit active in every projection
	hot  [][]uint32
	made Clustering
	// (layer − 1, rank): the units, the most often active first, the lowest first among equals
	order [][]uint32
}

// Clustering are the options that a codebook was made with, as in ClusterOptions.
type Clustering struct {
	Tokens     int         `json:"tokens"` // of the samples
	Count      int         `json:"count"`
	Iterations int         `json:"iterations"`
	Distance   string      `json:"distance"`
	MissCost   int         `json:"miss_cost"`
	ExtraCost  int         `json:"extra_cost"`
	Size       int         `json:"size"`
	Memory     units.Bytes `json:"memory"` // bytes
	Seed       uint64      `json:"seed"`
}

// BuildOptions configure a codebook.
type BuildOptions struct {
	ClusterOptions // of each vocabulary, without Progress
	// Progress, if not nil, is called after each iteration of each clustering, from one goroutine.
	Progress func(BuildStep)
}

// BuildStep is where the making of a codebook stands.
type BuildStep struct {
	Vocabulary, Vocabularies int // from 1
	Layer, Projection        int
	ClusterStep
}

// Build clusters the masks of every predicted layer and projection. Samples that will measure the
// result must not be among s (Split).
func Build(ctx context.Context, s Samples, opt BuildOptions) (*Codebook, error) {
	shape := s.Shape()
	if err := checkSamples(s); err != nil {
		return nil, err
	}
	cluster, err := opt.withDefaults()
	if err != nil {
		return nil, err
	}
	b := &Codebook{shape: shape, made: Clustering{
		Tokens: s.Len(), Count: cluster.Count, Iterations: cluster.Iterations,
		Distance: cluster.Distance.String(),
		MissCost: cluster.MissCost, ExtraCost: cluster.ExtraCost, Size: cluster.Size,
		Memory: cluster.Memory, Seed: cluster.Seed,
	}}
	cluster.Progress = nil
	for layer := 1; layer < shape.Layers; layer++ {
		for projection := range shape.Projections {
			if opt.Progress != nil {
				cluster.Progress = func(step ClusterStep) {
					opt.Progress(BuildStep{shape.head(layer, projection) + 1, shape.heads(), layer,
						projection, step})
				}
			}
			v, err := Cluster(ctx, layerMasks{s, layer, projection}, cluster)
			if err != nil {
				return nil, err
			}
			b.vocabs = append(b.vocabs, v)
		}
	}
	pool := cpu.NewPool(cluster.Workers)
	defer pool.Close()
	if b.hot, err = countActive(ctx, s, pool); err != nil {
		return nil, err
	}
	b.rank()
	return b, nil
}

func checkSamples(s Samples) error {
	if err := s.Shape().check(); err != nil {
		return fmt.Errorf("centroid: %w: %w", ErrSamples, err)
	}
	if s.Len() < 1 {
		return fmt.Errorf("centroid: %w: there are no tokens", ErrSamples)
	}
	return nil
}

// layerMasks are the masks of one layer and projection.
type layerMasks struct {
	s                 Samples
	layer, projection int
}

func (m layerMasks) Len() int   { return m.s.Len() }
func (m layerMasks) Units() int { return m.s.Shape().Units }
func (m layerMasks) Mask(i int, dst mask.Mask) error {
	return readMask(m.s, i, m.layer, m.projection, dst)
}

// countActive counts the tokens for which each unit is active.
func countActive(ctx context.Context, s Samples, pool *cpu.Pool) ([][]uint32, error) {
	shape := s.Shape()
	hot := make([][]uint32, shape.Layers-1)
	var first firstError
	pool.Run(len(hot), 1, func(lo, hi int) {
		truth, scratch := mask.New(shape.Units), mask.New(shape.Units)
		for l := lo; l < hi; l++ {
			hot[l] = make([]uint32, shape.Units)
			first.set(l, inBlocks(ctx, s.Len(), func(from, to int) error {
				for i := from; i < to; i++ {
					if err := readTruth(s, i, l+1, truth, scratch); err != nil {
						return err
					}
					for u := range truth.Each {
						hot[l][u]++
					}
				}
				return nil
			}))
		}
	})
	return hot, first.err
}

// firstError keeps the error of the lowest index, so that it does not depend on the order of the
// workers.
type firstError struct {
	mu  sync.Mutex
	at  int
	err error
}

func (f *firstError) set(at int, err error) {
	if err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil || at < f.at {
		f.at, f.err = at, err
	}
}

// rank orders the units of every layer by how often they are active.
func (b *Codebook) rank() {
	b.order = make([][]uint32, len(b.hot))
	for l, hot := range b.hot {
		b.order[l] = byVotes(hot)
	}
}

// Shape is the shape of the samples that the codebook was made from.
func (b *Codebook) Shape() Shape { return b.shape }

// Vocabulary returns the vocabulary of a layer (1 to Layers−1) and projection.
func (b *Codebook) Vocabulary(layer, projection int) *Vocabulary {
	return b.vocabs[b.shape.head(layer, projection)]
}

// Hottest returns the units of a layer (1 to Layers−1), the most often active first. The result
// must not be changed.
func (b *Codebook) Hottest(layer int) []uint32 { return b.order[layer-1] }

// Filled counts the changes that gave an active set its size.
type Filled struct {
	Agreed    int `json:"agreed"`    // units in the intersection of the centroids
	Padded    int `json:"padded"`    // units added
	Truncated int `json:"truncated"` // units removed
}

// Active writes the active set of a layer (1 to Layers−1) for the centroid ids of its projections:
// their intersection, padded or truncated to kMax units; with kMax 0 the intersection unchanged.
// Units are ranked by how often they were active in training, the lower unit first among equals:
//
//   - more than kMax units in the intersection: its kMax hottest units stay;
//   - fewer: the hottest units of either centroid are added, and when there are no more, the
//     hottest of all others.
//
// dst is a mask of the units of a layer.
func (b *Codebook) Active(layer int, ids []int, kMax int, dst mask.Mask) (Filled, error) {
	if layer < 1 || layer >= b.shape.Layers || len(ids) != b.shape.Projections ||
		len(dst) != b.shape.words() {
		return Filled{}, fmt.Errorf("centroid: %w: layer %d, %d ids, %d words: the codebook has "+
			"layers 1 to %d, %d projections, %d words",
			ErrOptions, layer, len(ids), len(dst), b.shape.Layers-1, b.shape.Projections,
			b.shape.words())
	}
	if err := b.checkKMax(kMax); err != nil {
		return Filled{}, err
	}
	for p, id := range ids {
		if n := b.Vocabulary(layer, p).Count(); id < 0 || id >= n {
			return Filled{}, fmt.Errorf("centroid: %w: centroid %d of layer %d, projection %d: "+
				"there are %d", ErrOptions, id, layer, p, n)
		}
	}
	return b.active(layer, ids, kMax, dst), nil
}

func (b *Codebook) checkKMax(kMax int) error {
	if kMax < 0 || kMax > b.shape.Units {
		return fmt.Errorf("centroid: %w: K_max %d: it must be 0 (the intersection as it is) or "+
			"1 to %d, the units of a layer", ErrOptions, kMax, b.shape.Units)
	}
	return nil
}

// active is Active without the checks.
func (b *Codebook) active(layer int, ids []int, kMax int, dst mask.Mask) Filled {
	gate, up := b.pair(layer, ids)
	return fill(gate, up, b.order[layer-1], kMax, dst)
}

// pair returns the two centroid masks; without a gate both are the same mask.
func (b *Codebook) pair(layer int, ids []int) (gate, up mask.Mask) {
	gate = b.Vocabulary(layer, 0).Mask(ids[0])
	if b.shape.Projections == 1 {
		return gate, gate
	}
	return gate, b.Vocabulary(layer, 1).Mask(ids[1])
}

// fill is the K_max rule. order lists all units, the hottest first.
func fill(gate, up mask.Mask, order []uint32, kMax int, dst mask.Mask) Filled {
	copy(dst, gate)
	dst.And(up)
	agreed := dst.Count()
	f := Filled{Agreed: agreed}
	if kMax == 0 {
		return f
	}
	for i := len(order) - 1; agreed-f.Truncated > kMax; i-- {
		if u := order[i]; dst.Has(u) {
			dst.Clear(u)
			f.Truncated++
		}
	}
	for _, u := range order {
		if agreed+f.Padded >= kMax {
			return f
		}
		if (gate.Has(u) || up.Has(u)) && !dst.Has(u) {
			dst.Set(u)
			f.Padded++
		}
	}
	for _, u := range order {
		if agreed+f.Padded >= kMax {
			return f
		}
		if !dst.Has(u) {
			dst.Set(u)
			f.Padded++
		}
	}
	return f
}

// places computes for every unit of order its place in the sequence in which fill takes units: the
// active set of kMax units is the first kMax of the sequence. It calls f for every unit, with its
// place from 0.
func places(gate, up mask.Mask, order []uint32, f func(u uint32, place int)) {
	agreed := gate.CountAnd(up)
	either := gate.Count() + up.Count() - agreed
	at := [3]int{0, agreed, either} // in both, in one, in none
	for _, u := range order {
		class := 2
		if gate.Has(u) {
			class--
		}
		if up.Has(u) {
			class--
		}
		f(u, at[class])
		at[class]++
	}
}

// labels returns the nearest centroids of every token, the targets of training: Shape.heads ids a
// token.
func (b *Codebook) labels(ctx context.Context, s Samples, pool *cpu.Pool) ([]int32, error) {
	heads := b.shape.heads()
	ids := make([]int32, s.Len()*heads)
	var first firstError
	err := inBlocks(ctx, s.Len(), func(from, to int) error {
		pool.Run(to-from, 8, func(lo, hi int) {
			scratch := mask.New(b.shape.Units)
			for i := from + lo; i < from+hi; i++ {
				first.set(i, b.label(s, i, ids[i*heads:(i+1)*heads], scratch))
			}
		})
		return first.err
	})
	return ids, err
}

func (b *Codebook) label(s Samples, i int, ids []int32, scratch mask.Mask) error {
	for layer := 1; layer < b.shape.Layers; layer++ {
		for p := range b.shape.Projections {
			if err := readMask(s, i, layer, p, scratch); err != nil {
				return err
			}
			id, _ := b.Vocabulary(layer, p).Nearest(scratch)
			ids[b.shape.head(layer, p)] = int32(id)
		}
	}
	return nil
}
