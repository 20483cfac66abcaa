package probe

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/windrow-sim/windrow/internal/units"
)

// The steady-state criterion, after that of fio (steadystate, of SNIA's Performance Test
// Specification): over a window of steadyBatches (the last ones) or fewestBatches (all) or more the
// line through the batch times rises or falls by less than steadySlope of their mean, and no more
// than one in eight is further than steadySpread from it. What falls outside by itself is a hiccup;
// a device whose every batch is another has no rate.
const (
	steadyBatches = 5
	fewestBatches = 3
	steadySlope   = 0.05
	steadySpread  = 0.20
	// sureEnough is the confidence interval, relative, at which a steady cell needs no more
	// batches, once it has sureBatches.
	sureEnough  = 0.01
	sureBatches = 8
)

// steadyFrom returns where the longest steady end of the batches begins. It is at most half of them
// from the start, so that a device that just calmed down is not taken for a calm one.
func steadyFrom(times []units.Nanos) (from int, ok bool) {
	if len(times) < fewestBatches {
		return 0, false
	}
	for from = 0; from == 0 || from <= len(times)/2 && len(times)-from >= steadyBatches; from++ {
		if steady(times[from:]) {
			return from, true
		}
	}
	return 0, false
}

func steady(times []units.Nanos) bool {
	x, y := make([]float64, len(times)), make([]float64, len(times))
	for i, t := range times {
		x[i], y[i] = float64(i), float64(t)
	}
	mean := stat.Mean(y, nil)
	_, slope := stat.LinearRegression(x, y, nil, false)
	if math.Abs(slope)*float64(len(times)-1) > steadySlope*mean {
		return false
	}
	far := 0
	for _, v := range y {
		if math.Abs(v-mean) > steadySpread*mean {
			far++
		}
	}
	return far <= len(times)/8
}

// interval returns the mean of batch times and the half-width of its 95 % confidence interval by
// Student's t; the half-width is +Inf with fewer than two batches. Batches follow each other, so
// that a device with moods longer than a batch has a wider one than this says.
func interval(times []units.Nanos) (mean, half float64) {
	y := make([]float64, len(times))
	for i, t := range times {
		y[i] = float64(t)
	}
	mean, half = stat.Mean(y, nil), math.Inf(1)
	if n := float64(len(y)); n >= 2 {
		t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}
		half = t.Quantile(0.975) * stat.StdErr(stat.StdDev(y, nil), n)
	}
	return mean, half
}

// settled says that more batches would tell nothing new.
func settled(times []units.Nanos) bool {
	if len(times) < sureBatches {
		return false
	}
	from, ok := steadyFrom(times)
	if !ok {
		return false
	}
	mean, half := interval(times[from:])
	return half < sureEnough*mean
}
