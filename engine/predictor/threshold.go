package predictor

import (
	"context"
	"fmt"
	"math"

	"github.com/windrow-sim/windrow/internal/mask"
)

// A curve counts the errors of each possible threshold, in bins of values before the sigmoid
// (logits). Its memory does not depend on the number of samples, and the errors of every edge of a
// bin are exact.
type curve struct {
	active, inactive []int64
	magnitude        []float64 // of the active; zeros without magnitudes
}

// Edges reach from −32 to 32, where a sigmoid is 0 or 1 in float32, in steps of 1/64.
const (
	edgeLeast    = -32
	edgesPerUnit = 64
	edges        = 2 * 32 * edgesPerUnit
)

func newCurve() *curve {
	return &curve{active: make([]int64, edges), inactive: make([]int64, edges),
		magnitude: make([]float64, edges)}
}

// edge returns the lower end of a bin. The first bin has all smaller values too, so its edge
// predicts everything.
func edge(bin int) float32 {
	if bin == 0 {
		return -math.MaxFloat32
	}
	return edgeLeast + float32(bin)/edgesPerUnit
}

// bin returns the bin of a value, exactly: z ≥ edge(i) for i up to its bin and no other. NaN is in
// the last bin, predicted, as in Predict.
func bin(z float32) int {
	at := math.Floor(float64(z)*edgesPerUnit) - edgeLeast*edgesPerUnit
	if math.IsNaN(at) {
		return edges - 1
	}
	return int(min(max(at, 0), edges-1))
}

// add counts the values of one sample; magnitudes may be empty.
func (c *curve) add(z []float32, active mask.Mask, magnitudes []float32) {
	m := 0
	for u, v := range z {
		at := bin(v)
		if !active.Has(uint32(u)) {
			c.inactive[at]++
			continue
		}
		c.active[at]++
		if len(magnitudes) > 0 {
			c.magnitude[at] += float64(magnitudes[m])
			m++
		}
	}
}

// forTarget returns the largest logit with a share of false negatives of at most target.
func (c *curve) forTarget(target float64) float32 {
	total := sum(c.active)
	if total == 0 {
		return 0
	}
	missed, best := int64(0), 0
	for i := range edges {
		if float64(missed) <= target*float64(total) {
			best = i
		}
		missed += c.active[i]
	}
	return edge(best)
}

// forCost returns the logit with the least cost, the smallest among equals.
func (c *curve) forCost(cost *Cost) float32 {
	total, magnitude := sum(c.active), sum(c.magnitude)
	if total == 0 || magnitude == 0 {
		return 0
	}
	perMagnitude := float64(cost.FalseNegative) * float64(total) / magnitude
	spurious, lost := sum(c.inactive), 0.0
	best, least := 0, math.Inf(1)
	for i := range edges {
		if now := float64(cost.FalsePositive)*float64(spurious) + perMagnitude*lost; now < least {
			best, least = i, now
		}
		spurious -= c.inactive[i]
		lost += c.magnitude[i]
	}
	return edge(best)
}

func sum[T int64 | float64](s []T) (total T) {
	for _, v := range s {
		total += v
	}
	return total
}

// chooseThreshold sets the layer's MinLogit by the settings, from samples that training did not
// see.
func (p *Predictor) chooseThreshold(ctx context.Context, layer int, s Samples, index []int,
	set *Settings) error {
	l := &p.layers[layer]
	switch {
	case l.Rank == 0:
		return nil
	case len(set.Thresholds) > 0:
		l.MinLogit = logit(set.Thresholds[min(layer, len(set.Thresholds)-1)])
		return nil
	}
	c := newCurve()
	if err := p.eachValue(ctx, layer, s, index, func(b *batch, z []float32) {
		c.add(z, b.mask(0), b.mags)
	}); err != nil {
		return err
	}
	if set.TargetFN > 0 || set.Cost == nil {
		l.MinLogit = c.forTarget(set.TargetFN)
	} else {
		l.MinLogit = c.forCost(set.Cost)
	}
	return nil
}

// Calibrate returns the same predictor with thresholds chosen on samples from…to−1 by set's
// Thresholds, TargetFN or Cost, as in training: for imported predictors, or another target. It
// shares the weights.
func Calibrate(ctx context.Context, p *Predictor, s Samples, from, to int,
	set Settings) (*Predictor, error) {
	index, err := p.indices(s, from, to)
	if err != nil {
		return nil, err
	}
	o := Options{Settings: set}
	o.Ranks = make([]int, s.Layers()) // not trained
	if err := o.resolve(s); err != nil {
		return nil, err
	}
	q := *p
	q.layers = append([]Layer(nil), p.layers...)
	for l := range q.layers {
		if err := q.chooseThreshold(ctx, l, s, index, &o.Settings); err != nil {
			return nil, fmt.Errorf("predictor: layer %d: %w", l, err)
		}
	}
	return &q, nil
}
