// Package bounds holds ranges of numbers in inputs, and the words that refuse a number outside of
// one. A range is checked before a number becomes memory, time or a divisor. It is a leaf.
package bounds

import (
	"cmp"
	"fmt"
	"strconv"
)

// Range is the numbers from Least to Most, both included. NaN is in no range.
type Range[T cmp.Ordered] struct {
	Least, Most T
	Why         string // of the ends, as a clause; may be empty
}

// Has reports whether v is in the range.
func (r Range[T]) Has(v T) bool { return v >= r.Least && v <= r.Most }

// String names the range: "1 to 65536: the drives of a rack have fewer dies".
func (r Range[T]) String() string {
	text := fmt.Sprintf("%v to %v", r.Least, r.Most)
	if r.Why != "" {
		text += ": " + r.Why
	}
	return text
}

// Refuse is the predicate of a refusal: "is not from 1 to 65536: …". It is empty for a v in the
// range.
func (r Range[T]) Refuse(v T) string {
	if r.Has(v) {
		return ""
	}
	return "is not from " + r.String()
}

// Parse reads a number of a range. Its error is the text in quotes and the predicate.
func Parse(text string, r Range[float64]) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !r.Has(v) {
		return 0, fmt.Errorf("%q %s", text, cmp.Or(r.Refuse(v), "is not a number"))
	}
	return v, nil
}
