// Package clock tells when a machine slept, or when its clock was set, while something was
// measured. Durations are measured by the monotonic clock, which on Linux stands still while the
// machine sleeps; the wall clock goes on, and may also be set. Where the two disagree, a
// measurement says nothing about the machine. It is a leaf.
package clock

import (
	"fmt"
	"time"

	"github.com/windrow-sim/windrow/internal/units"
)

// Tolerance is how far the two clocks may disagree between two looks: more than any correction
// that a running clock is given, and less than any sleep.
const Tolerance = units.Second

// Reader reads both clocks of a machine: the time since some moment by the monotonic one, and the
// wall clock's.
type Reader func() (monotonic units.Nanos, wall time.Time)

// System returns the Reader of this machine.
func System() Reader {
	start := time.Now()
	return func() (units.Nanos, time.Time) {
		now := time.Now()
		return units.Nanos(now.Sub(start)), now
	}
}

// Watch compares the clocks from one look to the next.
type Watch struct {
	read Reader
	mono units.Nanos
	wall time.Time
	jump units.Nanos
}

// NewWatch returns a Watch that has looked once.
func NewWatch(read Reader) *Watch {
	w := &Watch{read: read}
	w.mono, w.wall = read()
	return w
}

// Look compares the time since the last look. Look at least as often as the clock may be set to
// and fro.
func (w *Watch) Look() {
	mono, wall := w.read()
	// Round drops the monotonic time that a time.Time carries beside the wall clock's.
	jump := units.Nanos(wall.Round(0).Sub(w.wall.Round(0))) - (mono - w.mono)
	if size(jump) > max(size(w.jump), Tolerance) {
		w.jump = jump
	}
	w.mono, w.wall = mono, wall
}

// Jump is the largest disagreement of the two clocks between two looks: positive if the wall clock
// went ahead, 0 within Tolerance.
func (w *Watch) Jump() units.Nanos { return w.jump }

// Why says what a jump means, as the beginning of a sentence; "" for a jump of 0.
func Why(jump units.Nanos) string {
	if jump == 0 {
		return ""
	}
	return fmt.Sprintf("the machine slept or its clock was set (the wall clock moved %+.1f s "+
		"against the monotonic one)", jump.Seconds())
}

func size(t units.Nanos) units.Nanos { return max(t, -t) }
