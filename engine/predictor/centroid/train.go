package centroid

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/kernels/cpu"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// TrainOptions configure a training. Zero values mean the defaults.
type TrainOptions struct {
	// widths of the trunk's layers; nil = one of 256; empty = none, heads on the feature
	Hidden   []int
	Epochs   int     // at most; 0 = 20
	Patience int     // epochs without a lower held-out loss until training ends; 0 = 3
	Batch    int     // tokens in a step; 0 = 64
	Rate     float64 // of Adam; 0 = 0.001
	Seed     uint64
	Workers  int // 0 and 1 = the caller's thread only
	// Progress, if not nil, is called after each epoch, from one goroutine.
	Progress func(Epoch)
	// Model and Trace identify the source of the samples, normally as hashes; Feature is the kind
	// of their features. The predictor's file keeps them.
	Model, Trace, Feature string
}

// Epoch is the state of a training after an epoch. Losses are in nats per head; accuracies are
// shares of heads whose most likely centroid is the nearest one.
type Epoch struct {
	Epoch, Epochs int // from 1
	TrainLoss     float64
	TrainAccuracy float64 // while the weights changed
	HeldLoss      float64
	HeldAccuracy  float64
	Best          bool // no epoch before had a lower held-out loss
}

const (
	maxHidden      = 8
	maxHiddenWidth = 1 << 16
	maxBatch       = 1 << 14
	maxEpochs      = 1 << 20
)

func (o TrainOptions) withDefaults() (TrainOptions, error) {
	if o.Hidden == nil {
		o.Hidden = []int{256}
	}
	setDefault(&o.Epochs, 20)
	setDefault(&o.Patience, 3)
	setDefault(&o.Batch, 64)
	setDefault(&o.Rate, 1e-3)
	bad := func(what string, v any, rule string) (TrainOptions, error) {
		return o, fmt.Errorf("centroid: %w: %s %v: it must be %s", ErrOptions, what, v, rule)
	}
	if err := checkHidden(o.Hidden); err != nil {
		return o, fmt.Errorf("centroid: %w: %w", ErrOptions, err)
	}
	switch {
	case o.Epochs < 1 || o.Epochs > maxEpochs:
		return bad("epochs", o.Epochs, fmt.Sprintf("1 to %d", maxEpochs))
	case o.Patience < 1:
		return bad("patience", o.Patience, "1 or more")
	case o.Batch < 1 || o.Batch > maxBatch:
		return bad("batch", o.Batch, fmt.Sprintf("1 to %d", maxBatch))
	case !(o.Rate > 0 && o.Rate <= 1):
		return bad("rate", o.Rate, "above 0 and at most 1")
	case o.Workers < 0 || o.Workers > maxWorkers:
		return bad("workers", o.Workers, fmt.Sprintf("0 to %d", maxWorkers))
	}
	return o, nil
}

func checkHidden(hidden []int) error {
	if len(hidden) > maxHidden {
		return fmt.Errorf("%d hidden layers: at most %d", len(hidden), maxHidden)
	}
	for _, n := range hidden {
		if n < 1 || n > maxHiddenWidth {
			return fmt.Errorf("hidden %d: it must be 1 to %d", n, maxHiddenWidth)
		}
	}
	return nil
}

// Train fits the shared predictor to the codebook with Adam and the cross-entropy of every head, in
// batches drawn in a new order each epoch. It ends when the held-out loss has not fallen for
// Patience epochs, and returns the weights of the best one, rounded to float16. Features are read
// from the samples for each batch; only 4 bytes for each token and head stay in memory.
//
// The codebook should not have seen held either: Split, then Build and Train.
func Train(ctx context.Context, train, held Samples, book *Codebook, opt TrainOptions) (*Predictor,
	error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return nil, err
	}
	for _, s := range []Samples{train, held} {
		if err := checkSamples(s); err != nil {
			return nil, err
		}
		if s.Shape() != book.shape {
			return nil, fmt.Errorf("centroid: %w: samples of shape %+v, a codebook of %+v",
				ErrMismatch, s.Shape(), book.shape)
		}
	}
	t, err := newTrainer(ctx, train, held, book, opt)
	if err != nil {
		return nil, err
	}
	defer t.net.pool.Close()
	if err := t.run(); err != nil {
		return nil, err
	}
	return t.predictor()
}

// trainer is the state of Train.
type trainer struct {
	ctx         context.Context
	opt         TrainOptions
	book        *Codebook
	train, held labelled
	mean, scale []float32
	net         *network
	batch       []int32 // labels of one batch
	best        [][]float32
}

// labelled are samples with the nearest centroid of each head.
type labelled struct {
	Samples
	ids []int32
}

func newTrainer(ctx context.Context, train, held Samples, book *Codebook,
	opt TrainOptions) (*trainer, error) {
	pool := cpu.NewPool(opt.Workers)
	t := &trainer{ctx: ctx, opt: opt, book: book, train: labelled{Samples: train}, held: labelled{
		Samples: held}}
	err := t.prepare(pool)
	if err != nil {
		pool.Close()
		return nil, err
	}
	counts := make([]int, book.shape.heads())
	for h, v := range book.vocabs {
		counts[h] = v.Count()
	}
	t.net = newNetwork(book.shape.Width, opt.Hidden, counts, opt.Batch, pool, rng.Stream(opt.Seed,
		"centroid/weights"))
	t.batch = make([]int32, opt.Batch*len(counts))
	return t, nil
}

// prepare finds the labels, and the mean and deviation of every element of the feature.
func (t *trainer) prepare(pool *cpu.Pool) (err error) {
	if t.train.ids, err = t.book.labels(t.ctx, t.train, pool); err != nil {
		return err
	}
	if t.held.ids, err = t.book.labels(t.ctx, t.held, pool); err != nil {
		return err
	}
	t.mean, t.scale, err = standardise(t.ctx, t.train)
	return err
}

// standardise returns the mean of each element of the feature and one over its standard deviation.
// The latter is 0 for a constant element, which then has no effect.
func standardise(ctx context.Context, s Samples) (mean, scale []float32, err error) {
	width, n := s.Shape().Width, float64(s.Len())
	x := make([]float32, width)
	average, squares := make([]float64, width), make([]float64, width)
	seen := 0.0
	err = inBlocks(ctx, s.Len(), func(lo, hi int) error {
		for i := lo; i < hi; i++ {
			if err := readFeature(s, i, x); err != nil {
				return err
			}
			seen++
			for j, v := range x { // Welford's update: no difference of large sums
				d := float64(v) - average[j]
				average[j] += d / seen
				squares[j] += d * (float64(v) - average[j])
			}
		}
		return nil
	})
	mean, scale = make([]float32, width), make([]float32, width)
	for j := range mean {
		mean[j] = float32(average[j])
		if inverse := float32(1 / math.Sqrt(squares[j]/n)); squares[j] > 0 &&
			!math.IsInf(float64(inverse), 0) {
			scale[j] = inverse
		}
	}
	return mean, scale, err
}

// run trains until there is nothing more to gain.
func (t *trainer) run() error {
	order := make([]int, t.train.Len())
	for i := range order {
		order[i] = i
	}
	r := rng.Stream(t.opt.Seed, "centroid/order")
	lowest, since, step := math.Inf(1), 0, 0
	for epoch := 1; epoch <= t.opt.Epochs && since < t.opt.Patience; epoch++ {
		e := Epoch{Epoch: epoch, Epochs: t.opt.Epochs}
		var err error
		if e.TrainLoss, e.TrainAccuracy, err = t.epoch(order, r, &step); err != nil {
			return err
		}
		if e.HeldLoss, e.HeldAccuracy, err = t.heldOut(); err != nil {
			return err
		}
		since++
		if e.HeldLoss < lowest {
			lowest, since, e.Best = e.HeldLoss, 0, true
			t.keep()
		}
		if t.opt.Progress != nil {
			t.opt.Progress(e)
		}
	}
	if t.best == nil {
		return fmt.Errorf("centroid: training diverged: no held-out loss was a number; use a "+
			"lower rate than %v", t.opt.Rate)
	}
	return nil
}

// epoch makes one pass over the training samples in a new order.
func (t *trainer) epoch(order []int, r *rand.Rand, step *int) (loss, accuracy float64, err error) {
	r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return t.pass(t.train, order, func(size int) {
		*step++
		t.net.backward(size)
		t.net.adam(t.opt.Rate, *step)
	})
}

// heldOut computes loss and accuracy on the held-out samples.
func (t *trainer) heldOut() (loss, accuracy float64, err error) {
	order := make([]int, t.held.Len())
	for i := range order {
		order[i] = i
	}
	return t.pass(t.held, order, func(int) {})
}

// pass runs samples in batches in the given order and calls then after each; it returns the mean
// loss and accuracy.
func (t *trainer) pass(s labelled, order []int, then func(size int)) (loss, accuracy float64,
	err error) {
	heads, width := t.book.shape.heads(), t.book.shape.Width
	for lo := 0; lo < len(order); lo += t.opt.Batch {
		if err := t.ctx.Err(); err != nil {
			return 0, 0, fmt.Errorf("centroid: %w", err)
		}
		batch := order[lo:min(lo+t.opt.Batch, len(order))]
		for k, i := range batch {
			x := t.net.x[0][k*width : (k+1)*width]
			if err := readFeature(s, i, x); err != nil {
				return 0, 0, err
			}
			scaled(x, t.mean, t.scale)
			copy(t.batch[k*heads:], s.ids[i*heads:(i+1)*heads])
		}
		l, right := t.net.forward(len(batch), t.batch)
		loss += l * float64(len(batch))
		accuracy += float64(right)
		then(len(batch))
	}
	n := float64(len(order))
	return loss / n, accuracy / (n * float64(heads)), nil
}

// scaled standardises x in place.
func scaled(x, mean, scale []float32) {
	for j := range x {
		x[j] = (x[j] - mean[j]) * scale[j]
	}
}

// keep remembers the weights as the best so far.
func (t *trainer) keep() {
	if t.best == nil {
		t.best = make([][]float32, 2*len(t.net.layers))
	}
	for i, l := range t.net.layers {
		t.best[2*i] = append(t.best[2*i][:0], l.w...)
		t.best[2*i+1] = append(t.best[2*i+1][:0], l.b...)
	}
}

// predictor rounds the best weights.
func (t *trainer) predictor() (*Predictor, error) {
	p := &Predictor{book: t.book, mean: t.mean, scale: t.scale, facts: Facts{Model: t.opt.Model,
		Trace: t.opt.Trace, Feature: t.opt.Feature, Training: t.record()}}
	for i, l := range t.net.layers {
		d := dense{in: l.in, out: l.out, w: make([]uint16, len(l.w)),
			b: slices.Clone(t.best[2*i+1])}
		for j, v := range t.best[2*i] {
			d.w[j] = ref.F32ToF16(v)
			if d.w[j]&^signF16 >= infF16 {
				return nil, fmt.Errorf("centroid: training diverged: a weight of %v does not "+
					"fit in float16; use a lower rate than %v", v, t.opt.Rate)
			}
		}
		p.layers = append(p.layers, d)
	}
	return p, nil
}

// record returns the facts of the training for the file.
func (t *trainer) record() Training {
	return Training{
		Tokens: t.train.Len(), Held: t.held.Len(), Epochs: t.opt.Epochs, Patience: t.opt.Patience,
		Batch: t.opt.Batch, Rate: t.opt.Rate, Seed: t.opt.Seed,
	}
}
