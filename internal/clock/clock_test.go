package clock

import (
	"strings"
	"testing"
	"time"

	"github.com/windrow-sim/windrow/internal/units"
)

// TestJumps: what the wall clock does beside five seconds of the monotonic one.
func TestJumps(t *testing.T) {
	for _, c := range []struct {
		wall []time.Duration // between looks
		want units.Nanos
	}{
		{[]time.Duration{5 * time.Second, 5 * time.Second}, 0},
		{[]time.Duration{4 * time.Second, 6 * time.Second}, 0}, // corrected, not set
		{[]time.Duration{8*time.Hour + 5*time.Second, 5 * time.Second}, 8 * 3600 * units.Second},
		{[]time.Duration{5 * time.Second, -time.Hour + 5*time.Second}, -3600 * units.Second},
		// There and back again: the sum says nothing.
		{[]time.Duration{time.Hour, -time.Hour + 10*time.Second}, 3595 * units.Second},
		{[]time.Duration{6*time.Second + 1, 5 * time.Second}, units.Second + 1},
	} {
		mono, wall := units.Nanos(0), time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)
		w := NewWatch(func() (units.Nanos, time.Time) { return mono, wall })
		for _, by := range c.wall {
			mono, wall = mono+5*units.Second, wall.Add(by)
			w.Look()
		}
		if w.Jump() != c.want {
			t.Errorf("%v: a jump of %v, want %v", c.wall, w.Jump(), c.want)
		}
		if why := Why(w.Jump()); (why == "") != (c.want == 0) ||
			c.want != 0 && !strings.Contains(why, "slept or its clock was set") {
			t.Errorf("%v: %q", c.wall, why)
		}
	}
}

// TestSystem: the clocks of this machine agree, and a time.Time's monotonic part does not hide the
// wall clock's.
func TestSystem(t *testing.T) {
	read := System()
	w := NewWatch(read)
	w.Look()
	a, _ := read()
	b, wall := read()
	if a < 0 || b < a || w.Jump() != 0 {
		t.Fatalf("clocks at %v and %v, a jump of %v", a, b, w.Jump())
	}
	mono := b
	ahead := NewWatch(func() (units.Nanos, time.Time) { return mono, wall })
	mono += 9 * units.Second
	ahead.Look()
	if ahead.Jump() != -9*units.Second {
		t.Fatalf("a wall clock that stood still: %v", ahead.Jump())
	}
}
