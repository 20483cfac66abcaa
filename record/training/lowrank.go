package training

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/windrow-sim/windrow/engine/predictor"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/record"
	"github.com/windrow-sim/windrow/traces"
)

// trainLowRank trains, writes and judges.
func (c *Config) trainLowRank(ctx context.Context, t *texts) (*LowRankResult, error) {
	opt, err := c.lowRankOptions(t.train)
	if err != nil {
		return nil, err
	}
	p, rep, err := c.runLowRank(ctx, t.train, opt)
	if err != nil {
		return nil, err
	}
	r := newLowRankResult(c.Out, p, t.train.Header().Model)
	r.Trained, r.HeldOut = rep.Trained, rep.HeldOut
	held := make([]predictor.Score, len(rep.Layers))
	for l := range held {
		held[l] = rep.Layers[l].HeldOut
	}
	r.add(heldOut(t.trainPath), p, held)
	if t.test != nil {
		scores, err := predictor.Evaluate(ctx, p, t.test, 0, t.test.Len(), opt.Workers)
		if err != nil {
			return nil, err
		}
		r.add(filepath.Base(t.testPath), p, scores)
	}
	if err := p.Save(c.Out); err != nil {
		return nil, err
	}
	predictor.ClearState(opt.State, t.train.Layers())
	if r.Texts[0].Speed, err = c.Speeds.of(t.train, rep.Held, lowRankNamer(p), c.Out); err != nil {
		return nil, err
	}
	if t.test != nil {
		r.Texts[1].Speed, err = c.Speeds.of(t.test, t.test.All(), lowRankNamer(p), c.Out)
	}
	return r, err
}

// lowRankOptions are those of package predictor.
func (c *Config) lowRankOptions(s *record.Samples) (predictor.Options, error) {
	opt := predictor.Options{Workers: c.Workers, State: c.State, Model: s.Header().ModelSHA256,
		Trace: s.SHA256()}
	opt.Epochs, opt.Seed, opt.Feature, opt.GoalFP, opt.TargetFN = c.Epochs, c.Seed, s.Predicts(),
		c.GoalFP, c.TargetFN
	if opt.State == "" {
		opt.State = strings.TrimSuffix(c.Out, Suffix) + ".partial.predictor"
	}
	if c.ReLU {
		opt.Kind = predictor.ReLU
	}
	if c.Device != nil {
		var err error
		if opt.Cost, err = c.readCost(s.Header()); err != nil {
			return opt, err
		}
		if !s.HasMagnitudes() {
			return opt, refusal.Input("%s holds no magnitudes, which {Device} weighs; record it "+
				"again with {Features} {Magnitudes}", c.Trace)
		}
	}
	rank := 0
	if c.Rank != nil {
		if rank = *c.Rank; rank < 1 || rank > min(s.Width(), s.Units()) {
			return opt, refusal.Config("{Rank} %d: it is from 1 to %d, the smaller of feature and "+
				"units", rank, min(s.Width(), s.Units()))
		}
		opt.Ranks = []int{rank}
	}
	if s.Ahead() {
		opt.Ranks, opt.GoalFP = aheadRanks(s, rank, opt.GoalFP)
	}
	return opt, nil
}

// aheadRanks leaves the last entry, which no layer follows, without a predictor; the others begin
// where package predictor would begin.
func aheadRanks(s *record.Samples, rank int, goal float64) ([]int, float64) {
	if rank == 0 {
		rank = predictor.StartRank(s)
		if goal == 0 {
			goal = predictor.DefaultGoal
		}
	}
	ranks := make([]int, s.Layers())
	for l := range len(ranks) - 1 {
		ranks[l] = rank
	}
	return ranks, goal
}

// readCost weighs errors by the time of one read among as many as the device takes at once.
func (c *Config) readCost(head *traces.Header) (*predictor.Cost, error) {
	d := c.Device
	reader, err := d.ReadEngine(ioengine.Auto)
	if err != nil {
		return nil, err
	}
	align := max(d.Flash.Align, 1)
	read := (head.UnitBytes + align - 1) / align * align
	rate := d.Flash.Throughput(reader, d.Host.Cores, read, ioengine.DefaultParallel(reader))
	if rate < 1 {
		return nil, refusal.Config("{Device} %s: the model gives no rate for reads of %v", d.Name,
			read)
	}
	one := rate.Time(read)
	return &predictor.Cost{FalsePositive: max(one, 1),
		FalseNegative: max(units.FromSeconds(c.Worth*one.Seconds()), 1)}, nil
}

// runLowRank trains with progress. When it is interrupted, the error says what is kept.
func (c *Config) runLowRank(ctx context.Context, s *record.Samples,
	opt predictor.Options) (*predictor.Predictor, *predictor.Report, error) {
	c.Tell.At("train (epochs)", 0, s.Layers()*opt.Epochs)
	at, finished := make([]int, s.Layers()), 0
	opt.Progress = func(p predictor.Progress) {
		at[p.Layer], finished = p.Epoch, p.Done
		if p.Finished {
			at[p.Layer] = p.Epochs
		}
		sum := 0
		for _, n := range at {
			sum += n
		}
		c.Tell.At(fmt.Sprintf("train: %d of %d layers, layer %d at rank %d, loss %.3f; "+
			"epochs", p.Done, p.Layers, p.Layer, p.Rank, p.Loss), sum, p.Layers*p.Epochs)
	}
	p, rep, err := predictor.Train(ctx, s, opt)
	if errors.Is(err, context.Canceled) {
		err = fmt.Errorf("%d of %d layers are kept in %s, and the same command goes on from "+
			"there: %w", finished, s.Layers(), opt.State, context.Canceled)
	}
	return p, rep, err
}
