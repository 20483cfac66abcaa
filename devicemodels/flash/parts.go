package flash

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/windrow-sim/windrow/devicemodels/des"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
)

// servers are the parallel servers of a device.
type servers struct {
	any    *des.Station  // PlaceAny
	free   []units.Nanos // PlaceByAddress: when each is next free
	stripe units.Bytes
}

func newServers(spec *Spec) servers {
	if spec.Placement != PlaceByAddress {
		return servers{any: des.NewStation(spec.Servers)}
	}
	stripe := spec.Stripe
	if stripe < 1 {
		stripe = defaultStripe
	}
	return servers{free: make([]units.Nanos, max(spec.Servers, 1)), stripe: stripe}
}

// serve passes a read that arrives at time at to its server.
func (s *servers) serve(at units.Nanos, offset units.Bytes, service units.Nanos) (begin,
	end units.Nanos) {
	if s.any != nil {
		return s.any.Serve(at, service)
	}
	i := scatter(uint64(offset/s.stripe)) % uint64(len(s.free))
	begin = max(at, s.free[i])
	s.free[i] = begin + service
	return begin, s.free[i]
}

// scatter spreads stripe numbers evenly: the finaliser of splitmix64 (Steele, Lea and Flood, "Fast
// Splittable Pseudorandom Number Generators", 2014). To a reader, a drive's own mapping looks
// random.
func scatter(v uint64) uint64 {
	v += 0x9e3779b97f4a7c15
	v = (v ^ v>>30) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>27) * 0x94d049bb133111eb
	return v ^ v>>31
}

// rounds is the state of a device that works in rounds.
type rounds struct {
	waiting []int32 // pieces
	busy    bool    // a look or a round is under way
}

// queue adds a piece to the waiting ones and wakes an idle device.
func (s *Station) queue(i int32) {
	s.rounds.waiting = append(s.rounds.waiting, i)
	if !s.rounds.busy {
		s.rounds.busy = true
		s.kernel.Schedule(s.kernel.Now()+s.slowed(s.firstByte()), des.ClassPlan, kindLook, 0)
	}
}

// look takes all waiting pieces and background reads, and serves them one after the other.
func (s *Station) look() {
	now := s.kernel.Now()
	request := units.Nanos(0)
	if s.spec.MaxIOPS > 0 {
		request = units.Second / units.Nanos(s.spec.MaxIOPS)
	}
	if s.others != nil {
		n := s.others.count(now)
		one := request + s.spec.ServerRate.Time(s.others.spec.Chunk) +
			s.spec.LinkRate.Time(s.others.spec.Chunk)
		now += units.Nanos(n) * one
	}
	for _, i := range s.rounds.waiting {
		p := &s.pieces[i]
		medium := s.spec.Medium(p.offset, p.size)
		s.flights[p.slot].group.result.Medium += medium
		now += s.slowed(request + s.spec.ServerRate.Time(medium) + s.spec.LinkRate.Time(p.size))
		s.kernel.Schedule(now, des.ClassDone, kindDone, i)
	}
	s.rounds.waiting = s.rounds.waiting[:0]
	s.kernel.Schedule(now, des.ClassPlan, kindServed, 0)
}

// served ends a round: the device looks again or becomes idle.
func (s *Station) served() {
	if s.rounds.busy = len(s.rounds.waiting) > 0; s.rounds.busy {
		s.kernel.Schedule(s.kernel.Now()+s.slowed(s.firstByte()), des.ClassPlan, kindLook, 0)
	}
}

// bucket is the state of a Limit. Credit is counted in nanoseconds at its rates: bytes and requests
// have one unit, and no credit is lost to rounding.
type bucket struct {
	spec         Limit
	credit, most float64     // ns; of bytes
	slots, many  float64     // ns; of requests
	at           units.Nanos // the last arrival of credit
	last         units.Nanos // the passage of the last request, which later ones do not overtake
	used         bool
}

func newBucket(spec Limit) *bucket {
	b := &bucket{spec: spec}
	b.most = float64(spec.Interval)
	if spec.Rate > 0 && spec.Burst > 0 {
		b.most = math.Max(b.most, 1e9*float64(spec.Burst)/float64(spec.Rate))
	}
	b.many = float64(spec.Interval)
	if spec.IOPS > 0 { // at least one request
		b.many = math.Max(b.many, 1e9/float64(spec.IOPS))
	}
	return b
}

// pass returns the time at which a request of size bytes passes that arrives at time now. It passes
// when there is credit for it, or for as much of it as the bucket can hold; the bucket then owes
// the rest.
func (b *bucket) pass(now units.Nanos, size units.Bytes) units.Nanos {
	now = max(now, b.last)
	b.refill(now)
	bytes, request := 0.0, 0.0
	if b.spec.Rate > 0 {
		bytes = 1e9 * float64(size) / float64(b.spec.Rate)
	}
	if b.spec.IOPS > 0 {
		request = 1e9 / float64(b.spec.IOPS)
	}
	if short := math.Max(math.Min(bytes, b.most)-b.credit, math.Min(request,
		b.many)-b.slots); short > 0 {
		wait := units.Nanos(math.Ceil(short))
		if b.spec.Interval > 0 { // credit arrives in whole intervals
			wait = (wait + b.spec.Interval - 1) / b.spec.Interval * b.spec.Interval
		}
		// No credit is lost while requests wait: the rest of an interval adds to the next.
		b.credit += float64(wait)
		b.slots += float64(wait)
		b.at += wait
		now = max(now, b.at)
	}
	b.credit -= bytes
	b.slots -= request
	b.last = now
	return now
}

// refill adds the credit since the last arrival. The intervals of a full bucket start with its next
// use.
func (b *bucket) refill(now units.Nanos) {
	passed := now - b.at
	if b.spec.Interval > 0 {
		passed -= passed % b.spec.Interval
	}
	b.credit = math.Min(b.credit+float64(passed), b.most)
	b.slots = math.Min(b.slots+float64(passed), b.many)
	b.at += passed
	if full := b.credit == b.most && b.slots == b.many; !b.used || full {
		b.used, b.at = true, now
		b.credit, b.slots = b.most, b.many
	}
}

// heat is the state of Sustained. It rises with every busy nanosecond of the device, up to Cliff,
// and falls while the device is idle.
type heat struct {
	spec   Sustained
	at     units.Nanos
	heat   units.Nanos
	inside int
}

func (h *heat) until(now units.Nanos) {
	if passed := now - h.at; h.inside > 0 {
		h.heat = min(h.heat+passed, h.spec.Cliff)
	} else if h.spec.Cool > 0 {
		h.heat = max(h.heat-units.Nanos(float64(passed)*float64(h.spec.Cliff)/float64(h.spec.Cool)),
			0)
	}
	h.at = now
}

func (h *heat) enter(now units.Nanos) { h.until(now); h.inside++ }

func (h *heat) leave(now units.Nanos) { h.until(now); h.inside-- }

func (h *heat) stretch(t units.Nanos) units.Nanos {
	if h.heat < h.spec.Cliff || h.spec.Factor <= 0 {
		return t
	}
	return units.Nanos(math.Min(float64(t)/h.spec.Factor, float64(des.Last)))
}

// background generates the reads of other readers.
type background struct {
	spec   Background
	random *rand.Rand
	next   units.Nanos   // arrival of the next read
	moves  []units.Nanos // times of the first byte of reads whose transfer has not begun, in order
}

func newBackground(spec Background, seed uint64) *background {
	b := &background{spec: spec, random: rng.Stream(seed, "flash/background")}
	b.next = b.gap()
	return b
}

// gap is the time to the next read: arrivals are a Poisson process.
func (b *background) gap() units.Nanos {
	return units.Nanos(b.random.ExpFloat64() * 1e9 * float64(b.spec.Chunk) / float64(b.spec.Rate))
}

// forgotten is the age beyond which a background read has no effect: a device that is not saturated
// has completed it.
const forgotten = 100 * units.Millisecond

// arrive passes all background reads that have arrived by now to their servers.
func (b *background) arrive(now units.Nanos, s *Station) {
	if b.next < now-forgotten { // a long pause: earlier reads are complete
		b.next, b.moves = now-forgotten+b.gap(), b.moves[:0]
	}
	for b.next <= now {
		ltfb := s.firstByte()
		begin, _ := s.servers.serve(b.next, units.Bytes(b.random.Int64()),
			ltfb+s.spec.ServerRate.Time(b.spec.Chunk))
		at, _ := slices.BinarySearch(b.moves, begin+ltfb)
		b.moves = slices.Insert(b.moves, at, begin+ltfb)
		b.next += b.gap()
	}
}

// count returns the number of background reads since its last call.
func (b *background) count(now units.Nanos) (n int) {
	if b.next < now-forgotten {
		b.next = now - forgotten + b.gap()
	}
	for ; b.next <= now; b.next += b.gap() {
		n++
	}
	return n
}

// move passes all background reads whose first byte is available by now to the link.
func (b *background) move(now units.Nanos, s *Station) {
	n := 0
	for n < len(b.moves) && b.moves[n] <= now {
		s.link.Serve(b.moves[n], s.spec.LinkRate.Time(b.spec.Chunk))
		n++
	}
	b.moves = slices.Delete(b.moves, 0, n)
}
