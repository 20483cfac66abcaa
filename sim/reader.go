package sim

import (
	"fmt"

	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/units"
)

// reader reads ahead. It submits what it is given in chunks that share the staging buffer as the
// engine's do (layout.Staging): when the reads of a chunk have come the next is submitted, if there
// is room, while the rows of the first are moved to their places, in order. Without a limit
// everything is submitted when it is due.
type reader struct {
	station *flash.Station
	host    *Host
	staging units.Bytes // Schedule.Staging
	room    layout.Staging

	reads       []flash.Read // of the token
	groups      []readGroup  // of the token, in order of layers
	first, next int          // groups that are under way
	waited      int          // groups before were waited for
	opened      int          // the first group since open
	chunk       int          // of the group added last
	come        units.Nanos  // when the last chunk's reads were complete
	free        units.Nanos  // when all rows that have come are in their places
	// when the rows of the chunks that have room are in their places, the older first; of one under
	// way not known yet
	moved   [2]units.Nanos
	holding int         // of them
	moving  units.Nanos // time of moving rows so far
	chunks  int64       // submitted so far
}

// readGroup is the reads of one layer in one chunk.
type readGroup struct {
	layer, chunk int
	due          units.Nanos // when it was added
	reads        []flash.Read
	size         int64 // in the buffer
	rows         int   // that it brings
	ticket       flash.Group
	ready        units.Nanos // when they are in their places
}

// reset starts a token.
func (r *reader) reset() error {
	if r.first != len(r.groups) {
		return fmt.Errorf("sim: %d groups of reads are left over from a token: %w",
			len(r.groups)-r.first, flash.ErrInvariant)
	}
	r.reads, r.groups = r.reads[:0], r.groups[:0]
	r.first, r.next, r.waited = 0, 0, 0
	return nil
}

// open starts an announcement: what was added before is submitted apart.
func (r *reader) open() { r.chunk, r.opened = r.chunk+1, len(r.groups) }

// add gives the reader a prefetch batch of a layer, to submit from time due on.
func (r *reader) add(layer int, due units.Nanos, batch *layout.Batch) {
	start := len(r.reads)
	r.reads = appendReads(r.reads, batch.Plan.Requests)
	r.groups = append(r.groups, readGroup{
		layer: layer, chunk: r.chunk, due: due, reads: r.reads[start:len(r.reads):len(r.reads)],
		rows: len(batch.Units), size: batch.Plan.Staging,
	})
}

// share puts the pieces that were added since open together to chunks.
func (r *reader) share() {
	if r.staging == schedule.Unlimited {
		return
	}
	added := r.groups[r.opened:]
	for i := range added {
		r.room.Room = max(r.room.Room, layout.Rounded(added[i].size))
	}
	for len(added) > 0 {
		n, _ := r.room.Together(len(added), func(i int) (int64, int) {
			return added[i].size,
				len(added[i].reads)
		})
		for i := range added[:n] {
			added[i].chunk = r.chunk
		}
		added = added[n:]
		r.chunk++
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

// step goes on until a time, but stops early when a chunk is submitted or reads of any class are
// complete.
func (r *reader) step(to units.Nanos) (early bool, err error) {
	if at, ok := r.turn(); ok && at <= to {
		return true, r.submit(at)
	}
	if early, err = r.station.Next(to); err != nil {
		return false, err
	}
	return early, r.retire()
}

// turn is when the next chunk is submitted: in a buffer with an end, when the reads before have
// come and there is room.
func (r *reader) turn() (at units.Nanos, ok bool) {
	switch {
	case r.next == len(r.groups):
		return 0, false
	case r.staging == schedule.Unlimited:
		return r.groups[r.next].due, true
	case r.first < r.next:
		return 0, false
	}
	at = max(r.groups[r.next].due, r.come)
	room, held := r.room, r.moved[:r.holding]
	for {
		for len(held) > 0 && held[0] <= at {
			room.Moved()
			held = held[1:]
		}
		if _, ok := room.Place(r.size()); ok || len(held) == 0 {
			return at, true
		}
		at = held[0]
	}
}

// size is that of the next chunk in the buffer.
func (r *reader) size() (size int64) {
	for i := r.next; i < len(r.groups) && r.groups[i].chunk == r.groups[r.next].chunk; i++ {
		size += layout.Rounded(r.groups[i].size)
	}
	return size
}

func (r *reader) submit(at units.Nanos) (err error) {
	r.chunks++
	if r.staging < schedule.Unlimited {
		for r.holding > 0 && r.moved[0] <= at {
			r.room.Moved()
			r.moved[0] = r.moved[1]
			r.holding--
		}
		r.room.Place(r.size())
		r.moved[r.holding] = units.Forever
		r.holding++
	}
	for chunk := r.groups[r.next].chunk; r.next < len(r.groups) &&
		r.groups[r.next].chunk == chunk; r.next++ {
		g := &r.groups[r.next]
		if g.ticket, err = r.station.Submit(at, flash.Speculative, g.reads); err != nil {
			return err
		}
	}
	return nil
}

// retire moves the rows of complete groups; those of a buffer with an end when all of a chunk is
// complete.
func (r *reader) retire() error {
	for r.first < r.next && r.complete() {
		end := r.first + 1
		if r.staging < schedule.Unlimited {
			end = r.next
		}
		for _, g := range r.groups[r.first:end] {
			batch, err := r.station.Take(g.ticket)
			if err != nil {
				return err
			}
			r.come = max(r.come, batch.End)
		}
		for ; r.first < end; r.first++ {
			g := &r.groups[r.first]
			took := r.host.Scatter(g.rows)
			r.free = max(r.free, r.come) + took
			r.moving += took
			g.ready = r.free
		}
		if r.holding > 0 {
			r.moved[r.holding-1] = r.free
		}
	}
	return nil
}

// complete reports whether the rows of the first group can be moved.
func (r *reader) complete() bool {
	last := r.first + 1
	if r.staging < schedule.Unlimited {
		last = r.next
	}
	for i := r.first; i < last; i++ {
		if !r.station.Done(r.groups[i].ticket) {
			return false
		}
	}
	return true
}

// wait goes on until the reads up to a layer are in their places, and those of a demand group, if
// there is one, are complete. It returns when that is, which may be past.
func (r *reader) wait(layer int, demand *flash.Group) (ready units.Nanos, err error) {
	for r.first < len(r.groups) && r.groups[r.first].layer <= layer || demand != nil &&
		!r.station.Done(*demand) {
		early, err := r.step(units.Forever)
		if err != nil {
			return 0, err
		}
		if !early {
			return 0, fmt.Errorf("sim: layer %d waits for reads that never come: %w", layer,
				flash.ErrInvariant)
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
