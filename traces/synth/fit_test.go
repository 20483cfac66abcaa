package synth

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/optimize"
)

// target returns a row of targets.csv for the reference model as a fraction of 1.
func target(t *testing.T, quantity, layer string) float64 {
	t.Helper()
	list, err := Targets(reference)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range list {
		if row.Quantity == quantity && row.Layer == layer {
			return row.Percent / 100
		}
	}
	t.Fatalf("no %s of layer %s in targets.csv", quantity, layer)
	return 0
}

// curve is the mean of predicted s_agg(k) over the reference model's layers, with the given
// process.
func curve(t *testing.T, p process) func(k int) float64 {
	t.Helper()
	s, err := statisticsOf(reference, 0)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := layersOf(referenceLayers, s, p)
	if err != nil {
		t.Fatal(err)
	}
	return func(k int) float64 {
		sum := 0.0
		for i := range layers {
			sum += layers[i].predictedSAgg(k)
		}
		return sum / referenceLayers
	}
}

// TestFittedParameters repeats the fit of core, rate and dwell (topic follows from the predicted
// share) and compares the committed parameters with it.
func TestFittedParameters(t *testing.T) {
	s5, d4, tail := target(t, "predicted_s_agg_5", "mean"), target(t, "predicted_delta_4", "mean"),
		target(t, "delta_29_of_delta_4", "mean")
	share := target(t, "active_share", "mean")
	predicted := share*(1-target(t, "false_negative", "mean")) + (1-share)*target(t,
		"false_positive", "mean")
	build := func(x []float64) process {
		p := fitted()
		p.core, p.rate, p.dwell = math.Exp(x[0]), math.Exp(x[1]), math.Exp(x[2])
		p.topic = bisect(1e-9, 1-1e-9, predicted, func(y float64) float64 {
			p.topic = y
			l := layer{classes: p.classes()}
			return l.predictedSAgg(1)
		})
		return p
	}
	loss := func(x []float64) float64 {
		s := curve(t, build(x))
		sum := 0.0
		for _, ratio := range []float64{s(5) / s5, (s(5) - s(4)) / d4, (s(30) - s(29)) /
			(s(5) - s(4)) / tail} {
			sum += (ratio - 1) * (ratio - 1)
		}
		return sum
	}
	start := fitted()
	r, err := optimize.Minimize(optimize.Problem{Func: loss},
		[]float64{math.Log(start.core), math.Log(start.rate), math.Log(start.dwell)},
		&optimize.Settings{FuncEvaluations: 150}, &optimize.NelderMead{})
	if err != nil {
		t.Fatal(err)
	}
	best := build(r.X)
	t.Logf("fit: %+v, loss %.3g", best, r.F)
	for _, c := range []struct {
		name      string
		got, want float64
	}{{"core", start.core, best.core}, {"topic", start.topic, best.topic}, {"rate", start.rate,
		best.rate}, {"dwell", start.dwell, best.dwell}} {
		if math.Abs(c.got/c.want-1) > 5e-3 {
			t.Errorf("%s: committed %.6g, the fit gives %.6g", c.name, c.got, c.want)
		}
	}
}
