package synth

import (
	"fmt"
	"math"
	"slices"
)

// fitted returns the process of a layer with the mean predicted share of OPT-6.7B. core, topic,
// rate and dwell are fitted: with the layers of profile they give the targets of targets.csv in the
// closed form (TestFittedParameters repeats the fit). coreRate and spread are assumed; no published
// number determines them.
func fitted() process {
	return process{core: 0.040092, coreRate: 0.95, topic: 0.21953, rate: 0.22257, dwell: 43.355,
		spread: 1.5}
}

// anchors returns the layers of the reference model with published active shares: LLM in a flash,
// Table 6.
func anchors() (depth, share [3]float64) {
	return [3]float64{0, 15.0 / 31, 1}, [3]float64{0.0156, 0.0266, 0.0536}
}

const (
	referenceLayers = 32
	referenceMean   = 0.033 // over all layers, same table
)

// referenceShare returns the active share of the reference model at a depth between 0 (first layer)
// and 1 (last). It is piecewise linear between the anchors, plus one parabola of height bump per
// piece that is zero at the anchors.
func referenceShare(depth, bump float64) float64 {
	at, share := anchors()
	i := 0
	if depth > at[1] {
		i = 1
	}
	u := (depth - at[i]) / (at[i+1] - at[i])
	return share[i] + u*(share[i+1]-share[i]) + bump*4*u*(1-u)
}

// referenceBump returns the height for which the mean over the layers of the reference model is the
// published one. Straight lines alone give 3.10 %; the table says 3.3 %.
func referenceBump() float64 {
	flat, unit := 0.0, 0.0
	for l := range referenceLayers {
		depth := float64(l) / (referenceLayers - 1)
		flat += referenceShare(depth, 0)
		unit += referenceShare(depth, 1) - referenceShare(depth, 0)
	}
	return (referenceMean*referenceLayers - flat) / unit
}

// profile returns the active share of each of n layers: the profile of the reference model over
// depth, with its odds scaled to the given mean. With 32 layers and 3.3 % it meets the published
// values exactly.
func profile(n int, share float64) []float64 {
	bump := referenceBump()
	list := make([]float64, n)
	for l := range list {
		depth := 0.5
		if n > 1 {
			depth = float64(l) / float64(n-1)
		}
		list[l] = referenceShare(depth, bump)
	}
	y := bisect(1e-9, 1e9, share, func(y float64) float64 {
		sum := 0.0
		for _, s := range list {
			sum += scaleOdds(s, y)
		}
		return sum / float64(n)
	})
	for l := range list {
		list[l] = scaleOdds(list[l], y)
	}
	return list
}

// layersOf returns the processes of n layers for the statistics of a model.
func layersOf(n int, s statistics, base process) ([]layer, error) {
	if s.persistence > 0 {
		base = withPersistence(base, s)
	}
	layers := make([]layer, n)
	shares := profile(n, s.share)
	if s.flat {
		shares = slices.Repeat([]float64{s.share}, n)
	}
	for l, share := range shares {
		var err error
		if layers[l], err = layerOf(base, share, s); err != nil {
			return nil, fmt.Errorf("synth: layer %d: %w", l, err)
		}
	}
	return layers, nil
}

// layerOf scales the process to a layer's active share.
func layerOf(base process, share float64, s statistics) (layer, error) {
	predicted := share*(1-s.falseNegative) + (1-share)*s.falsePositive
	scaled := scaledTo(base, predicted)
	l := layer{classes: scaled.classes(), hit: share * (1 - s.falseNegative) / predicted}
	overlooked := 0.0 // share of neurons in topic and not predicted
	for _, c := range l.classes {
		overlooked += c.share * c.inTopic * (1 - c.rate)
	}
	l.missed = share * s.falseNegative / overlooked
	if !(l.hit <= 1 && l.missed <= 1) {
		return layer{}, fmt.Errorf("an active share of %.4g %% is too large for the process; "+
			"use a smaller one", 100*share)
	}
	return l, nil
}

// scaledTo returns the process with its odds scaled to the given share of predicted neurons.
func scaledTo(p process, predicted float64) process {
	return p.scaled(bisect(1e-9, 1e9, predicted, func(y float64) float64 {
		l := layer{classes: p.scaled(y).classes()}
		return l.predictedSAgg(1)
	}))
}

// withPersistence changes the size of the core until the published share of predicted neurons, at
// the mean share, was also predicted at the previous token. A larger core means more persistence.
func withPersistence(p process, s statistics) process {
	predicted := s.share*(1-s.falseNegative) + (1-s.share)*s.falsePositive
	resized := func(y float64) process {
		p.core = y / (1 + y)
		return scaledTo(p, predicted)
	}
	return resized(bisect(1e-6, 1e6, s.persistence, func(y float64) float64 {
		l := layer{classes: resized(y).classes()}
		one := l.predictedSAgg(1)
		return 1 - (l.predictedSAgg(2)-one)/one
	}))
}

// MaxWindow is the longest window of Expect, in tokens.
const MaxWindow = 64

// Expected holds the expected averages of the process, from its closed form. Shares are fractions
// of the units of a layer.
type Expected struct {
	ActiveShare    []float64 // by layer
	PredictedShare []float64 // by layer
	ActiveSAgg     []float64 // mean over layers of s_agg(k), true masks, index k = 0…MaxWindow
	PredictedSAgg  []float64 // the same of predicted masks
}

// expect evaluates the closed form.
func expect(layers []layer) *Expected {
	e := &Expected{ActiveSAgg: make([]float64, MaxWindow+1), PredictedSAgg: make([]float64,
		MaxWindow+1)}
	n := float64(len(layers))
	for i := range layers {
		l := &layers[i]
		e.ActiveShare = append(e.ActiveShare, l.trueSAgg(1))
		e.PredictedShare = append(e.PredictedShare, l.predictedSAgg(1))
		for k := 1; k <= MaxWindow; k++ {
			e.ActiveSAgg[k] += l.trueSAgg(k) / n
			e.PredictedSAgg[k] += l.predictedSAgg(k) / n
		}
	}
	return e
}

// round32 rounds a probability to a multiple of 2⁻³² and returns it in units of 2⁻⁶⁴. Rounding
// removes differences in the last bits of math.Exp between processors, so that the same seed gives
// the same bytes everywhere.
func round32(p float64) uint64 {
	switch v := math.Round(p * (1 << 32)); {
	case v <= 0:
		return 0
	case v >= 1<<32:
		return math.MaxUint64
	default:
		return uint64(v) << 32
	}
}
