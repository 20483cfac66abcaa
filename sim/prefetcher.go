package sim

import (
	"fmt"

	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/units"
)

// prefetcher is the engine's background with the simulator's clock. It submits prefetch batches in
// submissions that share the staging buffer as layout.Staging says. When the reads of a submission
// are complete, the next one is submitted, if there is room, while the rows of the first are
// scattered to their places, in order. With schedule.Unlimited all batches of a prefetch are one
// submission, which is submitted when it is due.
type prefetcher struct {
	station *flash.Station
	host    *Host
	staging units.Bytes // Schedule.Staging
	room    layout.Staging

	reads       []flash.Read // of the token
	batches     []readBatch  // of the token, in the order of layers
	first, next int          // batches that are in flight
	waited      int          // batches before it were waited for
	begun       int          // the first batch since begin
	last        int          // the submission of the batch added last
	complete    units.Nanos  // when the last submission's reads were complete
	idle        units.Nanos  // when all complete rows are in their places
	// when the rows of the submissions that have room are in their places, the older one first;
	// units.Forever for one in flight
	scattered  [2]units.Nanos
	placed     int         // submissions that have room
	scattering units.Nanos // time of scattering so far
	submitted  int64       // submissions so far
}

// readBatch is one prefetch batch.
type readBatch struct {
	layer, submission int
	due               units.Nanos // when it was added
	reads             []flash.Read
	size              int64 // bytes of staging buffer
	rows              int
	ticket            flash.Group
	ready             units.Nanos // when its rows are in their places
}

// reset starts a token.
func (p *prefetcher) reset() error {
	if p.first != len(p.batches) {
		return fmt.Errorf("sim: %d prefetch batches are left over from a token: %w",
			len(p.batches)-p.first, flash.ErrInvariant)
	}
	p.reads, p.batches = p.reads[:0], p.batches[:0]
	p.first, p.next, p.waited = 0, 0, 0
	return nil
}

// begin starts a prefetch: batches added from now on are not in a submission with earlier ones.
func (p *prefetcher) begin() { p.last, p.begun = p.last+1, len(p.batches) }

// add queues a batch of a layer, which may be submitted from time due on.
func (p *prefetcher) add(layer int, due units.Nanos, batch *layout.Batch) {
	start := len(p.reads)
	p.reads = appendReads(p.reads, batch.Plan.Requests)
	p.batches = append(p.batches, readBatch{
		layer: layer, submission: p.last, due: due,
		reads: p.reads[start:len(p.reads):len(p.reads)],
		rows:  len(batch.Units), size: batch.Plan.Staging,
	})
}

// group groups the batches added since begin into submissions that fit the staging buffer.
func (p *prefetcher) group() {
	if p.staging == schedule.Unlimited {
		return
	}
	added := p.batches[p.begun:]
	for i := range added {
		p.room.Room = max(p.room.Room, layout.Rounded(added[i].size))
	}
	for len(added) > 0 {
		n, _ := p.room.Together(len(added), func(i int) (int64, int) {
			return added[i].size, len(added[i].reads)
		})
		for i := range added[:n] {
			added[i].submission = p.last
		}
		added = added[n:]
		p.last++
	}
}

// advance goes on until a time.
func (p *prefetcher) advance(to units.Nanos) error {
	for {
		if early, err := p.step(to); err != nil || !early {
			return err
		}
	}
}

// step goes on until a time. It stops early when a submission is submitted, or when reads of any
// class are complete.
func (p *prefetcher) step(to units.Nanos) (early bool, err error) {
	if at, ok := p.turn(); ok && at <= to {
		return true, p.submit(at)
	}
	if early, err = p.station.Next(to); err != nil {
		return false, err
	}
	return early, p.retire()
}

// turn returns when the next submission is submitted. In a buffer with a limit the reads of the
// previous one must be complete, and there must be room. ok is false while that is not known.
func (p *prefetcher) turn() (at units.Nanos, ok bool) {
	switch {
	case p.next == len(p.batches):
		return 0, false
	case p.staging == schedule.Unlimited:
		return p.batches[p.next].due, true
	case p.first < p.next:
		return 0, false
	}
	at = max(p.batches[p.next].due, p.complete)
	room, held := p.room, p.scattered[:p.placed]
	for {
		for len(held) > 0 && held[0] <= at {
			room.Release()
			held = held[1:]
		}
		if _, ok := room.Place(p.size()); ok || len(held) == 0 {
			return at, true
		}
		at = held[0]
	}
}

// size is the size of the next submission in the staging buffer.
func (p *prefetcher) size() (size int64) {
	for i := p.next; i < len(p.batches) &&
		p.batches[i].submission == p.batches[p.next].submission; i++ {
		size += layout.Rounded(p.batches[i].size)
	}
	return size
}

func (p *prefetcher) submit(at units.Nanos) (err error) {
	p.submitted++
	if p.staging < schedule.Unlimited {
		for p.placed > 0 && p.scattered[0] <= at {
			p.room.Release()
			p.scattered[0] = p.scattered[1]
			p.placed--
		}
		p.room.Place(p.size())
		p.scattered[p.placed] = units.Forever
		p.placed++
	}
	for n := p.batches[p.next].submission; p.next < len(p.batches) &&
		p.batches[p.next].submission == n; p.next++ {
		b := &p.batches[p.next]
		if b.ticket, err = p.station.Submit(at, flash.Speculative, b.reads); err != nil {
			return err
		}
	}
	return nil
}

// retire scatters the rows of complete batches: in a buffer with a limit when all of a submission
// are complete, else one by one.
func (p *prefetcher) retire() error {
	for p.first < p.next {
		end := p.first + 1
		if p.staging < schedule.Unlimited {
			end = p.next
		}
		if !p.done(p.batches[p.first:end]) {
			return nil
		}
		for _, b := range p.batches[p.first:end] {
			batch, err := p.station.Take(b.ticket)
			if err != nil {
				return err
			}
			p.complete = max(p.complete, batch.End)
		}
		for ; p.first < end; p.first++ {
			b := &p.batches[p.first]
			took := p.host.Scatter(b.rows)
			p.idle = max(p.idle, p.complete) + took
			p.scattering += took
			b.ready = p.idle
		}
		if p.placed > 0 {
			p.scattered[p.placed-1] = p.idle
		}
	}
	return nil
}

// done reports whether the reads of all of some batches are complete.
func (p *prefetcher) done(batches []readBatch) bool {
	for i := range batches {
		if !p.station.Done(batches[i].ticket) {
			return false
		}
	}
	return true
}

// wait goes on until the prefetches for the layers up to one are scattered and a group of demand
// reads, nil for none, is complete. It returns the time of that, which may be past.
func (p *prefetcher) wait(layer int, demand *flash.Group) (ready units.Nanos, err error) {
	for p.first < len(p.batches) && p.batches[p.first].layer <= layer || demand != nil &&
		!p.station.Done(*demand) {
		early, err := p.step(units.Forever)
		if err != nil {
			return 0, err
		}
		if !early {
			return 0, fmt.Errorf("sim: layer %d waits for reads that never complete: %w", layer,
				flash.ErrInvariant)
		}
	}
	for ; p.waited < p.first && p.batches[p.waited].layer <= layer; p.waited++ {
		ready = p.batches[p.waited].ready
	}
	if demand != nil {
		batch, err := p.station.Take(*demand)
		if err != nil {
			return 0, err
		}
		ready = max(ready, batch.End)
	}
	return ready, nil
}
