package sim

import (
	"fmt"

	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/engine/layout"
	"github.com/windrow-sim/windrow/internal/units"
)

// reader is the thread that reads ahead. It submits what it is given, one staging buffer after the other: when all of one has come it moves the rows
// to their places, in order, and then submits the next. Without a limit it submits everything when it is due, and moves rows while later reads go on.
type reader struct {
	station *flash.Station
	host    *Host
	staging units.Bytes // Schedule.Staging
	room    units.Bytes // of the buffer, where Schedule.Staging is 0

	reads       []flash.Read // of the token
	groups      []readGroup  // of the token, in order of layers
	first, next int          // groups that are under way
	waited      int          // groups before were waited for
	opened      int          // the first group since open
	chunk       int          // of the group added last
	fill        units.Bytes  // of that chunk
	requests    int          // of that chunk
	free        units.Nanos  // when all rows that have come are in their places
	moving      units.Nanos  // time of moving rows so far
	chunks      int64        // submitted so far
}

// readGroup is the reads of one layer in one chunk.
type readGroup struct {
	layer, chunk int
	due          units.Nanos // when it was added
	reads        []flash.Read
	size         units.Bytes // of the whole layer in the buffer
	rows         int         // that it brings
	ticket       flash.Group
	ready        units.Nanos // when they are in their places
}

// reset starts a token.
func (r *reader) reset() error {
	if r.first != len(r.groups) {
		return fmt.Errorf("sim: %d groups of reads are left over from a token: %w", len(r.groups)-r.first, flash.ErrInvariant)
	}
	r.reads, r.groups = r.reads[:0], r.groups[:0]
	r.first, r.next, r.waited = 0, 0, 0
	return nil
}

// open starts a chunk: what was added before is submitted apart.
func (r *reader) open() { r.chunk, r.fill, r.requests, r.opened = r.chunk+1, 0, 0, len(r.groups) }

// add gives the reader the reads that bring rows of a layer, none larger than the staging buffer, to submit from time due on.
func (r *reader) add(layer int, due units.Nanos, plan *layout.Plan, rows int) {
	if r.staging > 0 && r.staging < Unlimited && r.requests > 0 && r.requests+len(plan.Requests) > layout.MostAhead {
		r.open()
	}
	start, through := len(r.reads), 0
	cut := func(end int64) {
		if start == len(r.reads) {
			return
		}
		// Rows are counted by bytes: they are all of one size, but a chunk may end within one.
		upTo := int(int64(rows) * end / plan.Staging)
		r.groups = append(r.groups, readGroup{
			layer: layer, chunk: r.chunk, due: due, reads: r.reads[start:len(r.reads):len(r.reads)], rows: upTo - through,
			size: (units.Bytes(plan.Staging) + layout.StagingAlign - 1) / layout.StagingAlign * layout.StagingAlign,
		})
		start, through = len(r.reads), upTo
	}
	for _, q := range plan.Requests {
		length := units.Bytes(q.Length)
		if r.staging > 0 && r.fill > r.staging-length {
			cut(q.Buf)
			r.open()
		}
		r.reads = append(r.reads, flash.Read{Offset: units.Bytes(q.Offset), Length: length})
		r.requests++
		if r.staging > 0 {
			r.fill += length
		}
	}
	cut(plan.Staging)
}

// share puts the layers that were added since open together, as far as they fit into a buffer for the largest: what the engine does without a limit.
func (r *reader) share() {
	if r.staging > 0 {
		return
	}
	added := r.groups[r.opened:]
	for i := range added {
		r.room = max(r.room, added[i].size)
	}
	fill, requests := units.Bytes(0), 0
	for i := range added {
		g := &added[i]
		if fill += g.size; requests > 0 && (fill > r.room || requests+len(g.reads) > layout.MostAhead) {
			r.chunk++
			fill, requests = g.size, 0
		}
		requests += len(g.reads)
		g.chunk = r.chunk
	}
}

// advance goes on until a time.
func (r *reader) advance(to units.Nanos) error {
	for {
		if early, err := r.step(to); err != nil || !early {
			return err
		}
	}
}

// step goes on until a time, but stops early when a chunk is submitted or reads of any class are complete.
func (r *reader) step(to units.Nanos) (early bool, err error) {
	if at, ok := r.turn(); ok && at <= to {
		return true, r.submit(at)
	}
	if early, err = r.station.Next(to); err != nil {
		return false, err
	}
	return early, r.retire()
}

// turn is when the next chunk is submitted. A buffer with an end has to be empty.
func (r *reader) turn() (at units.Nanos, ok bool) {
	switch {
	case r.next == len(r.groups):
		return 0, false
	case r.staging == Unlimited:
		return r.groups[r.next].due, true
	}
	return max(r.groups[r.next].due, r.free), r.first == r.next
}

func (r *reader) submit(at units.Nanos) (err error) {
	r.chunks++
	for chunk := r.groups[r.next].chunk; r.next < len(r.groups) && r.groups[r.next].chunk == chunk; r.next++ {
		g := &r.groups[r.next]
		if g.ticket, err = r.station.Submit(at, flash.Speculative, g.reads); err != nil {
			return err
		}
	}
	return nil
}

// retire moves the rows of complete groups; those of a buffer with an end when all of it is complete.
func (r *reader) retire() error {
	for r.first < r.next && r.complete() {
		g := &r.groups[r.first]
		batch, err := r.station.Take(g.ticket)
		if err != nil {
			return err
		}
		took := r.host.Scatter(g.rows)
		r.free = max(r.free, batch.End) + took
		r.moving += took
		g.ready = r.free
		r.first++
	}
	return nil
}

// complete reports whether the rows of the first group can be moved.
func (r *reader) complete() bool {
	last := r.first + 1
	if r.staging < Unlimited {
		last = r.next
	}
	for i := r.first; i < last; i++ {
		if !r.station.Done(r.groups[i].ticket) {
			return false
		}
	}
	return true
}

// wait goes on until the reads up to a layer are in their places, and those of a demand group, if there is one, are complete. It returns when
// that is, which may be past.
func (r *reader) wait(layer int, demand *flash.Group) (ready units.Nanos, err error) {
	for r.first < len(r.groups) && r.groups[r.first].layer <= layer || demand != nil && !r.station.Done(*demand) {
		early, err := r.step(units.Forever)
		if err != nil {
			return 0, err
		}
		if !early {
			return 0, fmt.Errorf("sim: layer %d waits for reads that never come: %w", layer, flash.ErrInvariant)
		}
	}
	for ; r.waited < r.first && r.groups[r.waited].layer <= layer; r.waited++ {
		ready = r.groups[r.waited].ready
	}
	if demand != nil {
		batch, err := r.station.Take(*demand)
		if err != nil {
			return 0, err
		}
		ready = max(ready, batch.End)
	}
	return ready, nil
}
