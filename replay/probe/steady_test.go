package probe

import (
	"math"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
)

func TestSteadyFrom(t *testing.T) {
	tests := []struct {
		what  string
		times []units.Nanos
		from  int
		ok    bool
	}{
		{"nothing", nil, 0, false},
		{"two batches", []units.Nanos{100, 100}, 0, false},
		{"three alike", []units.Nanos{100, 101, 99}, 0, true},
		{"all alike", []units.Nanos{100, 101, 99, 100, 102, 98, 100, 101}, 0, true},
		{"slow at first", []units.Nanos{300, 180, 101, 100, 99, 100, 101, 100}, 2, true},
		{"ever slower", []units.Nanos{100, 104, 108, 112, 116, 120, 124, 128}, 0, false},
		{"to and fro", []units.Nanos{100, 200, 100, 200, 100, 200, 100, 200}, 0, false},
		{"one hiccup in ten", []units.Nanos{100, 101, 99, 100, 160, 102, 98, 100, 101, 100}, 0,
			true},
		{"calm at the very end only", []units.Nanos{100, 150, 200, 250, 300, 350, 100, 100, 100}, 0,
			false},
	}
	for _, tt := range tests {
		if from, ok := steadyFrom(tt.times); from != tt.from || ok != tt.ok {
			t.Errorf("%s: from %d, %v; want %d, %v", tt.what, from, ok, tt.from, tt.ok)
		}
	}
}

// TestInterval: of 1, 2, 3, 4, 5 the standard error is √2.5/√5 and Student's factor for four
// degrees of freedom 2.776.
func TestInterval(t *testing.T) {
	mean, half := interval([]units.Nanos{1, 2, 3, 4, 5})
	if want := 2.776 * math.Sqrt(0.5); mean != 3 || math.Abs(half-want) > 0.001 {
		t.Errorf("%v ± %v, want 3 ± %v", mean, half, want)
	}
	if _, half := interval([]units.Nanos{7}); !math.IsInf(half, 1) {
		t.Errorf("one batch has a half-width of %v", half)
	}
}

func TestSpreadOf(t *testing.T) {
	var times []units.Nanos
	for i := range units.Nanos(101) {
		times = append(times, 950+i) // quartiles 50 apart around 1000
	}
	if got, want := spreadOf(times), 1.645/1.349*50/1000; math.Abs(got-want) > 1e-9 {
		t.Errorf("spread %v, want %v", got, want)
	}
	if got := spreadOf(times[:4]); !math.IsNaN(got) {
		t.Errorf("four times have a spread of %v", got)
	}
}
