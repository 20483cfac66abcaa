package flash

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/windrow-sim/windrow/devicemodels/des"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
)

// Read is a read of Length bytes at Offset.
type Read struct {
	Offset, Length units.Bytes
}

// Config holds the use of a Station.
type Config struct {
	Engine   string      // a key of Spec.Engines
	Parallel int         // slots: threads of a pool or depth of a ring
	Cores    int         // of the host
	Span     units.Bytes // address range of the reads; 0 = not known
	Seed     uint64      // of the draws from LTFBShape and Background
}

// Station simulates a flash device and the host threads that drive it, as discrete events. Each of
// Config.Parallel slots takes the next request of a batch and completes it:
//
//	host (submit) ─▶ limit (credit) ─▶ queue (depth) ─▶ controller (IOPS)
//	─▶ server (LTFB + bytes/rate) ─▶ host (complete)
//	                                                                         link (bytes/rate) ─┘
//
// Every stage is first come, first served. Requests larger than Spec.MaxTransfer are split into
// pieces that are in flight together. Reads of a cached engine pass the page cache and reach the
// device as faults, one after the other in each of PageCache.Threads slots. Counters are integers,
// so that conservation and Little's law hold exactly.
type Station struct {
	spec   Spec
	cost   EngineCost
	slots  int
	kernel des.Kernel

	host, controller, link *des.Station
	servers                servers
	rounds                 *rounds // PlaceInRounds
	limit                  *bucket
	heat                   *heat
	others                 *background
	cache                  *pageCache
	fetches                []Read   // of one fault, reused
	woken                  []waiter // by one fetch, reused
	ltfb                   *sampler
	draws                  *rand.Rand

	groups  []*group          // by Group
	unused  []Group           // indices of groups not in use
	waiting [classes][]*group // groups with reads that no slot has taken
	turn    *group            // the group of the next read; nil when none waits
	open    int               // incomplete groups
	flights []flight          // by slot
	resting []int32           // free slots
	pieces  []piece
	idle    []int32 // indices of unused pieces
	inside  int     // pieces in the device
	outside []int32 // pieces that wait for the device, in order, from the first on
	first   int     // of outside

	asked     units.Bytes // by the groups that were taken
	moved     Progress
	inFlight  int   // requests
	stops     int32 // number of the current kindStop
	completed bool  // a group is complete since the call of Next

	// called for changes of the requests in flight; nil outside tests
	hook func(at units.Nanos, change int)
}

// flight is the request of a slot.
type flight struct {
	group  *group
	picked units.Nanos
	left   int         // incomplete pieces
	at     units.Bytes // cached engines: position of the copying
	end    units.Bytes // end of the copying
	// cached engines: the blocks that the slot fetches, and the slots that wait for them
	blocks  []int64
	waiters []waiter
}

// waiter is a slot that found a block which another one fetches.
type waiter struct {
	slot int32
	at   units.Nanos // end of its copying before the block
}

// piece is a request of the device.
type piece struct {
	slot         int32
	offset, size units.Bytes
	finished     units.Nanos // end of the server's work
}

// The kinds of events. The argument is a group for kindOpen, a slot for kindPick and kindComplete,
// and a piece for the others.
const (
	kindOpen     int32 = iota // slots may take reads of the group
	kindPick                  // the slot is free: take the next request
	kindArrive                // the piece reaches the limit
	kindAdmit                 // the piece has its credit and reaches the device
	kindLink                  // its first byte is available: the transfer begins
	kindDone                  // the device has completed the piece
	kindComplete              // the host has completed the request
	kindLook                  // PlaceInRounds: the device takes the waiting pieces
	kindServed                // PlaceInRounds: the device has served them
	kindStop                  // end of a Next; the argument is its number
)

// NewStation returns an idle Station. Errors name the missing part of the device or of cfg.
func NewStation(spec Spec, cfg Config) (*Station, error) {
	cost, ok := spec.Engines[cfg.Engine]
	switch {
	case !ok:
		return nil, fmt.Errorf("flash: no costs for I/O engine %q; the device model knows %v",
			cfg.Engine, slices.Sorted(maps.Keys(spec.Engines)))
	case cfg.Parallel < 1:
		return nil, fmt.Errorf("flash: %d threads (or queue depth): at least 1 is needed",
			cfg.Parallel)
	case cost.Cached && (spec.PageCache == nil || spec.PageCache.ReadAhead < 1):
		return nil, fmt.Errorf("flash: engine %q reads through a page cache, which the device "+
			"model does not describe (flash.page_cache)", cfg.Engine)
	}
	cores := cfg.Cores
	if cost.Serial {
		cores = 1
	}
	s := &Station{
		spec: spec.Within(cfg.Span), cost: cost, slots: cfg.Parallel,
		host: des.NewStation(cores), controller: des.NewStation(1), link: des.NewStation(1),
		draws: rng.Stream(cfg.Seed, "flash/ltfb"),
	}
	if cost.Cached {
		s.cache, s.slots = newPageCache(*spec.PageCache), spec.PageCache.readers()
	}
	s.servers = newServers(&s.spec)
	if s.spec.Placement == PlaceInRounds {
		s.rounds = &rounds{}
	}
	if !s.spec.LTFBShape.IsZero() {
		s.ltfb = newSampler(&s.spec.LTFBShape, float64(s.spec.LTFB))
	}
	if s.spec.Limit != nil {
		s.limit = newBucket(*s.spec.Limit)
	}
	if s.spec.Sustained != nil {
		s.heat = &heat{spec: *s.spec.Sustained}
	}
	if b := s.spec.Background; b != nil && b.Rate > 0 && b.Chunk > 0 {
		s.others = newBackground(*b, cfg.Seed)
	}
	s.flights, s.resting = make([]flight, s.slots), make([]int32, s.slots)
	for slot := range s.resting {
		s.resting[slot] = int32(slot)
	}
	return s, nil
}

// BatchResult holds the counters of one batch of reads.
type BatchResult struct {
	End     units.Nanos // completion of the last read
	Sojourn units.Nanos // sum over reads of the time in a slot
	Pieces  int         // requests of the device
	Faults  int         // of a cached engine, on bytes that were not in memory
	// over the link: the requested bytes, or the fetches of the page cache for them
	Moved  units.Bytes
	Medium units.Bytes // read from the medium: whole pages
}

// Handle implements des.Handler.
func (s *Station) Handle(k *des.Kernel, e des.Event) error {
	switch e.Kind {
	case kindOpen:
		s.start(s.groups[e.Arg])
	case kindPick:
		s.pick(e.Arg)
	case kindArrive:
		at := k.Now()
		if s.limit != nil {
			at = s.limit.pass(at, s.pieces[e.Arg].size)
		}
		k.Schedule(at, des.ClassArrive, kindAdmit, e.Arg)
	case kindAdmit:
		if s.spec.QueueDepth > 0 && s.inside >= s.spec.QueueDepth {
			s.outside = append(s.outside, e.Arg)
			return nil
		}
		s.enter(e.Arg)
	case kindLink:
		p := &s.pieces[e.Arg]
		if s.others != nil {
			s.others.move(k.Now(), s)
		}
		_, over := s.link.Serve(k.Now(), s.slowed(s.spec.LinkRate.Time(p.size)))
		k.Schedule(max(over, p.finished), des.ClassDone, kindDone, e.Arg)
	case kindDone:
		s.leave(e.Arg)
	case kindComplete:
		return s.complete(e.Arg)
	case kindLook:
		s.look()
	case kindServed:
		s.served()
	case kindStop:
		if e.Arg == s.stops {
			return errStop
		}
	default:
		return fmt.Errorf("flash: station: event of unknown kind %d: %w", e.Kind, des.ErrInvariant)
	}
	return nil
}

// pick gives the next read to a free slot.
func (s *Station) pick(slot int32) {
	g := s.turn
	if g == nil {
		s.resting = append(s.resting, slot)
		return
	}
	now, r, f := s.kernel.Now(), &g.reads[g.next], &s.flights[slot]
	if g.next++; g.next == len(g.reads) {
		s.finish(g)
	}
	f.group, f.picked = g, now
	s.moved.Area -= now
	if s.inFlight++; s.inFlight == 1 {
		s.moved.Busy -= now
	}
	if s.hook != nil {
		s.hook(now, 1)
	}
	_, submitted := s.host.Serve(now, s.cost.Submit)
	if s.cache != nil {
		f.at, f.end = r.Offset, r.Offset+r.Length
		s.walk(slot, submitted)
		return
	}
	s.split(slot, submitted, *r)
}

// split sends a read to the device at time at, in pieces when it is larger than MaxTransfer.
func (s *Station) split(slot int32, at units.Nanos, r Read) {
	most := s.spec.MaxTransfer
	if most <= 0 {
		most = max(r.Length, 1)
	}
	for done := units.Bytes(0); done < r.Length || done == 0; done += most {
		s.issue(slot, at, r.Offset+done, min(most, r.Length-done))
	}
}

// issue sends a piece to the device at time at.
func (s *Station) issue(slot int32, at units.Nanos, offset, size units.Bytes) {
	i := int32(len(s.pieces))
	if n := len(s.idle); n > 0 {
		i, s.idle = s.idle[n-1], s.idle[:n-1]
	} else {
		s.pieces = append(s.pieces, piece{})
	}
	s.pieces[i] = piece{slot: slot, offset: offset, size: size}
	f := &s.flights[slot]
	f.left++
	g := f.group
	g.asked += size
	g.result.Pieces++
	s.kernel.Schedule(at, des.ClassArrive, kindArrive, i)
}

// enter admits a piece to the device.
func (s *Station) enter(i int32) {
	now, p := s.kernel.Now(), &s.pieces[i]
	if s.heat != nil {
		s.heat.enter(now)
	}
	s.inside++
	if s.rounds != nil {
		s.queue(i)
		return
	}
	accepted := now
	if s.spec.MaxIOPS > 0 {
		_, accepted = s.controller.Serve(now, s.slowed(units.Second/units.Nanos(s.spec.MaxIOPS)))
	}
	if s.others != nil {
		s.others.arrive(accepted, s)
	}
	medium := s.spec.Medium(p.offset, p.size)
	s.flights[p.slot].group.result.Medium += medium
	ltfb := s.slowed(s.firstByte())
	begin, end := s.servers.serve(accepted, p.offset, ltfb+s.slowed(s.spec.ServerRate.Time(medium)))
	p.finished = end
	s.kernel.Schedule(begin+ltfb, des.ClassArrive, kindLink, i)
}

// firstByte draws a latency to first byte.
func (s *Station) firstByte() units.Nanos {
	if s.ltfb == nil {
		return s.spec.LTFB
	}
	return s.ltfb.at(s.draws.Float64())
}

// slowed stretches a time of the device under thermal throttling.
func (s *Station) slowed(t units.Nanos) units.Nanos {
	if s.heat == nil {
		return t
	}
	return s.heat.stretch(t)
}

// leave removes a piece from the device and admits the next one.
func (s *Station) leave(i int32) {
	now, p := s.kernel.Now(), s.pieces[i]
	s.inside--
	if s.heat != nil {
		s.heat.leave(now)
	}
	s.moved.Moved += p.size
	s.idle = append(s.idle, i)
	if s.first < len(s.outside) {
		s.first++
		s.enter(s.outside[s.first-1])
		if 2*s.first > len(s.outside) { // a move per piece, however many wait
			s.outside = s.outside[:copy(s.outside, s.outside[s.first:])]
			s.first = 0
		}
	}
	f := &s.flights[p.slot]
	f.group.result.Moved += p.size
	if f.left--; f.left > 0 {
		return
	}
	if s.cache != nil {
		s.cache.release(f.blocks, p.slot)
		s.woken = append(s.woken[:0], f.waiters...)
		f.waiters = f.waiters[:0]
		s.walk(p.slot, now)
		for _, w := range s.woken {
			s.walk(w.slot, max(w.at, now))
		}
		return
	}
	_, complete := s.host.Serve(now, s.cost.Complete)
	s.kernel.Schedule(complete, des.ClassPlan, kindComplete, p.slot)
}

// walk copies resident bytes of a read from its position, until a block is missing or the read is
// complete. A fault waits for all of its fetches, and a slot for a block that another one fetches.
func (s *Station) walk(slot int32, at units.Nanos) {
	f, spec := &s.flights[slot], &s.cache.spec
	p := s.cache.walk(f.at, f.end)
	f.at += p.hit
	cost := spec.HitRate.Time(p.hit) + units.Nanos(p.maps)*spec.Map
	switch {
	case p.holder > 0:
		_, ready := s.host.Serve(at, cost)
		holder := &s.flights[p.holder-1]
		holder.waiters = append(holder.waiters, waiter{slot, ready})
		return
	case !p.missing:
		_, complete := s.host.Serve(at, cost+s.cost.Complete)
		s.kernel.Schedule(complete, des.ClassPlan, kindComplete, slot)
		return
	}
	f.group.result.Faults++
	s.fetches = s.cache.fault(f.at, s.fetches[:0])
	s.cache.hold(slot)
	f.blocks = append(f.blocks[:0], s.cache.missing...)
	cost += spec.Fault + spec.FillRate.Time(units.Bytes(len(f.blocks))*s.cache.block) +
		spec.ReclaimRate.Time(units.Bytes(s.cache.evicted)*s.cache.block)
	_, missed := s.host.Serve(at, cost)
	for _, fetch := range s.fetches {
		s.split(slot, missed, fetch)
	}
}

// complete ends the request of a slot, which then takes the next one.
func (s *Station) complete(slot int32) error {
	now, f := s.kernel.Now(), &s.flights[slot]
	g := f.group
	g.done++
	g.result.Sojourn += now - f.picked
	s.moved.Area += now
	if s.inFlight--; s.inFlight == 0 {
		s.moved.Busy += now
	}
	if s.hook != nil {
		s.hook(now, -1)
	}
	s.pick(slot)
	if g.done < len(g.reads) {
		return nil
	}
	g.result.End = now
	s.open--
	s.completed = true
	return errStop
}

// Measure runs a closed loop of the device: reads of chunk bytes at random aligned places of span
// bytes, with all slots of cfg in flight. It returns the rate of the middle of the run, when every
// slot is busy. Throughput is the closed form of this rate.
func Measure(spec Spec, cfg Config, chunk, span units.Bytes, reads int) (units.Rate, error) {
	s, err := NewStation(spec, cfg)
	if err != nil {
		return 0, err
	}
	random := rng.Stream(cfg.Seed, "flash/measure")
	places := max(int64(span/chunk), 1)
	warm := make([]Read, min(reads/4, 8*cfg.Parallel)+cfg.Parallel)
	list := make([]Read, len(warm)+reads)
	for i := range list {
		list[i] = Read{units.Bytes(random.Int64N(places)) * chunk, chunk}
	}
	// The loop is one batch. The rate is taken between two completions with all slots busy.
	var first, last units.Nanos
	completed := 0
	s.hook = func(at units.Nanos, change int) {
		if change > 0 {
			return
		}
		completed++
		switch completed {
		case len(warm):
			first = at
		case len(list) - cfg.Parallel:
			last = at
		}
	}
	if _, err := s.Batch(0, list); err != nil {
		return 0, err
	}
	return (units.Bytes(len(list)-cfg.Parallel-len(warm)) * chunk).Over(last - first), nil
}
