package compare

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
)

// Stat is a statistic that may be undefined, such as the relative error of a time measured as zero.
// Undefined is NaN in Go, null in JSON and "n/a" in text.
type Stat float64

// Defined reports whether s has a value.
func (s Stat) Defined() bool { return !math.IsNaN(float64(s)) && !math.IsInf(float64(s), 0) }

// String formats s with three significant digits, and with all digits of its whole part.
func (s Stat) String() string {
	switch v := float64(s); {
	case !s.Defined():
		return "n/a"
	case math.Abs(v) >= 1000:
		return strconv.FormatFloat(v, 'f', 0, 64)
	default:
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
}

// MarshalJSON implements json.Marshaler.
func (s Stat) MarshalJSON() ([]byte, error) {
	if !s.Defined() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(s))
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Stat) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*s = Stat(math.NaN())
		return nil
	}
	return json.Unmarshal(b, (*float64)(s))
}

// relative returns the signed error of s in percent of m. It is 0 if both are equal, also if both
// are 0, and undefined if only m is 0.
func relative(s, m float64) Stat {
	switch {
	case s == m:
		return 0
	case m == 0:
		return Stat(math.NaN())
	}
	return Stat(100 * (s - m) / m)
}

// mape returns the mean absolute percentage error over the entries with m ≠ 0, and their number.
// Entries that are 0 in both agree but have no percentage. Without any entry the error is 0 if all
// agree, else undefined.
func mape(s, m []float64) (Stat, int) {
	var sum float64
	n, wrong := 0, false
	for i := range m {
		if m[i] == 0 {
			wrong = wrong || s[i] != 0
			continue
		}
		sum += math.Abs(s[i]-m[i]) / m[i]
		n++
	}
	switch {
	case n > 0:
		return Stat(100 * sum / float64(n)), n
	case wrong:
		return Stat(math.NaN()), 0
	}
	return 0, 0
}

// mean returns NaN for no values.
func mean(x []float64) float64 {
	var sum float64
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// Percentile returns the p-th percentile, 0 ≤ p ≤ 100, by linear interpolation between the order
// statistics at position p/100·(n−1). This is the default of numpy and pandas ("type 7" of Hyndman
// and Fan 1996), so that a notebook finds the same number. It is NaN for no values or for a p out
// of range. The values need not be sorted and are not changed.
func Percentile(values []float64, p float64) float64 {
	if len(values) == 0 || !(p >= 0 && p <= 100) {
		return math.NaN()
	}
	v := slices.Clone(values)
	slices.Sort(v)
	at := p / 100 * float64(len(v)-1)
	i := int(at)
	if i+1 >= len(v) {
		return v[len(v)-1]
	}
	return v[i] + (at-float64(i))*(v[i+1]-v[i])
}

// Pearson returns the correlation coefficient of x and y. It is NaN if the lengths differ or if
// either does not vary.
func Pearson(x, y []float64) float64 {
	if len(x) != len(y) || len(x) == 0 {
		return math.NaN()
	}
	mx, my := mean(x), mean(y)
	var xx, yy, xy float64
	for i := range x {
		dx, dy := x[i]-mx, y[i]-my
		xx += dx * dx
		yy += dy * dy
		xy += dx * dy
	}
	if xx == 0 || yy == 0 {
		return math.NaN()
	}
	// Two square roots, because the product may overflow. Rounding may exceed the range by an ulp.
	return max(-1, min(1, xy/math.Sqrt(xx)/math.Sqrt(yy)))
}

// RankOrder returns how well a simulator orders configurations: Spearman's ρ of simulated and
// measured rates, one entry per configuration. 1 is the same order, −1 the reverse. Equal rates
// share their mean rank. It is NaN if the lengths differ, a rate is NaN, or all rates of one side
// are equal.
func RankOrder(simRates, measuredRates []float64) float64 {
	if slices.ContainsFunc(simRates, math.IsNaN) || slices.ContainsFunc(measuredRates, math.IsNaN) {
		return math.NaN()
	}
	return Pearson(ranks(simRates), ranks(measuredRates))
}

// ranks returns the rank of each value, from 1. Ties get the mean of their ranks.
func ranks(v []float64) []float64 {
	order := make([]int, len(v))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(v[a], v[b]) })
	out := make([]float64, len(v))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && v[order[j]] == v[order[i]] {
			j++
		}
		for _, k := range order[i:j] {
			out[k] = float64(i+1+j) / 2
		}
		i = j
	}
	return out
}
