package predictor

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/windrow-sim/windrow/internal/mask"
)

// observed are values before the sigmoid, to try thresholds on.
type observed struct {
	z      []float32
	active []bool
	mags   []float64
}

func observe(n int) (*observed, *curve) {
	random := rand.New(rand.NewPCG(6, 6))
	o, c := &observed{}, newCurve()
	for range n {
		z, active := float32(random.NormFloat64()*8), random.IntN(5) == 0
		if active {
			z += 6
		}
		switch random.IntN(20) { // edges, values near them and far out
		case 0:
			z = float32(math.Round(float64(z)*edgesPerUnit) / edgesPerUnit)
		case 1:
			z = math.Nextafter32(float32(math.Round(float64(z))), -100)
		case 2:
			z *= 100
		}
		o.z, o.active, o.mags = append(o.z, z), append(o.active, active), append(o.mags, 0)
		mask, mags := mask.New(1), []float32(nil)
		if active {
			mask[0] = 1
			mags = []float32{random.Float32() * 4}
			o.mags[len(o.mags)-1] = float64(mags[0])
		}
		c.add([]float32{z}, mask, mags)
	}
	return o, c
}

// missed returns the share of false negatives of a threshold.
func (o *observed) missed(cut float32) float64 {
	missed, all := 0, 0
	for i, z := range o.z {
		if o.active[i] {
			all++
			if z < cut {
				missed++
			}
		}
	}
	return float64(missed) / float64(all)
}

func TestCutMeetsTarget(t *testing.T) {
	o, c := observe(3000)
	for _, target := range []float64{0, 0.001, 0.01, 0.05, 0.2, 0.9} {
		cut := c.forTarget(target)
		if got := o.missed(cut); got > target {
			t.Errorf("target %g: the cut %g misses %g", target, cut, got)
		}
		for i := range edges {
			if e := edge(i); e > cut && o.missed(e) <= target {
				t.Fatalf("target %g: the cut is %g, but %g keeps it too", target, cut, e)
			}
		}
	}
	if cut := newCurve().forTarget(0.05); cut != 0 {
		t.Errorf("without active elements the cut is %g, want 0", cut)
	}
}

func TestCutOfLeastCost(t *testing.T) {
	o, c := observe(2000)
	mean, n := 0.0, 0
	for _, m := range o.mags {
		if m > 0 {
			mean += m
			n++
		}
	}
	mean /= float64(n)
	of := func(cost *Cost, cut float32) (sum float64) {
		for i, z := range o.z {
			switch {
			case o.active[i] && z < cut:
				sum += float64(cost.FalseNegative) * o.mags[i] / mean
			case !o.active[i] && z >= cut:
				sum += float64(cost.FalsePositive)
			}
		}
		return sum
	}
	last := float32(math.Inf(1))
	for _, cost := range []*Cost{{FalsePositive: 1000, FalseNegative: 10}, {FalsePositive: 100,
		FalseNegative: 100}, {FalsePositive: 10, FalseNegative: 1000}} {
		cut := c.forCost(cost)
		least := math.Inf(1)
		for i := range edges {
			least = min(least, of(cost, edge(i)))
		}
		if got := of(cost, cut); got > least*(1+1e-9) {
			t.Errorf("%v: the cut %g costs %g, the best %g", cost, cut, got, least)
		}
		if cut > last {
			t.Errorf("%v: the cut rose from %g to %g although a false negative became dearer", cost,
				last, cut)
		}
		last = cut
	}
}

func TestBinIsExact(t *testing.T) {
	for i := 1; i < edges; i++ {
		e := edge(i)
		if bin(e) != i || bin(math.Nextafter32(e, -1000)) != i-1 {
			t.Fatalf("edge %g is in bin %d, the number below in %d, want %d and %d", e, bin(e),
				bin(math.Nextafter32(e, -1000)), i, i-1)
		}
	}
	if nan := float32(math.NaN()); bin(nan) != edges-1 {
		t.Error("NaN is not in the bin that is predicted")
	}
}
