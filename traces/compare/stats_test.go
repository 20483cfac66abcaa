package compare

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/windrow-sim/windrow/internal/rng"
)

func TestPercentileByHand(t *testing.T) {
	v := []float64{40, 10, 30, 20} // numpy.percentile([10, 20, 30, 40], …)
	for p, want := range map[float64]float64{0: 10, 25: 17.5, 50: 25, 90: 37, 99: 39.7, 100: 40} {
		near(t, "percentile", Percentile(v, p), want)
	}
	if !slices.Equal(v, []float64{40, 10, 30, 20}) {
		t.Error("the values were sorted in place")
	}
	near(t, "one value", Percentile([]float64{7}, 99), 7)
	for _, bad := range []float64{Percentile(nil, 50), Percentile(v, -1), Percentile(v, 101),
		Percentile(v, math.NaN())} {
		if !math.IsNaN(bad) {
			t.Errorf("undefined percentile is %v", bad)
		}
	}
}

func TestPercentileIsMonotoneAndWithinRange(t *testing.T) {
	g := rng.Stream(9, "values")
	for range 100 {
		v := make([]float64, 1+g.IntN(50))
		for i := range v {
			v[i] = float64(g.IntN(1000))
		}
		last := slices.Min(v)
		for p := range 101 {
			x := Percentile(v, float64(p))
			if x < last {
				t.Fatalf("P%d = %v is below P%d = %v of %v", p, x, p-1, last, v)
			}
			last = x
		}
		if last != slices.Max(v) {
			t.Fatalf("P100 = %v of %v", last, v)
		}
	}
}

func TestPearsonAgainstGonum(t *testing.T) {
	g := rng.Stream(4, "values")
	for range 50 {
		x, y := make([]float64, 20), make([]float64, 20)
		for i := range x {
			x[i] = g.Float64()
			y[i] = x[i] + g.Float64()
		}
		near(t, "r", Pearson(x, y), stat.Correlation(x, y, nil))
	}
	if r := Pearson([]float64{1, 2}, []float64{1, 2, 3}); !math.IsNaN(r) {
		t.Errorf("r of unequal lengths is %v", r)
	}
}

func TestRankOrder(t *testing.T) {
	for _, tc := range []struct {
		name string
		s, m []float64
		want float64
	}{
		{"same order, other scale", []float64{1, 2, 30, 400}, []float64{5, 6, 7, 8}, 1},
		{"reversed", []float64{1, 2, 3}, []float64{9, 5, 1}, -1},
		{"one swap of four: 1 − 6·2/(4·15)", []float64{1, 2, 3, 4}, []float64{1, 3, 2, 4}, 0.8},
		{"tie: ranks 1, 2.5, 2.5 against 1, 2, 3", []float64{1, 2, 2}, []float64{1, 2, 3},
			1.5 / math.Sqrt(1.5*2)},
	} {
		near(t, tc.name, RankOrder(tc.s, tc.m), tc.want)
		near(t, tc.name+", swapped", RankOrder(tc.m, tc.s), tc.want)
	}
	for _, bad := range [][2][]float64{
		{{1, 2}, {1}}, {nil, nil}, {{1}, {1}}, {{2, 2}, {1, 2}}, {{1, math.NaN()}, {1, 2}},
	} {
		if r := RankOrder(bad[0], bad[1]); !math.IsNaN(r) {
			t.Errorf("RankOrder(%v, %v) = %v, want NaN", bad[0], bad[1], r)
		}
	}
}

func TestMAPELeavesOutWhatTookNoTime(t *testing.T) {
	got, n := mape([]float64{110, 0, 5}, []float64{100, 0, 0})
	near(t, "mape", float64(got), 10)
	if n != 1 {
		t.Errorf("%d tokens, want 1", n)
	}
	if got, n := mape([]float64{0, 0}, []float64{0, 0}); got != 0 || n != 0 {
		t.Errorf("nothing on both sides: %v over %d", got, n)
	}
}

func TestStatText(t *testing.T) {
	for v, want := range map[Stat]string{0: "0", 1.2345: "1.23", -24.56: "-24.6", 1234.5: "1234",
		Stat(math.Inf(1)): "n/a"} {
		if got := v.String(); got != want {
			t.Errorf("%v prints as %q, want %q", float64(v), got, want)
		}
	}
}
