package predictor

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
)

// TestEvaluateByHand scores tiny's layers on two samples whose masks and activations are known.
func TestEvaluateByHand(t *testing.T) {
	m := newPlain(3, 3, 2, 3)
	// Layer 0 predicts unit 2 for (0, 0) and units 0, 2 for (1.25, 1): see TestPredictByHand.
	// Sample 0 is outside the range.
	copy(m.feature(2, 0), []float32{1.25, 1})
	copy(m.value(1, 0), []float32{0, 3, 1}) // unit 1 is missed, unit 2 found
	copy(m.value(2, 0), []float32{0, 0, 4}) // unit 0 is spurious
	copy(m.value(2, 1), []float32{0, 7, 0})
	scores, err := Evaluate(t.Context(), tiny(t), m, 1, 3, 2)
	if err != nil {
		t.Fatal(err)
	}
	s := scores[0]
	sp := func(z float64) float64 { return math.Log(1 + math.Exp(z)) }
	// Values of sample 1: −1, 0.1, 0.35; of sample 2: 0.25, 0, 0.925. Half the elements are active,
	// so all weights are 1.
	loss := (sp(-1) + sp(-0.1) + sp(-0.35) + sp(0.25) + sp(0) + sp(-0.925)) / 6
	// tiny has 0.1 and 0.3 as float32 biases.
	if math.Abs(s.Loss-loss) > 1e-6 {
		t.Errorf("loss %g, want %g", s.Loss, loss)
	}
	s.Loss = 0
	if want := (Score{Layer: 0, Samples: 2, Elements: 6, Active: 3, Chosen: 3, Missed: 1,
		Spurious: 1, Magnitude: 8, Lost: 3}); s != want {
		t.Errorf("score %+v, want %+v", s, want)
	}
	for name, c := range map[string][2]float64{
		"false negatives": {s.FalseNegatives(), 1. / 3}, "false positives": {s.FalsePositives(),
			1. / 3}, "recall": {s.Recall(), 2. / 3},
		"precision": {s.Precision(), 2. / 3}, "over-prediction": {s.OverPrediction(), 1},
		"active": {s.ActiveShare(), 0.5}, "lost": {s.LostMagnitude(), 3. / 8},
	} {
		if math.Abs(c[0]-c[1]) > 1e-12 {
			t.Errorf("%s: %g, want %g", name, c[0], c[1])
		}
	}
	// Layer 1 has no predictor: all six elements are chosen, one is active.
	if want := (Score{Layer: 1, Samples: 2, Elements: 6, Active: 1, Chosen: 6, Spurious: 5,
		Magnitude: 7}); scores[1] != want {
		t.Errorf("a layer without predictor: %+v, want %+v", scores[1], want)
	}
	if none := (&Score{Elements: 4}); none.Recall() != 1 || none.Precision() != 1 ||
		none.OverPrediction() != 0 || none.LostMagnitude() != 0 {
		t.Errorf("nothing active and nothing predicted: %g, %g, %g, %g", none.Recall(),
			none.Precision(), none.OverPrediction(), none.LostMagnitude())
	}
}

func TestEvaluateRefusals(t *testing.T) {
	p, m := tiny(t), newPlain(3, 3, 2, 3)
	for _, c := range []struct {
		s        Samples
		from, to int
		reason   string
	}{{m, 0, 4, "samples 0 to 4 of 3"}, {m, -1, 2, "samples -1"}, {m, 2, 2, "at least one"},
		{newPlain(3, 2, 2, 3), 0, 1, "the model 2"}} {
		if _, err := Evaluate(t.Context(), p, c.s, c.from, c.to, 0); err == nil ||
			!strings.Contains(err.Error(), c.reason) {
			t.Errorf("samples %d to %d: error %v, want %q", c.from, c.to, err, c.reason)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Evaluate(ctx, p, m, 0, 3, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: error %v", err)
	}
	bad := newPlain(3, 3, 2, 3)
	bad.fail = errors.New("unreadable")
	if _, err := Evaluate(t.Context(), p, bad, 0, 3, 2); !errors.Is(err, bad.fail) {
		t.Errorf("unreadable samples: error %v", err)
	}
}

// TestCalibrate chooses thresholds anew for a predictor that was trained with others.
func TestCalibrate(t *testing.T) {
	m := noisy(300, 2)
	set := small()
	set.Epochs, set.Thresholds = 3, []float64{0.999}
	p, _, _ := train(t, m, Options{Settings: set})
	for _, target := range []float64{0.02, 0.2} {
		q, err := Calibrate(t.Context(), p, m, 100, 300, Settings{TargetFN: target})
		if err != nil {
			t.Fatal(err)
		}
		scores, err := Evaluate(t.Context(), q, m, 100, 300, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range scores {
			if fn := s.FalseNegatives(); fn > target || fn < target/2 {
				t.Errorf("target %g, layer %d: %g false negatives", target, s.Layer, fn)
			}
		}
	}
	if math.Abs(p.Threshold(0)-0.999) > 1e-6 {
		t.Error("the predictor itself has changed")
	}
	if _, err := Calibrate(t.Context(), p, m, 0, 9, Settings{TargetFN: 2}); err == nil {
		t.Error("a target of 2 is accepted")
	}
}
