package answers

import "math"

// least returns the least x in [lo, hi] at which enough is true, up to a factor of 1+tolerance.
// enough must stay true above it, and 0 < lo < hi. found is false if hi is not enough. The result
// is lo if lo is enough.
func least(lo, hi, tolerance float64, enough func(x float64) (bool, error)) (x float64, found bool,
	err error) {
	for _, end := range []float64{lo, hi} {
		ok, err := enough(end)
		if err != nil || ok && end == lo {
			return end, ok, err
		}
		found = ok
	}
	for found && hi/lo > 1+tolerance {
		middle := math.Sqrt(lo * hi)
		ok, err := enough(middle)
		if err != nil {
			return 0, false, err
		}
		if ok {
			hi = middle
		} else {
			lo = middle
		}
	}
	return hi, found, nil
}

// leastInt is least for whole numbers, and exact.
func leastInt(lo, hi int, enough func(n int) (bool, error)) (n int, found bool, err error) {
	ok, err := enough(hi)
	if err != nil || !ok {
		return hi, false, err
	}
	for lo < hi {
		middle := lo + (hi-lo)/2
		if ok, err = enough(middle); err != nil {
			return 0, false, err
		}
		if ok {
			hi = middle
		} else {
			lo = middle + 1
		}
	}
	return hi, true, nil
}

// firstCrossing returns the first x in (0, hi] at which f rises above 0, within tolerance. f need
// not be monotone: it is evaluated at the ends of equal steps. Two crossings inside one step are
// missed. found is false if f is above 0 at no end of a step.
func firstCrossing(hi float64, steps int, tolerance float64, f func(x float64) (float64,
	error)) (x float64, found bool, err error) {
	low := 0.0
	for i := 1; i <= steps; i++ {
		high := hi * float64(i) / float64(steps)
		v, err := f(high)
		if err != nil {
			return 0, false, err
		}
		if v <= 0 {
			low = high
			continue
		}
		for high-low > tolerance {
			middle := (low + high) / 2
			if v, err = f(middle); err != nil {
				return 0, false, err
			}
			if v > 0 {
				high = middle
			} else {
				low = middle
			}
		}
		return high, true, nil
	}
	return hi, false, nil
}
