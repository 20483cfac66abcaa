package bounds

import (
	"math"
	"testing"
)

// Both ends are in a range, NaN is in none, and a refusal names the ends and the reason.
func TestRange(t *testing.T) {
	r := Range[float64]{Least: 0, Most: 2, Why: "more is noise"}
	for v, in := range map[float64]bool{0: true, 2: true, 1: true, -0.1: false, 2.1: false,
		math.Inf(1): false, math.Inf(-1): false} {
		if r.Has(v) != in || (r.Refuse(v) == "") != in {
			t.Errorf("%g in 0 to 2: %t, %q", v, r.Has(v), r.Refuse(v))
		}
	}
	if r.Has(math.NaN()) {
		t.Error("NaN is in a range")
	}
	if got, want := r.Refuse(3), "is not from 0 to 2: more is noise"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := (Range[int]{1, 9, ""}).Refuse(0), "is not from 1 to 9"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
