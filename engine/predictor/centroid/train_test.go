package centroid

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/reference"
	"github.com/windrow-sim/windrow/internal/rng"
)

// TestGradients compares every derivative with a central difference of the loss.
func TestGradients(t *testing.T) {
	for _, hidden := range [][]int{{}, {7}, {6, 5}} {
		r := rng.Stream(2, "test/gradient")
		const batch, heads = 5, 3
		n := newNetwork(4, hidden, []int{3, 2, 4}, batch, newTestPool(t, 1), r)
		for _, l := range n.layers {
			for i := range l.w {
				l.w[i] = float32(r.NormFloat64()) * 0.7
			}
			for i := range l.b {
				l.b[i] = float32(r.NormFloat64()) * 0.3
			}
		}
		x := make([]float32, batch*4)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		labels := make([]int32, batch*heads)
		for i := range labels {
			labels[i] = int32(r.IntN(2))
		}
		loss := func() float64 {
			copy(n.x[0], x)
			l, _ := n.forward(batch, labels)
			return l
		}
		loss()
		n.backward(batch)
		for l, layer := range n.layers {
			for _, p := range []struct{ w, g []float32 }{{layer.w, slices.Clone(layer.gw)},
				{layer.b, slices.Clone(layer.gb)}} {
				for i := range p.w {
					// exact in float32; small beside the distance to the next kink of a ReLU here
					const h = 1.0 / 256
					was := p.w[i]
					p.w[i] = was + h
					up := loss()
					p.w[i] = was - h
					down := loss()
					p.w[i] = was
					if want := (up - down) /
						(2 * h); math.Abs(want-float64(p.g[i])) > 3e-4+0.01*math.Abs(want) {
						t.Errorf("hidden %v, layer %d, weight %d: derivative %.6f, difference "+
							"quotient %.6f", hidden, l, i, p.g[i], want)
					}
				}
			}
		}
	}
}

// TestLossOfIgnorance: with all weights 0 every centroid is as likely, and the loss is the
// logarithm of their number.
func TestLossOfIgnorance(t *testing.T) {
	n := newNetwork(3, nil, []int{4, 4}, 2, newTestPool(t, 1), rng.Stream(1, "x"))
	clear(n.layers[0].w)
	if loss, right := n.forward(2, []int32{0, 1, 2, 0}); math.Abs(loss-math.Log(4)) > 1e-7 ||
		right != 2 {
		t.Errorf("loss %v with %d right, want %v with 2: the lowest of equals is the answer", loss,
			right, math.Log(4))
	}
}

// TestAdamByHand: the first step of Adam is the rate against the sign of the derivative, whatever
// its size.
func TestAdamByHand(t *testing.T) {
	n := newNetwork(2, nil, []int{2}, 1, newTestPool(t, 1), rng.Stream(1, "x"))
	l := n.layers[0]
	clear(l.w)
	copy(l.gw, []float32{1e-3, -5, 0, 2})
	copy(l.gb, []float32{-1, 1})
	n.adam(0.1, 1)
	for i, want := range []float32{-0.1, 0.1, 0, -0.1} {
		if math.Abs(float64(l.w[i]-want)) > 1e-4 {
			t.Errorf("weight %d moves to %v, want %v", i, l.w[i], want)
		}
	}
	if math.Abs(float64(l.b[0]-0.1)) > 1e-4 || math.Abs(float64(l.b[1]+0.1)) > 1e-4 {
		t.Errorf("biases move to %v", l.b)
	}
}

// TestTrainingFindsTheStates: features show the state, so centroids, recall and accuracy must be
// nearly perfect, and the early stop must keep the best epoch.
func TestTrainingFindsTheStates(t *testing.T) {
	for _, shape := range []Shape{gated, {Layers: 3, Projections: 1, Units: 64, Width: 12}} {
		w := newWorld(shape, 6, 0.02)
		var epochs []Epoch
		opt := TrainOptions{Hidden: []int{24}, Epochs: 12, Rate: 0.01, Seed: 4,
			Progress: func(e Epoch) { epochs = append(epochs, e) }}
		p := trained(t, w.tokens(800), opt)
		if best := epochs[len(epochs)-1]; best.HeldAccuracy < 0.97 ||
			best.HeldLoss > epochs[0].HeldLoss {
			t.Errorf("%+v: first epoch %+v, last %+v", shape, epochs[0], best)
		}
		r, err := Evaluate(context.Background(), p, w.tokens(300), EvaluateOptions{KMax: []int{15}})
		if err != nil {
			t.Fatal(err)
		}
		m := r.Mean
		if slices.Min(m.Top1) < 0.97 || m.Intersection.Predicted.Recall < 0.9 ||
			m.Intersection.Predicted.Recall > m.Intersection.Oracle.Recall+0.01 {
			t.Errorf("%+v: top-1 %v, intersection %+v", shape, m.Top1, m.Intersection)
		}
		if set := m.Sets[0]; set.Predicted.Recall < set.Static.Recall+0.1 {
			t.Errorf("%+v: predicted sets find %.3f, the hottest units %.3f", shape,
				set.Predicted.Recall, set.Static.Recall)
		}
	}
}

// TestEarlyStop: with labels that do not depend on the features, the held-out loss soon rises.
func TestEarlyStop(t *testing.T) {
	w := newWorld(gated, 6, 0.02)
	s := w.tokens(300)
	r := rng.Stream(1, "test/shuffle")
	r.Shuffle(len(s.features), func(i, j int) {
		s.features[i], s.features[j] = s.features[j],
			s.features[i]
	})
	var epochs []Epoch
	trained(t, s, TrainOptions{Hidden: []int{32}, Epochs: 60, Patience: 2, Rate: 0.01,
		Progress: func(e Epoch) { epochs = append(epochs, e) }})
	n := len(epochs)
	if n == 60 || n < 3 || epochs[n-1].Best || epochs[n-2].Best || !epochs[n-3].Best {
		t.Errorf("%d epochs; the last three are %+v", n, epochs[max(0, n-3):])
	}
}

// TestTrainingIsDeterministic: the same weights for any number of workers.
func TestTrainingIsDeterministic(t *testing.T) {
	s := newWorld(gated, 6, 0.02).tokens(400)
	opt := TrainOptions{Hidden: []int{70, 40}, Epochs: 2, Seed: 4, Workers: 1}
	want := trained(t, s, opt)
	for _, workers := range []int{2, 5} {
		opt.Workers = workers
		got := trained(t, s, opt)
		for l := range want.layers {
			if !slices.Equal(got.layers[l].w, want.layers[l].w) || !slices.Equal(got.layers[l].b,
				want.layers[l].b) {
				t.Errorf("%d workers: layer %d differs", workers, l)
			}
		}
	}
	opt.Seed = 5
	if got := trained(t, s, opt); slices.Equal(got.layers[0].w, want.layers[0].w) {
		t.Error("another seed gives the same weights")
	}
}

// TestProgress: every vocabulary and every epoch reports; the last step of a clustering is the one
// in which nothing moves.
func TestProgress(t *testing.T) {
	s := newWorld(gated, 3, 0).tokens(60)
	last := map[int]BuildStep{}
	unused := func(ClusterStep) { t.Error("the progress of a single clustering is called") }
	_, err := Build(context.Background(), s, BuildOptions{
		ClusterOptions: ClusterOptions{Count: 3, Progress: unused}, Progress: func(b BuildStep) {
			last[b.Vocabulary] = b
		},
	})
	if err != nil || len(last) != 6 || last[6].Layer != 3 || last[6].Projection != 1 ||
		last[6].Vocabularies != 6 {
		t.Fatalf("%v: %+v", err, last)
	}
	for _, b := range last {
		if b.Moved != 0 || b.Cost != 0 {
			t.Errorf("three patterns without noise end with %+v", b)
		}
	}
}

// countdown is a context that is cancelled when it has been asked left times.
type countdown struct {
	context.Context
	left atomic.Int64
}

func (c *countdown) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// TestCancelledAnywhere ends the making of a predictor at every point where it looks at its
// context.
func TestCancelledAnywhere(t *testing.T) {
	s := newWorld(Shape{Layers: 3, Projections: 1, Units: 20, Width: 4}, 3, 0.1).tokens(30)
	all := func(ctx context.Context) error {
		book, err := Build(ctx, s, BuildOptions{ClusterOptions: ClusterOptions{Count: 3,
			Workers: 2}})
		if err != nil {
			return err
		}
		p, err := Train(ctx, s, s, book, TrainOptions{Hidden: []int{4}, Epochs: 2, Batch: 16,
			Workers: 2})
		if err != nil {
			return err
		}
		_, err = Evaluate(ctx, p, s, EvaluateOptions{KMax: []int{3}})
		return err
	}
	for n := range int64(1000) {
		ctx := &countdown{Context: context.Background()}
		ctx.left.Store(n)
		err := all(ctx)
		if err == nil {
			if n < 15 {
				t.Errorf("done after %d looks at the context", n)
			}
			return
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("after %d looks: %v", n, err)
		}
	}
	t.Error("it never ends")
}

// TestPublishedShape: the published system names 62 centroids for a token of Mistral-7B, two for
// each of 31 layers.
func TestPublishedShape(t *testing.T) {
	published := map[string]int{}
	for _, row := range reference.Table(t, "papers", "neuroprefetcher_constants.csv") {
		if n, err := strconv.Atoi(row[1]); err == nil {
			if _, seen := published[row[0]]; !seen {
				published[row[0]] = n
			}
		}
	}
	s := Shape{Layers: published["layers N"], Projections: 2,
		Units: published["intermediate dimension"],
		Width: published["down projection output dimension"]}
	if err := s.check(); err != nil || s.heads() != 2*published["predicted layers"] ||
		s.heads() != 62 || s.words() != 224 {
		t.Errorf("%+v: %d heads, masks of %d words (%v)", s, s.heads(), s.words(), err)
	}
}

func TestStandardise(t *testing.T) {
	s := &memory{shape: Shape{Layers: 2, Projections: 1, Units: 1, Width: 2}, features: [][]float32{
		{1, 7}, {3, 7}, {5, 7}, {7, 7}}}
	mean, scale, err := standardise(context.Background(), s)
	if err != nil || mean[0] != 4 || mean[1] != 7 ||
		math.Abs(float64(scale[0])-1/math.Sqrt(5)) > 1e-6 || scale[1] != 0 {
		t.Errorf("mean %v, scale %v: %v; want 4 and 7, 1/√5 and 0 for what does not vary", mean,
			scale, err)
	}
}

// broken makes one thing of samples wrong.
type broken struct {
	*memory
	feature func(dst []float32) error
	mask    func(dst mask.Mask) error
}

func (b broken) Feature(i int, dst []float32) error {
	if b.feature != nil && i == 7 {
		return b.feature(dst)
	}
	return b.memory.Feature(i, dst)
}

func (b broken) Mask(i, layer, projection int, dst mask.Mask) error {
	if b.mask != nil && i == 7 && layer == 2 {
		return b.mask(dst)
	}
	return b.memory.Mask(i, layer, projection, dst)
}

func TestTrainRefusals(t *testing.T) {
	good := newWorld(gated, 2, 0.02).tokens(40)
	ctx := context.Background()
	book, err := Build(ctx, good, BuildOptions{ClusterOptions: ClusterOptions{Count: 2}})
	if err != nil {
		t.Fatal(err)
	}
	failed := errors.New("no such token")
	other := *good
	other.shape.Layers = 3
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	for name, c := range map[string]struct {
		ctx         context.Context
		train, held Samples
		opt         TrainOptions
		want        error
	}{
		"epochs":      {ctx, good, good, TrainOptions{Epochs: -1}, ErrOptions},
		"patience":    {ctx, good, good, TrainOptions{Patience: -1}, ErrOptions},
		"batch":       {ctx, good, good, TrainOptions{Batch: -1}, ErrOptions},
		"rate":        {ctx, good, good, TrainOptions{Rate: math.NaN()}, ErrOptions},
		"workers":     {ctx, good, good, TrainOptions{Workers: -1}, ErrOptions},
		"hidden":      {ctx, good, good, TrainOptions{Hidden: []int{0}}, ErrOptions},
		"depth":       {ctx, good, good, TrainOptions{Hidden: make([]int, 9)}, ErrOptions},
		"no tokens":   {ctx, good, &memory{shape: gated}, TrainOptions{}, ErrSamples},
		"other shape": {ctx, good, &other, TrainOptions{}, ErrMismatch},
		"cancelled":   {cancelled, good, good, TrainOptions{}, context.Canceled},
		"not a number": {ctx, broken{memory: good, feature: func(x []float32) error {
			x[3] = float32(math.NaN())
			return nil
		}}, good, TrainOptions{}, ErrSamples},
		"bad feature": {ctx, broken{memory: good, feature: func([]float32) error {
			return failed
		}}, good, TrainOptions{}, failed},
		"bad mask": {ctx, broken{memory: good, mask: func(mask.Mask) error { return failed }},
			good, TrainOptions{}, failed},
		"stray bit": {ctx, good, broken{memory: good, mask: func(m mask.Mask) error {
			m[1] = 1 << 63
			return nil
		}}, TrainOptions{}, ErrSamples},
	} {
		if _, err := Train(c.ctx, c.train, c.held, book, c.opt); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	for name, s := range map[string]Samples{
		"one layer":   &memory{shape: Shape{1, 1, 8, 8}, features: good.features},
		"projections": &memory{shape: Shape{2, 3, 8, 8}, features: good.features},
		"units":       &memory{shape: Shape{2, 1, 0, 8}, features: good.features},
		"width":       &memory{shape: Shape{2, 1, 8, 0}, features: good.features},
		"no tokens":   &memory{shape: gated},
		"a stray mask": broken{memory: good, mask: func(m mask.Mask) error {
			m[1] = 1 << 63
			return nil
		}},
	} {
		if _, err := Build(ctx, s, BuildOptions{}); !errors.Is(err, ErrSamples) {
			t.Errorf("build, %s: got %v", name, err)
		}
	}
}

func TestSplit(t *testing.T) {
	s := newWorld(gated, 2, 0.02).tokens(10)
	train, held, err := Split(s, 0.25)
	if err != nil || train.Len() != 8 || held.Len() != 2 {
		t.Fatalf("%v: %d and %d tokens, want 8 and 2", err, train.Len(), held.Len())
	}
	x := make([]float32, gated.Width)
	mask := mask.New(gated.Units)
	if err := errors.Join(held.Feature(1, x), held.Mask(1, 3, 1, mask)); err != nil ||
		!slices.Equal(x, s.features[9]) || !slices.Equal(mask, s.masks[9][5]) {
		t.Error("the second held-out token is not the last one", err)
	}
	if _, held, _ := Split(s, 0.001); held.Len() != 1 {
		t.Error("a small share holds out nothing")
	}
	for _, share := range []float64{-1, 1, math.NaN()} {
		if _, _, err := Split(s, share); !errors.Is(err, ErrOptions) {
			t.Errorf("share %v: %v", share, err)
		}
	}
	if _, _, err := Split(&memory{shape: gated}, 0.5); !errors.Is(err, ErrSamples) {
		t.Error(err)
	}
}

func TestMaskFeature(t *testing.T) {
	dst := make([]float32, 66)
	dst[3] = 7
	MaskFeature(bitset(66, 0, 64, 65), dst)
	for u, v := range dst {
		if want := u == 0 || u >= 64; (v == 1) != want || v != 0 && v != 1 {
			t.Errorf("unit %d: %v", u, v)
		}
	}
}

func TestThreshold(t *testing.T) {
	values := []float32{0, -3, 0.5, 2, float32(math.Copysign(0, -1)), 1}
	mask := mask.New(len(values))
	for _, c := range []struct {
		share float64
		at    float32
		want  []uint32
	}{{1, 0, []uint32{1, 2, 3, 5}}, {0.5, 0.5, []uint32{1, 3, 5}}, {0.34, 1, []uint32{1, 3}},
		{0, 3, nil}} {
		at, err := Cutoff(values, c.share)
		Threshold(values, at, mask)
		if got := mask.AppendUnits(nil); err != nil || at != c.at || !slices.Equal(got, c.want) {
			t.Errorf("share %v: threshold %v gives %v (%v), want %v and %v", c.share, at, got, err,
				c.at, c.want)
		}
	}
	if _, err := Cutoff(nil, 0.5); !errors.Is(err, ErrOptions) {
		t.Error(err)
	}
	if _, err := Cutoff(values, 2); !errors.Is(err, ErrOptions) {
		t.Error(err)
	}
	if _, err := Cutoff([]float32{float32(math.NaN())}, 1); !errors.Is(err, ErrSamples) {
		t.Error(err)
	}
}
