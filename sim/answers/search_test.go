package answers

import (
	"errors"
	"math"
	"testing"
)

func TestLeastFindsTheStep(t *testing.T) {
	for _, at := range []float64{0.01, 0.3, 1, 7.5, 99} {
		calls := 0
		x, found, err := least(0.01, 100, 0.001, func(x float64) (bool, error) {
			calls++
			return x >= at, nil
		})
		if err != nil || !found || x < at || x > at*1.001 {
			t.Errorf("step at %g: %g, %v, %v; want it to a thousandth, and enough", at, x, found,
				err)
		}
		if most := 2 + int(math.Ceil(math.Log2(math.Log(1e4)/math.Log(1.001)))); calls > most {
			t.Errorf("step at %g: %d evaluations, bisection needs %d", at, calls, most)
		}
	}
	if _, found, err := least(1, 10, 0.1, func(float64) (bool, error) {
		return false,
			nil
	}); found || err != nil {
		t.Errorf("never enough: found %v, %v", found, err)
	}
}

func TestLeastIntIsExact(t *testing.T) {
	for at := 0; at <= 40; at++ {
		n, found, err := leastInt(0, 40, func(n int) (bool, error) { return n >= at, nil })
		if err != nil || !found || n != at {
			t.Errorf("step at %d: %d, %v, %v", at, n, found, err)
		}
	}
	if _, found, _ := leastInt(0, 3, func(int) (bool, error) { return false, nil }); found {
		t.Error("never enough: found")
	}
}

func TestFirstCrossingIsTheFirst(t *testing.T) {
	// Above 0 in (0.3, 0.5) and again from 0.8: a window's reads rise and fall like that.
	f := func(x float64) (float64, error) { return -(x - 0.3) * (x - 0.5) * (0.8 - x), nil }
	x, found, err := firstCrossing(1, 20, 1e-6, f)
	if err != nil || !found || math.Abs(x-0.3) > 2e-6 {
		t.Errorf("%g, %v, %v; want 0.3", x, found, err)
	}
	if _, found, _ := firstCrossing(0.25, 20, 1e-6, f); found {
		t.Error("a crossing where there is none")
	}
}

func TestSearchesHandErrorsOn(t *testing.T) {
	broken := errors.New("broken")
	_, _, a := least(1, 2, 0.1, func(float64) (bool, error) { return false, broken })
	_, _, b := leastInt(1, 2, func(int) (bool, error) { return false, broken })
	_, _, c := firstCrossing(1, 2, 0.1, func(float64) (float64, error) { return 0, broken })
	for i, err := range []error{a, b, c} {
		if !errors.Is(err, broken) {
			t.Errorf("search %d: %v", i, err)
		}
	}
}
