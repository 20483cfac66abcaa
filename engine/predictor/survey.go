package predictor

import "math"

// survey has the statistics of a layer's samples before training.
type survey struct {
	samples       int
	count         []int   // (units): samples that each is active in
	share         float64 // active share of all elements
	meanMagnitude float64 // of the active elements; 0 without magnitudes
	// (width): a feature minus mean, times scale, has mean 0 and deviation 1
	mean, scale []float64
}

// surveyOf goes through the samples of b's layer once.
func surveyOf(b *batch, index []int, size int) (*survey, error) {
	units := b.s.Units()
	st := &survey{samples: len(index), count: make([]int, units), mean: make([]float64, b.width),
		scale: make([]float64, b.width)}
	active, seen, magnitude := 0, 0.0, 0.0
	err := chunks(index, size, func(piece []int) error {
		if err := b.load(piece); err != nil {
			return err
		}
		for i := range b.n {
			seen++
			for k, v := range b.feature(i) { // Welford: no sum of squares that loses the difference
				delta := float64(v) - st.mean[k]
				st.mean[k] += delta / seen
				st.scale[k] += delta * (float64(v) - st.mean[k])
			}
			active += b.count[i]
			for u := range b.mask(i).Each {
				st.count[u]++
			}
		}
		for _, m := range b.mags {
			magnitude += float64(m)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	st.share = float64(active) / (float64(len(index)) * float64(units))
	if active > 0 {
		st.meanMagnitude = magnitude / float64(active)
	}
	largest := 0.0
	for k, sum := range st.scale {
		st.scale[k] = math.Sqrt(sum / seen)
		largest = max(largest, st.scale[k])
	}
	for k, deviation := range st.scale {
		st.scale[k] = 0 // a nearly constant feature carries no information
		if deviation > largest*1e-6 {
			st.scale[k] = 1 / deviation
		}
	}
	return st, nil
}

// standardise applies mean and scale to the features of the batch.
func (st *survey) standardise(b *batch) {
	for i := range b.n {
		x := b.feature(i)
		for k, v := range x {
			x[k] = float32((float64(v) - st.mean[k]) * st.scale[k])
		}
	}
}
