package emulated

import (
	"math"

	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/units"
)

// limit is the token bucket as a virtual schedule (the form of ITU-T I.371, annex A): instead of
// the credit it keeps the time at which the bucket would be full if nothing more passed. Bytes and
// requests have a bucket each, with common intervals.
type limit struct {
	interval        units.Nanos
	base            units.Nanos // some interval begins here
	last            units.Nanos // when the last request passed: later ones do not overtake it
	bytes, requests bucket
}

// bucket is one of the two, in nanoseconds of its own rate.
type bucket struct {
	each float64 // that one byte, or one request, costs; 0 = no limit
	hold float64 // most credit
	full float64 // when it is full again
}

func newLimit(spec flash.Limit) *limit {
	l := &limit{interval: spec.Interval}
	l.bytes.hold, l.requests.hold = float64(spec.Interval), float64(spec.Interval)
	if spec.Rate > 0 {
		l.bytes.each = 1e9 / float64(spec.Rate)
		l.bytes.hold = max(l.bytes.hold, l.bytes.each*float64(spec.Burst))
	}
	if spec.IOPS > 0 {
		l.requests.each = 1e9 / float64(spec.IOPS)
		l.requests.hold = max(l.requests.hold, l.requests.each)
	}
	return l
}

// pass returns when a request of size bytes passes that comes at a time. A request for more than a
// bucket holds passes when it is full, and what comes next waits for the rest. What a bucket cannot
// hold is lost between requests, but not while one waits.
func (l *limit) pass(at units.Nanos, size units.Bytes) units.Nanos {
	at = max(at, l.last)
	credited := l.begun(at)
	if l.bytes.full <= float64(credited) && l.requests.full <= float64(credited) {
		l.base, credited = at, at // a full bucket starts its intervals when it is used
	}
	l.bytes.full = max(l.bytes.full, float64(credited))
	l.requests.full = max(l.requests.full, float64(credited))
	bytes, request := l.bytes.each*float64(size), l.requests.each
	if needed := max(l.bytes.enough(bytes), l.requests.enough(request)); needed > float64(
		credited) {
		at = l.first(needed)
	}
	l.bytes.full += bytes
	l.requests.full += request
	l.last = at
	return at
}

// begun is the beginning of the interval of a time: credit has come up to it.
func (l *limit) begun(at units.Nanos) units.Nanos {
	if l.interval <= 0 {
		return at
	}
	return at - (at-l.base)%l.interval
}

// first is the first beginning of an interval from a time on.
func (l *limit) first(from float64) units.Nanos {
	at := units.Nanos(math.Ceil(from))
	if l.interval > 0 {
		at = l.begun(at + l.interval - 1)
	}
	return at
}

// enough is up to when credit must have come for a request of a cost.
func (b *bucket) enough(cost float64) float64 { return b.full - max(b.hold-cost, 0) }
