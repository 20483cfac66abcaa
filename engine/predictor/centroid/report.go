package centroid

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/cpu"
)

// EvaluateOptions configure an evaluation.
type EvaluateOptions struct {
	KMax    []int // sizes of active sets to report
	Workers int   // 0 and 1 = the caller's thread only
	// Progress, if not nil, is called with the number of tokens done, from one goroutine.
	Progress func(done, total int)
}

// Quality compares chosen sets with true ones, summed over tokens. A true unit is one that passed
// the threshold in every projection.
type Quality struct {
	Chosen    float64 `json:"chosen"`    // units in a set, mean
	Recall    float64 `json:"recall"`    // share of the true units that were chosen
	Precision float64 `json:"precision"` // share of the chosen units that were true
	// share of the true units that were not chosen: 1 − Recall
	Missed float64 `json:"false_negative"`
	// share of the units that are not true that were chosen
	Extra float64 `json:"false_positive"`
	Ratio float64 `json:"ratio"` // chosen units for each true one
}

// Compared is one figure for the three ways to choose units.
type Compared[T any] struct {
	// by the centroids nearest to the true masks: the vocabulary alone
	Oracle    T `json:"oracle"`
	Predicted T `json:"predicted"` // by the centroids that the network names
	// the units that were active most often in training, the same for every token
	Static T `json:"static"`
}

// AtK is the quality of active sets of KMax units.
type AtK struct {
	KMax int `json:"k_max"` // 0 = the intersection unchanged
	Compared[Quality]
}

// LayerReport is the quality of one layer's active sets.
type LayerReport struct {
	Layer  int     `json:"layer"`
	Active float64 `json:"active"` // true units of a token, mean
	// Top1 is, by projection, the share of tokens for which the network names the centroid nearest
	// to the mask.
	Top1      []float64 `json:"top1"`
	Centroids []int     `json:"centroids"` // by projection
	// Intersection is the quality of the unpadded intersections. Static is empty: it has no size of
	// its own.
	Intersection Compared[Quality] `json:"intersection"`
	Sets         []AtK             `json:"sets"`
	// Needed95 and Needed99 are the smallest K_max at which 95 and 99 % of the true units are
	// found.
	Needed95 Compared[int] `json:"needed_95"`
	Needed99 Compared[int] `json:"needed_99"`
}

// Report is the quality of a predictor on unseen samples.
type Report struct {
	Tokens int           `json:"tokens"`
	Units  int           `json:"units"`
	Bytes  units.Bytes   `json:"bytes"`
	FLOPs  int64         `json:"flops"` // of one prediction
	Layers []LayerReport `json:"layers"`
	// over the units and tokens of all layers; Layer is 0, Needed holds one K_max for all layers
	Mean LayerReport `json:"mean"`
}

// Evaluate runs the predictor on samples, which should not be those of the training.
func Evaluate(ctx context.Context, p *Predictor, s Samples, opt EvaluateOptions) (*Report, error) {
	if err := checkSamples(s); err != nil {
		return nil, err
	}
	shape := p.book.shape
	if s.Shape() != shape {
		return nil, fmt.Errorf("centroid: %w: samples of shape %+v, a predictor of %+v",
			ErrMismatch, s.Shape(), shape)
	}
	if opt.Workers < 0 || opt.Workers > maxWorkers {
		return nil, fmt.Errorf("centroid: %w: %d workers: it must be 0 to %d", ErrOptions,
			opt.Workers, maxWorkers)
	}
	for _, k := range opt.KMax {
		if err := p.book.checkKMax(k); err != nil {
			return nil, err
		}
	}
	pool := cpu.NewPool(opt.Workers)
	defer pool.Close()
	total := newTally(shape)
	var mu sync.Mutex
	var first firstError
	err := inBlocks(ctx, s.Len(), func(from, to int) error {
		pool.Run(to-from, 32, func(lo, hi int) {
			part := newTally(shape)
			first.set(from+lo, part.tokens(p, s, from+lo, from+hi))
			mu.Lock()
			defer mu.Unlock()
			total.add(part) // whole numbers: the order does not matter
		})
		if opt.Progress != nil {
			opt.Progress(to, s.Len())
		}
		return first.err
	})
	if err != nil {
		return nil, err
	}
	return total.report(p, s.Len(), opt.KMax), nil
}

// tally counts, for each layer and way to choose units, the true units at each place of the
// sequence in which units are taken. The hits of every K_max are sums of these.
type tally struct {
	shape  Shape
	layers []layerTally
}

type layerTally struct {
	active  int64             // true units
	right   [2]int64          // by projection
	at      Compared[[]int64] // (place) true units
	agreed  Compared[int64]   // sizes of the intersections
	matched Compared[int64]   // true units in them
}

func newTally(s Shape) *tally {
	t := &tally{shape: s, layers: make([]layerTally, s.Layers-1)}
	for l := range t.layers {
		t.layers[l].at = Compared[[]int64]{make([]int64, s.Units), make([]int64, s.Units),
			make([]int64, s.Units)}
	}
	return t
}

// tokens counts tokens lo to hi.
func (t *tally) tokens(p *Predictor, s Samples, lo, hi int) error {
	run, err := p.NewRunner(0, nil)
	if err != nil {
		return err
	}
	heads := t.shape.heads()
	feature, nearest := make([]float32, t.shape.Width), make([]int32, heads)
	truth, scratch := mask.New(t.shape.Units), mask.New(t.shape.Units)
	for i := lo; i < hi; i++ {
		if err := readFeature(s, i, feature); err != nil {
			return err
		}
		ids, err := run.IDs(feature)
		if err != nil {
			return err
		}
		if err := p.book.label(s, i, nearest, scratch); err != nil {
			return err
		}
		for layer := 1; layer < t.shape.Layers; layer++ {
			if err := readTruth(s, i, layer, truth, scratch); err != nil {
				return err
			}
			h := t.shape.head(layer, 0)
			t.layers[layer-1].token(p.book, layer, truth, scratch, nearest[h:h+t.shape.Projections],
				ids[h:h+t.shape.Projections])
		}
	}
	return nil
}

func (t *layerTally) token(b *Codebook, layer int, truth, scratch mask.Mask, nearest []int32,
	ids []int) {
	order := b.order[layer-1]
	var oracle [2]int
	for p, id := range nearest {
		oracle[p] = int(id)
		if oracle[p] == ids[p] {
			t.right[p]++
		}
	}
	t.active += int64(truth.Count())
	for place, u := range order {
		if truth.Has(u) {
			t.at.Static[place]++
		}
	}
	follow := func(ids []int, at []int64, agreed, matched *int64) {
		gate, up := b.pair(layer, ids)
		places(gate, up, order, func(u uint32, place int) {
			if truth.Has(u) {
				at[place]++
			}
		})
		copy(scratch, gate)
		scratch.And(up)
		*agreed += int64(scratch.Count())
		*matched += int64(scratch.CountAnd(truth))
	}
	follow(oracle[:len(nearest)], t.at.Oracle, &t.agreed.Oracle, &t.matched.Oracle)
	follow(ids, t.at.Predicted, &t.agreed.Predicted, &t.matched.Predicted)
}

func (t *tally) add(other *tally) {
	for l := range t.layers {
		t.layers[l].add(&other.layers[l])
	}
}

func (t *layerTally) add(o *layerTally) {
	t.active += o.active
	for p := range t.right {
		t.right[p] += o.right[p]
	}
	for i := range t.at.Oracle {
		t.at.Oracle[i] += o.at.Oracle[i]
		t.at.Predicted[i] += o.at.Predicted[i]
		t.at.Static[i] += o.at.Static[i]
	}
	t.agreed.Oracle += o.agreed.Oracle
	t.agreed.Predicted += o.agreed.Predicted
	t.matched.Oracle += o.matched.Oracle
	t.matched.Predicted += o.matched.Predicted
}

func (t *tally) report(p *Predictor, tokens int, kMax []int) *Report {
	r := &Report{Tokens: tokens, Units: t.shape.Units, Bytes: p.Bytes(), FLOPs: p.FLOPs()}
	sum := newTally(Shape{Layers: 2, Units: t.shape.Units})
	for l := range t.layers {
		layer := t.layers[l].report(t.shape, int64(tokens), kMax)
		layer.Layer = l + 1
		for projection := range t.shape.Projections {
			layer.Centroids = append(layer.Centroids, p.book.Vocabulary(l+1, projection).Count())
		}
		r.Layers = append(r.Layers, layer)
		sum.layers[0].add(&t.layers[l])
	}
	r.Mean = sum.layers[0].report(t.shape, int64(tokens*len(t.layers)), kMax)
	return r
}

// report turns counts into shares; sets is the number of active sets that were counted.
func (t *layerTally) report(s Shape, sets int64, kMax []int) LayerReport {
	r := LayerReport{Active: float64(t.active) / float64(sets)}
	for p := range s.Projections {
		r.Top1 = append(r.Top1, float64(t.right[p])/float64(sets))
	}
	quality := func(chosen, hits int64) Quality {
		return newQuality(sets*int64(s.Units), sets,
			chosen, hits, t.active)
	}
	r.Intersection = Compared[Quality]{
		Oracle: quality(t.agreed.Oracle, t.matched.Oracle), Predicted: quality(t.agreed.Predicted,
			t.matched.Predicted),
	}
	for _, k := range kMax {
		at := func(places []int64) Quality { return quality(sets*int64(k), sumOf(places[:k])) }
		set := AtK{k, Compared[Quality]{at(t.at.Oracle), at(t.at.Predicted), at(t.at.Static)}}
		if k == 0 {
			set.Compared = r.Intersection
		}
		r.Sets = append(r.Sets, set)
	}
	needed := func(percent int64) Compared[int] {
		return Compared[int]{t.needed(t.at.Oracle, percent), t.needed(t.at.Predicted, percent),
			t.needed(t.at.Static, percent)}
	}
	r.Needed95, r.Needed99 = needed(95), needed(99)
	return r
}

// needed is the number of places that hold a percentage of the true units.
func (t *layerTally) needed(places []int64, percent int64) int {
	hits := int64(0)
	for k, n := range places {
		if hits*100 >= t.active*percent {
			return k
		}
		hits += n
	}
	return len(places)
}

func sumOf(values []int64) (sum int64) {
	for _, v := range values {
		sum += v
	}
	return sum
}

// newQuality counts shares of nothing as good: no true unit was missed, no chosen one was wrong.
func newQuality(all, sets, chosen, hits, active int64) Quality {
	share := func(part, whole int64, empty float64) float64 {
		if whole == 0 {
			return empty
		}
		return float64(part) / float64(whole)
	}
	return Quality{
		Chosen: float64(chosen) / float64(sets), Recall: share(hits, active, 1),
		Precision: share(hits, chosen, 1),
		Missed:    share(active-hits, active, 0), Extra: share(chosen-hits, all-active, 0),
		Ratio: share(chosen, active, 0),
	}
}

// Table is the report as a table, one row for each layer and K_max.
func (r *Report) Table() *document.Table {
	number := document.Number
	t := document.NewTable(number("layer", ""), number("active", ""), number("top-1", "%"),
		number("K_max", ""), number("oracle recall", "%"), number("predicted recall", "%"),
		number("precision", "%"), number("FP", "%"), number("ratio", ""),
		number("static recall", "%"), number("K for 95 %", ""), number("K for 99 %", ""),
		number("oracle K for 95 %", ""), number("static K for 95 %", ""))
	for _, l := range append(append([]LayerReport{}, r.Layers...), r.Mean) {
		name := fmt.Sprint(l.Layer)
		if l.Layer == 0 {
			name = "all"
		}
		for _, set := range l.Sets {
			p := set.Predicted
			t.Add(name, document.Sig3(l.Active), percents(l.Top1), document.Count(set.KMax),
				document.Percent(set.Oracle.Recall), document.Percent(p.Recall),
				document.Percent(p.Precision), document.Percent(p.Extra), document.Sig3(p.Ratio),
				set.static(), document.Count(l.Needed95.Predicted),
				document.Count(l.Needed99.Predicted), document.Count(l.Needed95.Oracle),
				document.Count(l.Needed95.Static))
		}
	}
	return t
}

// static returns the recall of the hottest units in percent. They have no size of their own, so
// without a K_max there is none.
func (a AtK) static() string {
	if a.KMax == 0 {
		return "n/a"
	}
	return document.Percent(a.Static.Recall)
}

func percents(shares []float64) string {
	list := make([]string, len(shares))
	for i, v := range shares {
		list[i] = document.Percent(v)
	}
	return strings.Join(list, "/")
}
