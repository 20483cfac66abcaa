package predictor

import (
	"context"
	"fmt"

	"github.com/windrow-sim/windrow/internal/mask"
)

// Score is how well a layer was predicted, in counts over tokens and units.
type Score struct {
	Layer    int   `json:"layer"`
	Samples  int64 `json:"samples"`
	Elements int64 `json:"elements"`        // samples × units
	Active   int64 `json:"active"`          // elements that were active
	Chosen   int64 `json:"predicted"`       // elements that were predicted
	Missed   int64 `json:"false_negatives"` // active and not predicted
	Spurious int64 `json:"false_positives"` // predicted and not active

	// Loss is the balanced cross-entropy in nats: ln 2 for a predictor without knowledge. 0 for a
	// layer without predictor.
	Loss float64 `json:"loss"`
	// Magnitude is the sum of |activation| over the active elements, Lost that over the missed
	// ones; 0 without magnitudes.
	Magnitude float64 `json:"magnitude"`
	Lost      float64 `json:"lost_magnitude"`
}

// FalseNegatives is the share of the active elements that were not predicted.
func (s *Score) FalseNegatives() float64 { return share(s.Missed, s.Active) }

// FalsePositives is the share of the inactive elements that were predicted.
func (s *Score) FalsePositives() float64 { return share(s.Spurious, s.Elements-s.Active) }

// Recall is the share of the active elements that were predicted; 1 when none was active.
func (s *Score) Recall() float64 { return 1 - s.FalseNegatives() }

// Precision is the share of the predicted elements that were active; 1 when none was predicted.
func (s *Score) Precision() float64 { return 1 - share(s.Spurious, s.Chosen) }

// OverPrediction is the number of predicted elements for each active one; 0 when none was active.
func (s *Score) OverPrediction() float64 { return share(s.Chosen, s.Active) }

// ActiveShare is the share of the elements that were active.
func (s *Score) ActiveShare() float64 { return share(s.Active, s.Elements) }

// LostMagnitude is the share of the sum of |activation| that was missed.
func (s *Score) LostMagnitude() float64 {
	if s.Magnitude == 0 {
		return 0
	}
	return s.Lost / s.Magnitude
}

func share(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// Evaluate scores every layer on the samples from…to−1. Workers is the number of layers at a time,
// 0 = one for each core; it does not change the scores.
func Evaluate(ctx context.Context, p *Predictor, s Samples, from, to, workers int) ([]Score,
	error) {
	index, err := p.indices(s, from, to)
	if err != nil {
		return nil, err
	}
	scores := make([]Score, len(p.layers))
	jobs := make([]func(context.Context) error, len(scores))
	for l := range scores {
		jobs[l] = func(ctx context.Context) (err error) {
			if scores[l], err = p.score(ctx, l, s, index); err != nil {
				return fmt.Errorf("predictor: layer %d: %w", l, err)
			}
			return nil
		}
	}
	if err := inParallel(ctx, jobs, workers); err != nil {
		return nil, err
	}
	return scores, nil
}

// indices checks that the samples suit the predictor and lists from…to−1.
func (p *Predictor) indices(s Samples, from, to int) ([]int, error) {
	if err := p.For(s.Layers(), s.Width(), s.Units(), ""); err != nil {
		return nil, err
	}
	if from < 0 || to <= from || to > s.Len() {
		return nil, fmt.Errorf("predictor: samples %d to %d of %d: at least one is needed", from,
			to, s.Len())
	}
	index := make([]int, to-from)
	for i := range index {
		index[i] = from + i
	}
	return index, nil
}

// eachValue calls f for each sample, with a batch of this sample alone and its values before the
// sigmoid. The layer must have a rank.
func (p *Predictor) eachValue(ctx context.Context, layer int, s Samples, index []int,
	f func(b *batch, z []float32)) error {
	run, b := p.runner(p.layers[layer].Rank, nil), newBatch(s, layer, 1, s.HasMagnitudes())
	return chunks(index, 1, func(piece []int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := b.load(piece); err != nil {
			return err
		}
		f(b, run.values(&p.layers[layer], b.x))
		return nil
	})
}

// score evaluates one layer.
func (p *Predictor) score(ctx context.Context, layer int, s Samples, index []int) (Score, error) {
	sc := Score{Layer: layer, Samples: int64(len(index)), Elements: int64(len(index)) *
		int64(p.units)}
	run, b := p.runner(p.layers[layer].Rank, nil), newBatch(s, layer, 1, s.HasMagnitudes())
	predicted := mask.New(p.units)
	lossActive, lossInactive := 0.0, 0.0
	err := chunks(index, 1, func(piece []int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := b.load(piece); err != nil {
			return err
		}
		if err := run.Predict(layer, b.x, predicted); err != nil {
			return err
		}
		sc.count(b, predicted)
		if p.layers[layer].Rank == 0 {
			return nil
		}
		for u, z := range run.z {
			if !b.active.Has(uint32(u)) {
				lossInactive += softplus(float64(z))
			} else {
				lossActive += softplus(-float64(z))
			}
		}
		return nil
	})
	w := balanced(sc.ActiveShare())
	sc.Loss = (float64(w.active)*lossActive + float64(w.inactive)*lossInactive) /
		float64(sc.Elements)
	return sc, err
}

// count adds one sample.
func (s *Score) count(b *batch, predicted mask.Mask) {
	s.Active += int64(b.active.Count())
	s.Chosen += int64(predicted.Count())
	s.Missed += int64(b.active.CountAndNot(predicted))
	s.Spurious += int64(predicted.CountAndNot(b.active))
	if !b.want {
		return
	}
	m := 0
	for u := range b.active.Each {
		v := float64(b.mags[m])
		m++
		s.Magnitude += v
		if !predicted.Has(u) {
			s.Lost += v
		}
	}
}
