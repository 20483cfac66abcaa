package flash

import (
	"errors"
	"fmt"

	"github.com/windrow-sim/windrow/devicemodels/des"
	"github.com/windrow-sim/windrow/internal/units"
)

// Class is the priority of reads for a free slot. A read that a slot has taken always completes
// first.
type Class uint8

// The classes, in that order.
const (
	Demand      Class = iota // compute waits for them
	Speculative              // prefetch: taken while no demand read waits
	classes
)

// Group names reads that were submitted together, from Submit to Take.
type Group int32

// group is the state of one.
type group struct {
	class  Class
	reads  []Read
	next   int // the first that no slot has taken
	done   int
	asked  units.Bytes // of the device
	result BatchResult
}

// Progress holds the counters of a Station. The difference of two describes the time between them.
type Progress struct {
	Moved units.Bytes // over the link, in completed pieces
	Busy  units.Nanos // with at least one read in flight
	Area  units.Nanos // integral of the number of reads in flight: its mean times Busy
	Host  units.Nanos // core time spent on reads
}

// Since returns the difference to an earlier Progress.
func (p Progress) Since(o Progress) Progress {
	return Progress{Moved: p.Moved - o.Moved, Busy: p.Busy - o.Busy, Area: p.Area - o.Area,
		Host: p.Host - o.Host}
}

// ErrClock marks a simulation that is longer than Last, the end of the clock.
var ErrClock = des.ErrClock

// Last is the latest time of a simulation.
const Last = des.Last

// ErrInvariant marks a broken invariant of the simulator: a bug, not bad input.
var ErrInvariant = des.ErrInvariant

// errStop ends a run of the kernel before its queue is empty.
var errStop = errors.New("flash: station: stopped")

// Submit starts reads at time at, not before Now, beside the groups in flight. Events up to that
// time are handled first. The reads belong to the station until Take. Slots take the reads of one
// class in the order of submission.
func (s *Station) Submit(at units.Nanos, class Class, reads []Read) (Group, error) {
	if err := s.Advance(at); err != nil {
		return 0, err
	}
	g := Group(len(s.groups))
	if n := len(s.unused); n > 0 {
		g, s.unused = s.unused[n-1], s.unused[:n-1]
	} else {
		s.groups = append(s.groups, &group{})
	}
	*s.groups[g] = group{class: class, reads: reads, result: BatchResult{End: at}}
	if len(reads) == 0 {
		return g, nil
	}
	s.open++
	s.kernel.Schedule(at+s.cost.Batch, des.ClassPlan, kindOpen, int32(g))
	return g, nil
}

// Now is the station's time.
func (s *Station) Now() units.Nanos { return s.kernel.Now() }

// Due returns the time of the next event of the reads submitted so far; ok is false when none is
// pending. A caller with a clock of its own, such as a test's, sleeps until then.
func (s *Station) Due() (at units.Nanos, ok bool) { return s.kernel.Next() }

// Advance handles all events up to a time.
func (s *Station) Advance(to units.Nanos) error {
	for {
		if early, err := s.Next(to); err != nil || !early {
			return err
		}
	}
}

// Next handles events up to a time, but stops early when a group is complete. With units.Forever it
// does nothing unless a group is incomplete.
func (s *Station) Next(to units.Nanos) (early bool, err error) {
	if s.kernel.Pending() == 0 || s.open == 0 && to == units.Forever {
		if to < units.Forever {
			err = s.kernel.Advance(to)
		}
		return false, err
	}
	s.stops++
	if to < units.Forever {
		s.kernel.Schedule(to, des.ClassPlan, kindStop, s.stops)
	}
	s.completed = false
	if err = s.kernel.Run(s); err != errStop {
		return false, err
	}
	return s.completed, nil
}

// Done reports whether all reads of a group are complete.
func (s *Station) Done(g Group) bool {
	p := s.groups[g]
	return p.done == len(p.reads)
}

// Take returns the result of a complete group and frees the group.
func (s *Station) Take(g Group) (BatchResult, error) {
	p := s.groups[g]
	result := p.result
	if p.done != len(p.reads) || result.Moved != p.asked {
		return BatchResult{}, fmt.Errorf("flash: station: %d of %d requests and %d of %d bytes "+
			"of a group completed at %v: %w",
			p.done, len(p.reads), result.Moved, p.asked, s.kernel.Now(), ErrInvariant)
	}
	s.asked += p.asked
	*p = group{}
	s.unused = append(s.unused, g)
	return result, nil
}

// Batch runs reads from time start to the completion of the last. An empty batch takes no time.
func (s *Station) Batch(start units.Nanos, reads []Read) (BatchResult, error) {
	if len(reads) == 0 {
		return BatchResult{End: start}, nil
	}
	g, err := s.Submit(start, Demand, reads)
	for early := true; err == nil && early && !s.Done(g); {
		early, err = s.Next(units.Forever)
	}
	if err != nil {
		return BatchResult{}, err
	}
	result, err := s.Take(g)
	if err != nil || s.open > 0 {
		return result, err
	}
	return result, s.Drained()
}

// Drained checks conservation at the end (design invariant 2): all requests are complete and
// nothing is in flight.
func (s *Station) Drained() error {
	asked := s.asked
	for _, g := range s.groups {
		asked += g.asked
	}
	if s.open != 0 || s.inFlight != 0 || s.moved.Moved != asked || s.inside != 0 ||
		len(s.outside) != 0 || len(s.idle) != len(s.pieces) {
		return fmt.Errorf("flash: station: at %v %d groups are not complete, %d requests in "+
			"flight, %d inside, %d of %d bytes moved: %w",
			s.kernel.Now(), s.open, s.inFlight, s.inside, s.moved.Moved, asked, ErrInvariant)
	}
	return nil
}

// Progress returns the counters at Now. Slots subtract the time of picking from Area and Busy and
// add the time of completion; Progress adds the reads in flight.
func (s *Station) Progress() Progress {
	p := s.moved
	p.Host = s.host.Busy()
	if s.inFlight > 0 {
		p.Busy += s.kernel.Now()
		p.Area += units.Nanos(s.inFlight) * s.kernel.Now()
	}
	return p
}

// start offers the reads of a group to the slots and wakes resting ones.
func (s *Station) start(g *group) {
	s.waiting[g.class] = append(s.waiting[g.class], g)
	s.choose()
	for range min(len(s.resting), len(g.reads)) {
		last := len(s.resting) - 1
		s.kernel.Schedule(s.kernel.Now(), des.ClassPlan, kindPick, s.resting[last])
		s.resting = s.resting[:last]
	}
}

// finish removes a group whose reads are all taken.
func (s *Station) finish(g *group) {
	queue := s.waiting[g.class]
	s.waiting[g.class] = queue[:copy(queue, queue[1:])]
	s.choose()
}

// choose finds the next group to take reads from.
func (s *Station) choose() {
	s.turn = nil
	for _, queue := range s.waiting {
		if len(queue) > 0 {
			s.turn = queue[0]
			return
		}
	}
}
