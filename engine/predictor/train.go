package predictor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// LayerReport describes the training of a layer. The state of an interrupted training keeps it. The
// held-out samples also chose the epoch, the threshold and perhaps the rank, so their score is a
// little too good; Evaluate on other documents is fairer.
type LayerReport struct {
	Rank      int `json:"rank"`
	Epochs    int `json:"epochs"`     // run
	BestEpoch int `json:"best_epoch"` // the epoch of the returned weights
	// of that epoch, weighted as in training, on the held-out samples
	Loss      float64 `json:"loss"`
	Threshold float64 `json:"threshold"`
	HeldOut   Score   `json:"held_out"`
}

// Report describes a training.
type Report struct {
	Trained, HeldOut int   // samples
	Held             []int // the held-out ones, ascending
	Layers           []LayerReport
}

// Train makes a predictor from samples. When ctx ends it stops with ctx's error. With a State, the
// same call continues later and returns the same predictor as without the interruption.
func Train(ctx context.Context, s Samples, opt Options) (*Predictor, *Report, error) {
	if err := opt.resolve(s); err != nil {
		return nil, nil, err
	}
	settings, err := opt.encode()
	if err != nil {
		return nil, nil, err
	}
	facts := Facts{Origin: "windrow train", Feature: opt.Feature, Model: opt.Model,
		Trace: opt.Trace, Settings: settings}
	p, err := New(opt.Kind, s.Width(), s.Units(), make([]Layer, s.Layers()), facts)
	if err != nil {
		return nil, nil, err
	}
	t := &trainer{s: s, opt: &opt, p: p, rep: &Report{Layers: make([]LayerReport, s.Layers())}}
	if t.train, t.held, err = split(s, opt.HoldOut, opt.Seed); err != nil {
		return nil, nil, err
	}
	t.rep.Trained, t.rep.HeldOut, t.rep.Held = len(t.train), len(t.held), t.held
	if t.state, err = openState(opt.State, s, facts); err != nil {
		return nil, nil, err
	}
	jobs := make([]func(context.Context) error, 0, s.Layers())
	for _, l := range largestFirst(opt.Ranks) {
		jobs = append(jobs, func(ctx context.Context) error {
			if err := t.layer(ctx, l); err != nil {
				return fmt.Errorf("predictor: layer %d: %w", l, err)
			}
			return nil
		})
	}
	if err := inParallel(ctx, jobs, opt.Workers); err != nil {
		return nil, nil, err
	}
	return p, t.rep, nil
}

// largestFirst orders the layers so that no large one starts last.
func largestFirst(ranks []int) []int {
	order := make([]int, len(ranks))
	for l := range order {
		order[l] = l
	}
	slices.SortStableFunc(order, func(a, b int) int { return ranks[b] - ranks[a] })
	return order
}

// trainer is one training. Layers write to their own elements of p and rep.
type trainer struct {
	s           Samples
	opt         *Options
	p           *Predictor
	rep         *Report
	state       *state
	train, held []int

	mu   sync.Mutex // guards done and calls of Progress
	done int
}

// progress reports an epoch.
func (t *trainer) progress(pr Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if pr.Finished {
		t.done++
	}
	if t.opt.Progress != nil {
		pr.Epochs, pr.Done, pr.Layers = t.opt.Epochs, t.done, t.s.Layers()
		t.opt.Progress(pr)
	}
}

// layer reads one layer's predictor from the state, or trains it and stores it there.
func (t *trainer) layer(ctx context.Context, layer int) error {
	found, err := t.state.load(ctx, layer, t.p, &t.rep.Layers[layer])
	if err != nil {
		return err
	}
	if found {
		old := &t.rep.Layers[layer]
		t.progress(Progress{Layer: layer, Rank: old.Rank, Loss: old.Loss, Best: old.Loss,
			Finished: true})
		return nil
	}
	rep := LayerReport{Rank: t.opt.Ranks[layer]}
	for most := largestRank(t.s); ; rep = (LayerReport{Rank: min(2*rep.Rank, most)}) {
		if err := t.attempt(ctx, layer, &rep); err != nil {
			return err
		}
		if t.opt.GoalFP == 0 || rep.HeldOut.FalsePositives() <= t.opt.GoalFP || rep.Rank == 0 ||
			rep.Rank == most {
			break
		}
	}
	t.rep.Layers[layer] = rep
	if err := t.state.save(layer, t.p, &rep); err != nil {
		return err
	}
	t.progress(Progress{Layer: layer, Rank: rep.Rank, Epoch: rep.Epochs, Loss: rep.Loss,
		Best: rep.Loss, Finished: true})
	return nil
}

// attempt trains a layer with rep's rank, chooses its threshold and scores it.
func (t *trainer) attempt(ctx context.Context, layer int, rep *LayerReport) (err error) {
	if rep.Rank > 0 {
		if t.p.layers[layer], err = t.fit(ctx, layer, rep); err != nil {
			return err
		}
	}
	if err := t.p.chooseThreshold(ctx, layer, t.s, t.held, &t.opt.Settings); err != nil {
		return err
	}
	rep.HeldOut, err = t.p.score(ctx, layer, t.s, t.held)
	rep.Threshold = t.p.Threshold(layer)
	return err
}

// fit trains one layer: survey, start, epochs of small steps until the held-out loss no longer
// falls. It returns the best epoch's weights in the form that runs.
func (t *trainer) fit(ctx context.Context, layer int, rep *LayerReport) (Layer, error) {
	size := t.opt.Batch
	b := newBatch(t.s, layer, size, t.opt.Cost != nil)
	st, err := surveyOf(b, t.train, size)
	if err != nil {
		return Layer{}, err
	}
	d, u := t.s.Width(), t.s.Units()
	net, grad := newNetwork(d, rep.Rank, u, t.opt.Kind), newNetwork(d, rep.Rank, u, t.opt.Kind)
	w, ws, random := t.opt.weights(st), net.workspace(size), rng.Stream(t.opt.Seed,
		fmt.Sprintf("predictor/layer/%d", layer))
	net.init(st, w, random)
	descent := newAdam(net, t.opt.WeightDecay)
	best := slices.Clone(net.params)
	order, step, steps := slices.Clone(t.train), 0, t.opt.Epochs*((len(t.train)+size-1)/size)
	rep.Loss = math.Inf(1)
	for epoch := 1; epoch <= t.opt.Epochs; epoch++ {
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		err := chunks(order, size, func(piece []int) error {
			if err := errors.Join(ctx.Err(), b.load(piece)); err != nil {
				return err
			}
			st.standardise(b)
			net.forward(b, ws)
			net.gradient(b, ws, w, grad)
			descent.update(net.params, grad.params, t.opt.rate(step, steps))
			step++
			return nil
		})
		if err != nil {
			return Layer{}, err
		}
		loss, err := t.loss(ctx, net, b, ws, st, w)
		if err != nil {
			return Layer{}, err
		}
		rep.Epochs = epoch
		if loss < rep.Loss {
			rep.Loss, rep.BestEpoch = loss, epoch
			copy(best, net.params)
		}
		if math.IsNaN(loss) {
			return Layer{}, fmt.Errorf("the loss is not a number after epoch %d; use a smaller "+
				"learning rate than %g", epoch, t.opt.LearningRate)
		}
		if epoch-rep.BestEpoch >= t.opt.Patience {
			break
		}
		if epoch < t.opt.Epochs {
			t.progress(Progress{Layer: layer, Rank: rep.Rank, Epoch: epoch, Loss: loss,
				Best: rep.Loss})
		}
	}
	net.view(best)
	return net.fold(st)
}

// loss is the mean weighted cross-entropy of an element of the held-out samples.
func (t *trainer) loss(ctx context.Context, net *network, b *batch, ws *workspace, st *survey,
	w weights) (float64, error) {
	sum := 0.0
	err := chunks(t.held, t.opt.Batch, func(piece []int) error {
		if err := errors.Join(ctx.Err(), b.load(piece)); err != nil {
			return err
		}
		st.standardise(b)
		net.forward(b, ws)
		sum += net.loss(b, ws, w)
		return nil
	})
	return sum / (float64(len(t.held)) * float64(net.u)), err
}

// fold returns the network in the form that runs: in float16, on features that are not
// standardised.
//
// Each inner value may be divided by a power of two if its column of W2 is multiplied by it, with
// or without ReLU. This gives both matrices numbers of similar size, so that float16 can hold them
// whatever the scale of the features.
func (n *network) fold(st *survey) (Layer, error) {
	l := Layer{Rank: n.r, W1: make([]uint16, n.r*n.d), B1: make([]float32, n.r), W2: make([]uint16,
		n.u*n.r), B2: slices.Clone(n.b2)}
	for j := range n.r {
		in, out := n.w1[j*n.d:(j+1)*n.d], n.w2[j*n.u:(j+1)*n.u]
		shift := balance(in, st.scale, out)
		shifted := math.Ldexp(1, shift)
		bias := float64(n.b1[j]) * shifted
		for k, v := range in {
			h := ref.F32ToF16(float32(float64(v) * st.scale[k] * shifted))
			l.W1[j*n.d+k] = h
			bias -= float64(ref.F16ToF32(h)) * st.mean[k]
		}
		l.B1[j] = float32(bias)
		for u, v := range out {
			l.W2[u*n.r+j] = ref.F32ToF16(float32(float64(v) / shifted))
		}
	}
	p := Predictor{width: n.d, units: n.u}
	return l, p.checkLayer(&l)
}

// balance returns the power of two that makes the largest numbers of in·scale, multiplied by it,
// and of out, divided by it, about the same.
func balance(in []float32, scale []float64, out []float32) int {
	a, b := 0.0, 0.0
	for k, v := range in {
		a = max(a, math.Abs(float64(v)*scale[k]))
	}
	for _, v := range out {
		b = max(b, math.Abs(float64(v)))
	}
	if a == 0 || b == 0 {
		return 0
	}
	return int(math.Round(math.Log2(b/a) / 2))
}
