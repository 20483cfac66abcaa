// Package des is the discrete-event core of the simulator: a clock in integer nanoseconds, a queue
// with a total order, and first-come-first-served stations.
//
// Events are ordered by (time, class, sequence of scheduling). The class breaks ties between kinds
// of events by their meaning (see Class). The sequence breaks all other ties, so that the order is
// total. Nothing allocates in steady state. The package knows nothing of the simulated system and
// imports only units and refusal.
//
// Start with Kernel. Flash channels, links and cores are Stations.
package des

import (
	"errors"
	"fmt"

	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
)

// Class orders events of the same time.
type Class uint8

// The classes, in order.
const (
	// ClassDone frees resources: a server that becomes free at t can serve an arrival of time t.
	ClassDone Class = iota
	// ClassArrive brings work to a station.
	ClassArrive
	// ClassPlan starts new work, after everything that happens at its time is known.
	ClassPlan
)

// Event is one event. The Handler defines the meaning of Kind and Arg.
type Event struct {
	At   units.Nanos
	key  uint64 // class in the top byte, sequence below
	Kind int32
	Arg  int32
}

func (e *Event) before(f *Event) bool {
	return e.At < f.At || e.At == f.At && e.key < f.key
}

// Handler is called for each event in order. An error stops the run.
type Handler interface {
	Handle(k *Kernel, e Event) error
}

// ErrInvariant marks a broken invariant of the simulator: a bug, not bad input.
var ErrInvariant = errors.New("invariant broken")

// ErrClock marks a simulation that goes on for longer than the clock counts: its device is slower
// than what is asked of it allows.
var ErrClock = refusal.Kind(refusal.ErrConfig, "the simulated time is longer than 73 years; a "+
	"rate or a time of the device has a wrong unit")

// Last is the latest time of an event, 73 years. Two such times add up without overflow.
const Last units.Nanos = 1 << 61

// Kernel is a clock and a queue of pending events. The zero value is ready and stands at time 0.
type Kernel struct {
	now  units.Nanos
	seq  uint64
	heap []Event // binary heap on Event.before
	late bool    // an event was later than Last
}

// Now is the time of the event being handled.
func (k *Kernel) Now() units.Nanos { return k.now }

// Pending is the number of scheduled events.
func (k *Kernel) Pending() int { return len(k.heap) }

// Next returns the time of the first pending event; ok is false when none is pending.
func (k *Kernel) Next() (at units.Nanos, ok bool) {
	if len(k.heap) == 0 {
		return 0, false
	}
	return k.heap[0].At, true
}

// Schedule adds an event at time at. An event before Now is moved to Now, since the clock never
// goes back. After an event later than Last, or at a negative time, which is a sum that overflowed,
// Run returns ErrClock.
func (k *Kernel) Schedule(at units.Nanos, class Class, kind, arg int32) {
	if uint64(at) > uint64(Last) {
		k.late = true
	}
	e := Event{At: max(at, k.now), key: uint64(class)<<56 | k.seq, Kind: kind, Arg: arg}
	k.seq++
	k.heap = append(k.heap, e)
	i := len(k.heap) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !e.before(&k.heap[parent]) {
			break
		}
		k.heap[i] = k.heap[parent]
		i = parent
	}
	k.heap[i] = e
}

// pop removes and returns the first event.
func (k *Kernel) pop() Event {
	first := k.heap[0]
	n := len(k.heap) - 1
	e := k.heap[n]
	k.heap = k.heap[:n]
	i := 0
	for {
		child := 2*i + 1
		if child >= n {
			break
		}
		if child+1 < n && k.heap[child+1].before(&k.heap[child]) {
			child++
		}
		if !k.heap[child].before(&e) {
			break
		}
		k.heap[i] = k.heap[child]
		i = child
	}
	if n > 0 {
		k.heap[i] = e
	}
	return first
}

// Advance moves the clock forward to at when nothing is pending before it.
func (k *Kernel) Advance(at units.Nanos) error {
	if len(k.heap) > 0 && k.heap[0].At < at {
		return fmt.Errorf("des: advance to %v over an event at %v: %w", at, k.heap[0].At,
			ErrInvariant)
	}
	k.now = max(k.now, at)
	return nil
}

// Run handles events until none is pending or the handler returns an error. It returns ErrClock
// when an event is later than Last.
func (k *Kernel) Run(h Handler) error {
	for len(k.heap) > 0 {
		if k.late {
			return fmt.Errorf("des: %w", ErrClock)
		}
		e := k.pop()
		k.now = e.At
		if err := h.Handle(k, e); err != nil {
			return err
		}
	}
	return nil
}

// Station is a first-come-first-served station of one or more equal servers. Arrivals must be in
// order of time: a completion time per server is then the whole state. The zero value has no
// servers; use NewStation.
type Station struct {
	free []units.Nanos // when each server is next free
	busy units.Nanos   // total service given
}

// NewStation returns a station of n ≥ 1 idle servers.
func NewStation(n int) *Station { return &Station{free: make([]units.Nanos, max(n, 1))} }

// Serve assigns a customer that arrives at time at to the first free server. It returns the start
// and end of the service.
func (s *Station) Serve(at, service units.Nanos) (start, end units.Nanos) {
	best := 0
	for i, t := range s.free {
		if t < s.free[best] {
			best = i
		}
	}
	start = max(at, s.free[best])
	end = start + service
	s.free[best] = end
	s.busy += service
	return start, end
}

// Busy is the total service time given so far, over all servers.
func (s *Station) Busy() units.Nanos { return s.busy }

// IdleAt reports whether every server is free at time t.
func (s *Station) IdleAt(t units.Nanos) bool {
	for _, f := range s.free {
		if f > t {
			return false
		}
	}
	return true
}
