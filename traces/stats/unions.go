package stats

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/batch"
)

// MaxBatch is the largest measured batch if no sizes are given.
const MaxBatch = 64

// UnionOptions of ComputeUnions.
type UnionOptions struct {
	// Sizes are the batch sizes in sequences, ascending; nil means 1 to MaxBatch, or to the number
	// of tokens if that is smaller.
	Sizes []int
	// Predicted measures the predicted masks, not the true ones.
	Predicted bool
	// Group also measures batches of sequences chosen for similar masks. It needs at least two
	// steps.
	Group bool
	// Workers is the number of goroutines that share the layers; 0 means one per processor. The
	// result does not depend on it.
	Workers int
	// Progress, if not nil, is called now and then with the number of steps done and the total.
	Progress func(done, total int)
}

// Unions holds the unions of batches of several sequences. Shares are fractions of 1.
type Unions struct {
	Mask      string      `json:"mask"` // "true" or "predicted"
	Phase     string      `json:"phase"`
	Layers    int         `json:"layers_count"`
	Units     int         `json:"units_per_layer_count"`
	UnitBytes units.Bytes `json:"bytes_per_unit"`
	Tokens    int         `json:"tokens_count"`    // measured tokens
	Sequences int         `json:"sequences_count"` // sequences of these tokens
	Lanes     int         `json:"lanes_count"`     // lanes that batches are formed from
	Steps     int         `json:"steps_count"`     // of each lane
	Formed    string      `json:"formed_of"`       // a lane in words
	Batches   []Batch     `json:"batches"`
	Groups    []Group     `json:"groups,omitempty"`
}

// Batch is the mean step of batches of one size.
type Batch struct {
	Size       int       `json:"batch_count"`
	AtLeast    []Kept    `json:"at_least"`          // by M−1; the first is the union
	LayerUnits []float64 `json:"layer_union_units"` // by layer
}

// Union is the union of a step.
func (b *Batch) Union() *Kept { return &b.AtLeast[0] }

// Kept is the reads of a step that leaves out the units that fewer than M of its sequences need.
type Kept struct {
	M     int     `json:"at_least_count"`
	Units float64 `json:"units"` // of one layer, mean over the layers
	Share float64 `json:"share"` // of the units of a layer
	// of all layers, divided by the number of sequences
	BytesPerToken float64 `json:"bytes_per_token"`
	Dropped       float64 `json:"dropped_share"` // share of the activations that belong to left-out units
}

// ComputeUnions measures batches of all sizes in one pass. There are as many lanes as the largest
// batch has sequences. There are as many batches of each size as lanes: each lane in turn is the
// first, and the others follow in the lanes' Order. All tokens therefore count the same, and a
// larger batch contains a smaller one.
func ComputeUnions(stream *batch.Stream, opt UnionOptions) (*Unions, error) {
	sizes, err := checkUnions(stream, opt)
	if err != nil {
		return nil, err
	}
	lanes, err := stream.Lanes(sizes[len(sizes)-1])
	if err != nil {
		return nil, fmt.Errorf("stats: %w", err)
	}
	u := newUnionPass(stream.Header(), lanes, sizes, opt)
	for step := range lanes.Steps {
		masks, err := u.read(step)
		if err != nil {
			return nil, fmt.Errorf("stats: %w", err)
		}
		u.stepLayers(masks)
		if u.groups != nil {
			u.groups.step(masks)
		}
		if opt.Progress != nil {
			opt.Progress(step+1, lanes.Steps)
		}
	}
	return u.result(stream), nil
}

// checkUnions checks the options and returns the sizes to measure.
func checkUnions(stream *batch.Stream, opt UnionOptions) ([]int, error) {
	h, sizes := stream.Header(), opt.Sizes
	if sizes == nil {
		for b := range min(MaxBatch, stream.Tokens()) {
			sizes = append(sizes, b+1)
		}
	}
	switch {
	case h.Layers <= 0 || h.Units <= 0 || stream.Tokens() == 0:
		return nil, fmt.Errorf("stats: %d tokens, %d layers of %d units: nothing to unite",
			stream.Tokens(), h.Layers, h.Units)
	case opt.Predicted && !h.HasPredicted:
		return nil, fmt.Errorf("stats: predicted masks: the trace has none; measure the true " +
			"masks, or record with a predictor")
	case !ascending(sizes):
		return nil, fmt.Errorf("stats: batches of %v sequences: sizes must ascend, from 1 or more",
			sizes)
	case opt.Group && stream.Tokens() < 2*sizes[len(sizes)-1]:
		return nil, fmt.Errorf("stats: grouping: %d tokens make less than two steps of %d; "+
			"record more tokens or group smaller batches", stream.Tokens(), sizes[len(sizes)-1])
	}
	return sizes, nil
}

func ascending(sizes []int) bool {
	last := 0
	for _, b := range sizes {
		if b <= last {
			return false
		}
		last = b
	}
	return len(sizes) > 0
}

// unionPass holds the state of ComputeUnions.
type unionPass struct {
	head   *traces.Header
	lanes  batch.Lanes
	opt    UnionOptions
	sizes  []int
	order  []int
	layers []unionLayer
	tokens []traces.Token // by lane, of the current step
	groups *grouping      // nil when not wanted
}

// unionLayer is the pass over one layer: sums over steps and batches.
type unionLayer struct {
	counts *batch.Counts
	least  [][batch.MaxAtLeast]int64 // by size, then M−1: units in at least M masks
	active int64                     // units of all masks, each mask once
}

func newUnionPass(h *traces.Header, lanes batch.Lanes, sizes []int, opt UnionOptions) *unionPass {
	u := &unionPass{head: h, lanes: lanes, opt: opt, sizes: sizes, order: lanes.Order(),
		tokens: make([]traces.Token, lanes.Count)}
	for range h.Layers {
		u.layers = append(u.layers, unionLayer{counts: batch.NewCounts(h.Words()),
			least: make([][batch.MaxAtLeast]int64, len(sizes))})
	}
	if opt.Group {
		u.groups = newGrouping(h, u.order, sizes)
	}
	return u
}

// read returns the masks of a step, (lane, layer).
func (u *unionPass) read(step int) ([][]mask.Mask, error) {
	masks := make([][]mask.Mask, u.lanes.Count)
	for lane := range masks {
		t := &u.tokens[lane]
		if err := u.lanes.Read(lane, step, t); err != nil {
			return nil, err
		}
		masks[lane] = t.Masks(u.opt.Predicted)
	}
	return masks, nil
}

// stepLayers adds a step to all layers. Layers share no state, so the split between workers cannot
// change the result.
func (u *unionPass) stepLayers(masks [][]mask.Mask) {
	workers := u.opt.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	workers = min(workers, len(u.layers))
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() {
			for l := w * len(u.layers) / workers; l < (w+1)*len(u.layers)/workers; l++ {
				u.layers[l].step(masks, l, u.order, u.sizes)
			}
		})
	}
	wait.Wait()
}

// step forms one batch from each lane on, and measures it at the wanted sizes while it grows to the
// largest.
func (p *unionLayer) step(masks [][]mask.Mask, layer int, order, sizes []int) {
	for first := range masks {
		p.active += int64(masks[first][layer].Count())
		p.counts.Reset()
		at := 0
		for j, shift := range order {
			p.counts.Add(masks[(first+shift)%len(masks)][layer])
			if j+1 != sizes[at] {
				continue
			}
			for m, n := range p.counts.Sizes() {
				p.least[at][m] += n
			}
			at++
		}
	}
}

// result turns the sums into means.
func (u *unionPass) result(stream *batch.Stream) *Unions {
	h := u.head
	r := &Unions{
		Mask: "true", Phase: stream.Phase(), Layers: h.Layers, Units: h.Units,
		UnitBytes: h.UnitBytes,
		Tokens:    u.lanes.Used(), Sequences: stream.Sequences(), Lanes: u.lanes.Count,
		Steps: u.lanes.Steps, Formed: u.lanes.Formed,
	}
	if u.opt.Predicted {
		r.Mask = "predicted"
	}
	for i, size := range u.sizes {
		r.Batches = append(r.Batches, u.batch(i, size))
	}
	if u.groups != nil {
		r.Groups = u.groups.result()
	}
	return r
}

// batch returns the mean over all steps and all batches of the size.
func (u *unionPass) batch(at, size int) Batch {
	b := Batch{Size: size}
	var least [batch.MaxAtLeast]int64
	activations := int64(0)
	samples := int64(u.lanes.Used()) // each token of a lane is the first of one batch
	for l := range u.layers {
		p := &u.layers[l]
		for m, n := range p.least[at] {
			least[m] += n
		}
		activations += p.active * int64(size) // every mask is in as many batches
		b.LayerUnits = append(b.LayerUnits, ratio(p.least[at][0], samples))
	}
	fewer := int64(0) // Σ of least over all smaller M
	for i, n := range least {
		k := Kept{M: i + 1, Units: ratio(n, samples*int64(len(u.layers)))}
		k.Share = k.Units / float64(u.head.Units)
		k.BytesPerToken = k.Units * float64(len(u.layers)) * float64(u.head.UnitBytes) /
			float64(size)
		// A unit in c < M masks drops c activations. Σ_{m<M} least(m) counts min(c, M−1) for every
		// unit, so M−1 for each kept unit.
		k.Dropped = ratio(fewer-int64(i)*n, activations)
		b.AtLeast = append(b.AtLeast, k)
		fewer += n
	}
	return b
}
