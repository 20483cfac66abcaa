package flashio

import (
	"time"

	"github.com/windrow-sim/windrow/internal/units"
)

// timer is a Reader that can measure single reads.
type timer interface {
	TimeReads(into []units.Nanos) bool
}

// TimeReads makes the engine below r measure single reads. From the next ReadBatch on, into[i]
// receives the time of request i, from its start by the thread (or the ring) until its completion
// was seen. Requests beyond the end of into are not timed, the times of a failed batch are
// undefined, and an empty request takes no time. nil stops the measurement. The result is false,
// and into stays untouched, when the engine cannot measure. Readers of other packages take part
// with a method of this name.
//
// A ring looks for completions an eighth of its depth at a time, so its times include the wait
// until it looked. Delays injected by WithFaults are not included: they come before the batch.
func TimeReads(r Reader, into []units.Nanos) bool {
	inner, ok := find[timer](r)
	return ok && inner.TimeReads(into)
}

// stopwatch times the reads of an engine that makes one read at a time in each thread.
type stopwatch struct {
	into []units.Nanos
	now  func() time.Time // a seam for tests; nil = time.Now
}

// TimeReads makes a reader with a stopwatch a timer.
func (s *stopwatch) TimeReads(into []units.Nanos) bool {
	s.into = into
	return true
}

// start returns the start time of read i, if it is timed.
func (s *stopwatch) start(i int) (at time.Time) {
	if i < len(s.into) {
		at = s.clock()
	}
	return at
}

// stop records the time of read i, if it is timed.
func (s *stopwatch) stop(i int, start time.Time) {
	if i < len(s.into) {
		s.into[i] = units.Nanos(s.clock().Sub(start))
	}
}

func (s *stopwatch) clock() time.Time {
	if s.now == nil {
		return time.Now()
	}
	return s.now()
}
