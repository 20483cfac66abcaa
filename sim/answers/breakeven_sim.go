package answers

import (
	"fmt"
	"math"

	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/memory"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/synth"
)

// simKey identifies one simulation of selective reads: of a share, or of a batch.
type simKey struct {
	window int
	share  float64
	batch  int
}

// cost is the cost of one token in seconds, over all layers.
type cost struct{ io, copies float64 }

// The resolution of the simulated searches: shares are found to shareTolerance after a scan in
// shareSteps.
const (
	shareTolerance = 0.002
	shareSteps     = 9
	// expectedSims estimates the simulations of a search: the scan and its bisection, and the
	// doubling of the batch.
	expectedSims = 24
)

// simulated finds the simulated limits for a window of k tokens.
func (b *breaker) simulated(share, batch *Limits, k int) error {
	for _, want := range []struct {
		share, batch **float64
		time         func(cost) float64
		skip         bool
	}{
		{&share.Simulated, &batch.Simulated, func(c cost) float64 { return c.io }, false},
		{&share.WithCopies, &batch.WithCopies, func(c cost) float64 { return c.io + c.copies },
			!b.copies},
	} {
		if want.skip {
			continue
		}
		at, found, err := firstCrossing(mostShare, shareSteps, shareTolerance,
			func(s float64) (float64, error) {
				c, err := b.cost(simKey{window: k, share: s})
				return want.time(c) - b.hybridIO, err
			})
		if err != nil {
			return err
		}
		*want.share = known(at, found)
		slower := func(n int) (bool, error) {
			c, err := b.cost(simKey{window: k, share: b.Share, batch: n})
			return want.time(c) > b.hybridIO, err
		}
		n, found, err := b.firstBatch(slower)
		if err != nil {
			return err
		}
		*want.batch = known(float64(n-1), found)
	}
	return nil
}

// firstBatch doubles the batch until selective is slower, then bisects between the last two.
func (b *breaker) firstBatch(slower func(n int) (bool, error)) (int, bool, error) {
	low := 0
	for n := 1; ; n = min(2*n, b.MostBatch) {
		ok, err := slower(n)
		if err != nil {
			return 0, false, err
		}
		if ok {
			return leastInt(low+1, n, slower)
		}
		if n == b.MostBatch {
			return n, false, nil
		}
		low = n
	}
}

// cost simulates one share or batch, once.
func (b *breaker) cost(key simKey) (cost, error) {
	if c, done := b.simOf[key]; done {
		return c, nil
	}
	src, err := b.trace(key)
	if err != nil {
		return cost{}, err
	}
	c, _, err := b.simulate(src, key.window, b.Layout)
	if err != nil {
		return cost{}, err
	}
	b.simOf[key] = c
	return c, nil
}

// trace makes the masks of one simulation.
func (b *breaker) trace(key simKey) (*traces.Memory, error) {
	if key.batch == 0 {
		return b.collect(key.share, key.window, 1)
	}
	return b.batch(key.batch)
}

// batch makes the masks of a batch.
func (b *breaker) batch(n int) (*traces.Memory, error) {
	if b.sequences == nil {
		var err error
		if b.sequences, err = b.collect(b.Share, b.Window, b.MostBatch); err != nil {
			return nil, err
		}
	}
	return union(b.sequences, n), nil
}

// picked are the simulated layers: the middles of equal ranges of all layers. Their mean is near
// that of all layers.
func (b *breaker) picked() []int {
	list := make([]int, b.Layers)
	for i := range list {
		list[i] = (2*i + 1) * b.Model.Shape.Layers / (2 * b.Layers)
	}
	return list
}

// options describe a synthetic trace of some layers, with enough tokens to fill the window first.
func (b *breaker) options(layers, window int) synth.Options {
	shape := b.Model.Shape
	shape.DFFN = b.Model.Units
	return synth.Options{Like: b.Like, Shape: shape, Layers: layers, Tokens: window + 1 + b.Tokens,
		ActiveShare: b.Share, Seed: b.Seed}
}

// collect makes a trace of one layer for each picked layer, with that layer's active share, and
// joins them into one trace.
func (b *breaker) collect(share float64, window, sequences int) (*traces.Memory, error) {
	curves, err := b.activity.at(share)
	if err != nil {
		return nil, err
	}
	head, err := synth.HeaderOf(b.options(b.Layers, window))
	if err != nil {
		return nil, fmt.Errorf("answers: break-even: %w: %w", err, ErrInput)
	}
	const hardly = 1e-6 // a share of 0 stands for the published one
	out := &traces.Memory{Head: head}
	for _, l := range b.picked() {
		opt := b.options(1, window)
		opt.ActiveShare, opt.Sequences = min(max(curves[l][1], hardly), mostShare), sequences
		opt.Seed = rng.Stream(b.Seed, fmt.Sprintf("answers/layer/%d", l)).Uint64()
		one, err := synth.Collect(b.ctx, opt)
		if err != nil {
			return nil, fmt.Errorf("answers: break-even: %w: %w", err, ErrInput)
		}
		if out.List == nil {
			out.List = one.List
			continue
		}
		for i := range out.List {
			out.List[i].Active = append(out.List[i].Active, one.List[i].Active[0])
		}
	}
	return out, nil
}

// batchFits finds the largest batch whose mean rows fit into the budget, in the simulated traces.
func (b *breaker) batchFits(batch *Limits, k int) error {
	n, found, err := leastInt(1, b.MostBatch, func(n int) (bool, error) {
		src, err := b.batch(n)
		if err != nil {
			return false, err
		}
		rows, err := WindowsOf(b.ctx, src, memory.Reads{}, false, nil)
		if err != nil {
			return false, err
		}
		sum := 0.0
		for l := range rows.Layers {
			sum += rows.Layers[l].Mean[k]
		}
		return sum/float64(len(rows.Layers)*b.Model.Units) > b.rowsFit(), nil
	})
	batch.Fits = float64(n)
	if found {
		batch.Fits--
	}
	return err
}

// union is the trace of a batch: at each position, the union of the true masks of the first n
// sequences. It is one sequence, as long as the shortest of them.
func union(m *traces.Memory, n int) *traces.Memory {
	var sequences [][]traces.Token
	var passed traces.Sequences
	for i := range m.List {
		if passed.Begins(m.List[i].Seq) {
			if len(sequences) == n {
				break
			}
			sequences = append(sequences, m.List[i:i])
		}
		last := &sequences[len(sequences)-1]
		*last = (*last)[:len(*last)+1]
	}
	out := &traces.Memory{Head: m.Head}
	out.Head.HasPredicted, out.Head.HasMagnitude = false, false
	out.Head.FeatureKind, out.Head.FeatureWidth = "", 0
	for i := range sequences[0] {
		t := traces.Token{Pos: sequences[0][i].Pos, Phase: sequences[0][i].Phase,
			ID: sequences[0][i].ID}
		for l := range sequences[0][i].Active {
			needed := mask.New(m.Head.Units)
			for _, s := range sequences {
				if i == len(s) {
					return out
				}
				needed.Or(s[i].Active[l])
			}
			t.Active = append(t.Active, needed)
		}
		out.List = append(out.List, t)
	}
	return out
}

// simulateHybrid simulates hybrid's reads and notes how far the device model can be trusted. Every
// token needs the same first rows of every layer, and nothing is kept. They are one long extent, in
// reads of SequentialChunk.
func (b *breaker) simulateHybrid(out *BreakEven) error {
	opt := b.options(b.Layers, 0)
	head, err := synth.HeaderOf(opt)
	if err != nil {
		return fmt.Errorf("answers: break-even: %w: %w", err, ErrInput)
	}
	record := float64(b.Model.UnitBytes) * float64(b.Model.Shape.Layers)
	rows := min(max(int(math.Round(float64(b.missing)/record)), 1), b.Model.Units)
	need := mask.New(head.Units)
	need.Fill(head.Units)
	need.KeepLowest(rows)
	m := &traces.Memory{Head: head}
	for pos := range opt.Tokens {
		t := traces.Token{Pos: uint32(pos)}
		for range head.Layers {
			t.Active = append(t.Active, need)
		}
		m.List = append(m.List, t)
	}
	align := b.Layout.Align
	c, run, err := b.simulate(m, 0, layout.Options{Align: align,
		MaxRequest: max(b.SequentialChunk/align*align, align), Coalesce: true})
	if err != nil {
		return err
	}
	b.hybridIO = c.io * float64(b.missing) / (record * float64(rows))
	out.HybridSim = units.FromSeconds(b.hybridIO)
	fit := b.Device.Fit
	out.Fitted = fit != nil && fit.IntervalPct != nil
	out.Outside = out.Fitted && (b.SequentialChunk > fit.ChunkMax || b.Parallel > fit.DepthMax ||
		b.Parallel < fit.DepthMin)
	reads := *run.Meta.Prediction
	switch {
	case !out.Fitted:
		reads.Basis = traces.Bound
	case out.Outside || len(run.Meta.Warnings) > 0:
		reads.Basis = traces.Extrapolated
	case reads.Basis == traces.Bound: // of the host, whose times are left out
		reads.Basis = traces.Interpolated
	}
	hybrid := reads.Time(out.HybridSim, out.HybridSim)
	out.HybridEstimate, out.Basis = &hybrid, hybrid.Basis
	if hybrid.Bound {
		out.Basis = "two bounds"
	}
	out.Notes = append(out.Notes, run.Meta.Warnings...)
	if fit != nil && fit.Unfitted != "" {
		out.Notes = append(out.Notes, "the flash is not fitted: "+fit.Unfitted)
	}
	return nil
}

// simulate returns the mean cost of the tokens after the window is full.
func (b *breaker) simulate(src *traces.Memory, window int, opt layout.Options) (cost, *traces.Run,
	error) {
	if err := b.ctx.Err(); err != nil {
		return cost{}, nil, err
	}
	run, err := sim.Run(b.ctx, src, sim.Config{
		Policy: policy.SlidingWindow(window), Engine: b.Engine, Parallel: b.Parallel, Layout: opt,
		Device:   b.Device,
		Geometry: b.geometry(),
	})
	if err != nil {
		return cost{}, nil, err
	}
	var c cost
	for i := range run.Rows {
		r := &run.Rows[i]
		switch {
		case int(r.Token) <= window:
		case r.Part == traces.PartIO:
			c.io += r.Dur.Seconds()
		case r.Part == traces.PartMemory:
			c.copies += r.Dur.Seconds()
		}
	}
	scale := float64(b.Model.Shape.Layers) / float64(b.Layers) / float64(len(src.List)-window-1)
	b.sims++
	if b.Progress != nil {
		b.Progress(b.sims, max(b.sims, 1+expectedSims*(1+min(b.Window, 1))))
	}
	return cost{c.io * scale, c.copies * scale}, run, nil
}

// geometry keeps the simulated layers at their places among all layers, so that the reads are
// spread nearly as far as those of all layers.
func (b *breaker) geometry() layout.Geometry {
	all := layout.Uniform(b.Model.Shape.Layers, b.Model.Units, b.Model.UnitBytes)
	some := all
	some.Base = make([]int64, b.Layers)
	for i, l := range b.picked() {
		some.Base[i] = all.Base[l]
	}
	return some
}
