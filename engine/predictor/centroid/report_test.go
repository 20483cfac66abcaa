package centroid

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/mask"
)

// byHand is a gated predictor with one predicted layer of 6 units that always names gate {0,1,2}
// and up {1,2,3}; hottest 5 0 3 1 2 4.
func byHand() *Predictor {
	m := metric{Hamming, 1, 1}
	shape := Shape{Layers: 2, Projections: 2, Units: 6, Width: 1}
	b := &Codebook{
		shape: shape,
		vocabs: []*Vocabulary{
			newVocabulary(6, m, []uint64{bitset(6, 0, 1, 2)[0], bitset(6, 4, 5)[0]}),
			newVocabulary(6, m, []uint64{bitset(6, 1, 2, 3)[0], bitset(6, 3, 4, 5)[0]}),
		},
		hot: [][]uint32{{5, 3, 2, 4, 1, 6}},
	}
	b.rank()
	return &Predictor{book: b, mean: []float32{0}, scale: []float32{1}, layers: []dense{
		{in: 1, out: 4, w: make([]uint16, 4), b: []float32{1, 0, 1, 0}}}}
}

// TestEvaluateByHand: the network is right for the first token and wrong for the second.
func TestEvaluateByHand(t *testing.T) {
	s := &memory{shape: Shape{Layers: 2, Projections: 2, Units: 6, Width: 1}, features: [][]float32{
		{0}, {0}}, masks: [][]mask.Mask{
		{bitset(6, 0, 1, 2), bitset(6, 1, 2, 3)}, // truth {1, 2}
		{bitset(6, 4, 5), bitset(6, 3, 4, 5)},    // truth {4, 5}
	}}
	r, err := Evaluate(context.Background(), byHand(), s, EvaluateOptions{KMax: []int{0, 1, 2, 3,
		6}})
	if err != nil {
		t.Fatal(err)
	}
	l := r.Layers[0]
	if r.Tokens != 2 || l.Active != 2 || !slices.Equal(l.Top1, []float64{0.5, 0.5}) {
		t.Errorf("%d tokens, %v true units, top-1 %v", r.Tokens, l.Active, l.Top1)
	}
	perfect := Quality{Chosen: 2, Recall: 1, Precision: 1, Ratio: 1}
	half := Quality{Chosen: 2, Recall: 0.5, Precision: 0.5, Missed: 0.5, Extra: 0.25, Ratio: 1}
	if l.Intersection.Oracle != perfect || l.Intersection.Predicted != half ||
		l.Sets[0].Predicted != half {
		t.Errorf("intersections %+v", l.Intersection)
	}
	// Places of the predicted sequence: 1 2 | 0 3 | 5 4. K_max 1 finds unit 1 alone; 3 adds 0; 6
	// finds everything. The hottest units are 5 0 3 1 2 4: 5 is found at once, 1 with four units.
	for i, want := range []struct{ predicted, oracle, static float64 }{{0.5, 1, 0},
		{0.25, 0.5, 0.25}, {0.5, 1, 0.25}, {0.5, 1, 0.25}, {1, 1, 1}} {
		set := l.Sets[i]
		if set.Predicted.Recall != want.predicted || set.Oracle.Recall != want.oracle ||
			set.Static.Recall != want.static {
			t.Errorf("K_max %d: predicted %v, oracle %v, static %v, want %+v", set.KMax,
				set.Predicted.Recall, set.Oracle.Recall, set.Static.Recall, want)
		}
	}
	if l.Needed95 != (Compared[int]{2, 6, 6}) || l.Needed99 != l.Needed95 {
		t.Errorf("K_max needed for 95 %%: %+v", l.Needed95)
	}
	if !slices.Equal(r.Mean.Top1, l.Top1) || r.Mean.Sets[2] != l.Sets[2] {
		t.Errorf("one layer, but the mean is %+v", r.Mean)
	}
}

// TestEvaluateIsPredict counts the sums of Evaluate again with a Runner and masks, and demands the
// same for any number of workers.
func TestEvaluateIsPredict(t *testing.T) {
	w := newWorld(gated, 6, 0.1)
	p := trained(t, w.tokens(300), TrainOptions{Hidden: []int{}, Epochs: 1})
	test := w.tokens(1100)
	kMax := []int{0, 1, 7, 20, 69, 70}
	r, err := Evaluate(context.Background(), p, test, EvaluateOptions{KMax: kMax})
	if err != nil {
		t.Fatal(err)
	}
	truth, scratch := mask.New(gated.Units), mask.New(gated.Units)
	for i, k := range kMax {
		run, err := p.NewRunner(k, nil)
		if err != nil {
			t.Fatal(err)
		}
		masks := layerMasksOf(gated)
		var hits, active, chosen [4]int
		for tok, x := range test.features {
			if _, err := run.Predict(x, masks); err != nil {
				t.Fatal(err)
			}
			for l := 1; l < gated.Layers; l++ {
				if err := readTruth(test, tok, l, truth, scratch); err != nil {
					t.Fatal(err)
				}
				hits[l] += truth.CountAnd(masks[l])
				active[l] += truth.Count()
				chosen[l] += masks[l].Count()
			}
		}
		for l := 1; l < gated.Layers; l++ {
			q := r.Layers[l-1].Sets[i].Predicted
			if want := float64(hits[l]) / float64(active[l]); q.Recall != want ||
				math.Abs(q.Chosen*1100-float64(chosen[l])) > 1e-6 {
				t.Errorf("K_max %d, layer %d: recall %v of %v chosen, want %v of %v", k, l,
					q.Recall, q.Chosen*1100, want, chosen[l])
			}
		}
	}
	again, err := Evaluate(context.Background(), p, test, EvaluateOptions{KMax: kMax, Workers: 3})
	if err != nil {
		t.Fatal(err)
	}
	one, err1 := json.Marshal(r)
	two, err2 := json.Marshal(again)
	if !bytes.Equal(one, two) || err1 != nil || err2 != nil {
		t.Error("three workers report something else", err1, err2)
	}
	for _, l := range r.Layers {
		for i := 2; i < len(l.Sets); i++ {
			if l.Sets[i].Predicted.Recall < l.Sets[i-1].Predicted.Recall ||
				l.Sets[i].Oracle.Recall < l.Sets[i-1].Oracle.Recall {
				t.Errorf("layer %d: recall falls from K_max %d to %d", l.Layer, l.Sets[i-1].KMax,
					l.Sets[i].KMax)
			}
		}
		if last := l.Sets[len(l.Sets)-1]; last.Predicted.Recall != 1 || last.Predicted.Extra != 1 {
			t.Errorf("layer %d: all units give %+v", l.Layer, last.Predicted)
		}
	}
}

func TestQualityOfNothing(t *testing.T) {
	if q := newQuality(10, 2, 0, 0, 0); q != (Quality{Recall: 1, Precision: 1}) {
		t.Errorf("nothing chosen of nothing: %+v", q)
	}
	if q := newQuality(10, 2, 10, 10, 10); q != (Quality{Chosen: 5, Recall: 1, Precision: 1,
		Ratio: 1}) {
		t.Errorf("everything of everything: %+v", q)
	}
}

func TestEvaluateRefusals(t *testing.T) {
	p := byHand()
	good := &memory{shape: p.book.shape, features: [][]float32{{0}}, masks: [][]mask.Mask{
		{{1}, {1}}}}
	other := &memory{shape: gated, features: [][]float32{{0}}}
	nan := &memory{shape: p.book.shape, features: [][]float32{{float32(math.NaN())}},
		masks: good.masks}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		s    Samples
		opt  EvaluateOptions
		want error
	}{
		"another shape": {context.Background(), other, EvaluateOptions{}, ErrMismatch},
		"no tokens": {context.Background(), &memory{shape: p.book.shape}, EvaluateOptions{},
			ErrSamples},
		"K_max":     {context.Background(), good, EvaluateOptions{KMax: []int{7}}, ErrOptions},
		"workers":   {context.Background(), good, EvaluateOptions{Workers: -2}, ErrOptions},
		"feature":   {context.Background(), nan, EvaluateOptions{}, ErrSamples},
		"cancelled": {cancelled, good, EvaluateOptions{}, context.Canceled},
	} {
		if _, err := Evaluate(c.ctx, p, c.s, c.opt); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

// TestTradeoffs: more patterns describe more states, so the oracle's recall rises up to the number
// of states; the tables say so.
func TestTradeoffs(t *testing.T) {
	w := newWorld(Shape{Layers: 2, Projections: 1, Units: 64, Width: 8}, 6, 0.02)
	list, err := Tradeoffs(context.Background(), w.tokens(400), w.tokens(100), TradeoffOptions{
		Counts: []int{1, 3, 6}, KMax: []int{20, 32}, Train: TrainOptions{Hidden: []int{16},
			Epochs: 6, Rate: 0.01},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(list); i++ {
		was, is := list[i-1], list[i]
		if is.Mean.Sets[0].Oracle.Recall <= was.Mean.Sets[0].Oracle.Recall ||
			is.Bytes <= was.Bytes || is.FLOPs <= was.FLOPs {
			t.Errorf("%d centroids: %+v; %d: %+v", was.Count, was.Mean.Sets[0], is.Count,
				is.Mean.Sets[0])
		}
	}
	if only := list[0].Mean; only.Top1[0] != 1 {
		t.Errorf("one centroid is named right in %v of all cases", only.Top1[0])
	}
	var text strings.Builder
	if err := WriteTradeoffs(&text, list); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(text.String(), "\n"); lines != 7 || !strings.Contains(text.String(),
		"oracle recall") {
		t.Errorf("%d lines:\n%s", lines, text.String())
	}
	sized, err := Tradeoffs(context.Background(), w.tokens(400), w.tokens(100), TradeoffOptions{
		Counts: []int{3}, KMax: []int{10, 20}, Sized: true, Train: TrainOptions{Hidden: []int{16},
			Epochs: 6, Rate: 0.01},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range []int{10, 20} {
		row := sized[i]
		if len(row.Mean.Sets) != 1 || row.Size != k || row.Mean.Sets[0].KMax != k ||
			row.Mean.Intersection.Predicted.Chosen != float64(k) {
			t.Errorf("sized for K_max %d: %+v", k, row)
		}
	}
	if _, err := Tradeoffs(context.Background(), w.tokens(400), w.tokens(100), TradeoffOptions{
		Counts: []int{-1}}); !errors.Is(err, ErrOptions) {
		t.Error(err)
	}
}

func TestReportTable(t *testing.T) {
	s := &memory{shape: byHand().book.shape, features: [][]float32{{0}}, masks: [][]mask.Mask{
		{bitset(6, 0, 1, 2), bitset(6, 1, 2, 3)}}}
	r, err := Evaluate(context.Background(), byHand(), s, EvaluateOptions{KMax: []int{2, 0}})
	if err != nil {
		t.Fatal(err)
	}
	table := r.Table()
	if err := table.Check(); err != nil {
		t.Fatal(err)
	}
	rows := table.Rows
	if len(rows) != 4 || strings.Join(rows[0], " ") != "1 2.00 100/100 2 "+
		"100 100 100 0 1.00 0 2 2 2 5" {
		t.Errorf("got\n%q", rows)
	}
	if last := rows[3]; last[0] != "all" || last[3] != "0" || last[9] != "n/a" {
		t.Errorf("got\n%q", last)
	}
	data, err := json.Marshal(r.Layers[0].Sets[0])
	if err != nil || !strings.HasPrefix(string(data),
		`{"k_max":2,"oracle":{"chosen":2,"recall":1,`) {
		t.Errorf("%s (%v)", data, err)
	}
}
