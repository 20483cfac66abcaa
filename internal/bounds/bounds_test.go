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

// The first number outside of its range is the one that is named; missing ones are in every range.
func TestFirst(t *testing.T) {
	r, eleven := Range[int]{Least: 0, Most: 9}, 11
	var f First
	Want(&f, "a", 5, r)
	WantIf(&f, "b", nil, r)
	if f != (First{}) {
		t.Errorf("%+v for numbers in their ranges", f)
	}
	WantIf(&f, "c", &eleven, r)
	Want(&f, "d", -1, r)
	if want := (First{"c", 11, "is not from 0 to 9"}); f != want {
		t.Errorf("%+v, want %+v", f, want)
	}
}
