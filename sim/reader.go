package sim

import (
	"fmt"

	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/engine/layout"
	"github.com/windrow-sim/windrow/internal/units"
)

// reader is the thread that reads ahead. It submits what it is given, one staging buffer after the other, and moves the rows that have come to
// their places, in order, while later reads go on.
type reader struct {
	station *flash.Station
	host    *Host
	staging units.Bytes // 0 = no limit

	reads       []flash.Read // of the token
	groups      []readGroup  // of the token, in order of layers
	first, next int          // groups that are under way
	waited      int          // groups before were waited for
	chunk       int          // of the group added last
	fill        units.Bytes  // of that chunk
	free        units.Nanos  // when all rows that have come are in their places
	moving      units.Nanos  // time of moving rows so far
	chunks      int64        // submitted so far
}

// readGroup is the reads of one layer in one chunk.
type readGroup struct {
	layer, chunk int
	due          units.Nanos // when it was added
	reads        []flash.Read
	rows         int // that it brings
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
func (r *reader) open() { r.chunk, r.fill = r.chunk+1, 0 }

// add gives the reader the reads that bring rows of a layer, none larger than the staging buffer, to submit from time due on.
func (r *reader) add(layer int, due units.Nanos, plan *layout.Plan, rows int) {
	start, through := len(r.reads), 0
	cut := func(end int64) {
		if start == len(r.reads) {
			return
		}
		// Rows are counted by bytes: they are all of one size, but a chunk may end within one.
		upTo := int(int64(rows) * end / plan.Staging)
		r.groups = append(r.groups, readGroup{layer: layer, chunk: r.chunk, due: due, reads: r.reads[start:len(r.reads):len(r.reads)], rows: upTo - through})
		start, through = len(r.reads), upTo
	}
	for _, q := range plan.Requests {
		length := units.Bytes(q.Length)
		if r.staging > 0 && r.fill+length > r.staging {
			cut(q.Buf)
			r.open()
		}
		r.reads = append(r.reads, flash.Read{Offset: units.Bytes(q.Offset), Length: length})
		r.fill += length
	}
	cut(plan.Staging)
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

// turn is when the next chunk is submitted. A limited buffer has to be empty.
func (r *reader) turn() (at units.Nanos, ok bool) {
	switch {
	case r.next == len(r.groups):
		return 0, false
	case r.staging == 0:
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

// retire moves the rows of complete groups.
func (r *reader) retire() error {
	for r.first < r.next && r.station.Done(r.groups[r.first].ticket) {
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
