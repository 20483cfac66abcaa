package emulated

import (
	"math"
	"math/rand/v2"
	"sort"

	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
)

// drive is the device in its own time. It never looks at a clock: whoever holds it says until when
// things have happened.
type drive struct {
	spec   flash.Spec
	scale  float64 // from the durations of spec.LTFBShape to those of the device
	random *rand.Rand
	limit  *limit // nil = none

	inside  int
	outside []*piece      // wait to get in, in order
	accepts units.Nanos   // when the next request can be accepted, under MaxIOPS
	servers []units.Nanos // when each is next free
	link    units.Nanos   // when it is next free
	// in order of time; those of one time in the order in which they were planned
	events []event
}

// request is a read in flight.
type request struct {
	index int         // whose it is, for the owner
	ready units.Nanos // when it was asked for
	due   units.Nanos // when all of its pieces are done; valid once it was sent to done
	left  int         // pieces that are not done
	done  chan<- *request
}

// piece is a part of a request of at most MaxTransfer bytes.
type piece struct {
	of           *request
	offset, size units.Bytes
	ltfb         units.Nanos
	read         units.Nanos // when its server is done with it
}

// event is what happens to a piece at a time.
type event struct {
	at   units.Nanos
	what happening
	p    *piece
}

type happening int

const (
	passed  happening = iota // it has passed the limit and stands before the device
	arrived                  // its first byte is there
	over                     // the device is done with it
)

func newDrive(spec flash.Spec, seed uint64) *drive {
	d := &drive{spec: spec, random: rng.Stream(seed, "emulated/ltfb"), servers: make([]units.Nanos,
		spec.Servers)}
	if mean, _ := spec.LTFBShape.Moments(); mean > 0 {
		d.scale = float64(spec.LTFB) / mean
	}
	if spec.Limit != nil {
		d.limit = newLimit(*spec.Limit)
	}
	return d
}

// ask issues a request at r.ready. It must not be earlier than r.ready when it is called, but may
// be later.
func (d *drive) ask(r *request, offset, size units.Bytes) {
	part := size
	if d.spec.MaxTransfer > 0 {
		part = min(part, d.spec.MaxTransfer)
	}
	r.left, r.due = 0, r.ready
	for {
		p := &piece{of: r, offset: offset, size: min(part, size), ltfb: d.latency()}
		r.left++
		at := r.ready
		if d.limit != nil {
			at = d.limit.pass(at, p.size)
		}
		d.plan(at, passed, p)
		offset, size = offset+p.size, size-p.size
		if size <= 0 {
			return
		}
	}
}

// latency draws a latency to first byte.
func (d *drive) latency() units.Nanos {
	if d.scale == 0 {
		return d.spec.LTFB
	}
	return units.Nanos(math.Round(d.scale * float64(d.spec.LTFBShape.Quantile(d.random.Float64()))))
}

func (d *drive) plan(at units.Nanos, what happening, p *piece) {
	i := sort.Search(len(d.events), func(i int) bool { return d.events[i].at > at })
	d.events = append(d.events, event{})
	copy(d.events[i+1:], d.events[i:])
	d.events[i] = event{at, what, p}
}

// next is when something happens next; ok is false when the device is idle.
func (d *drive) next() (at units.Nanos, ok bool) {
	if len(d.events) == 0 {
		return 0, false
	}
	return d.events[0].at, true
}

// until lets everything happen that is due up to a time.
func (d *drive) until(now units.Nanos) {
	for len(d.events) > 0 && d.events[0].at <= now {
		e := d.events[0]
		d.events = d.events[:copy(d.events, d.events[1:])]
		switch e.what {
		case passed:
			d.enter(e.at, e.p)
		case arrived:
			d.plan(max(d.transfer(e.at, e.p.size), e.p.read), over, e.p)
		case over:
			d.leave(e.at, e.p)
		}
	}
}

// enter takes a piece into the device, or lets it wait outside.
func (d *drive) enter(at units.Nanos, p *piece) {
	if d.spec.QueueDepth > 0 && d.inside >= d.spec.QueueDepth {
		d.outside = append(d.outside, p)
		return
	}
	d.inside++
	if d.spec.MaxIOPS > 0 {
		at = max(at, d.accepts) + units.FromSeconds(1/float64(d.spec.MaxIOPS))
		d.accepts = at
	}
	server := &d.servers[d.choose(at, p.offset)]
	begin := max(at, *server)
	*server = begin + p.ltfb + d.spec.ServerRate.Time(wholePages(p.offset, p.size, d.spec.Page))
	p.read = *server
	d.plan(begin+p.ltfb, arrived, p)
}

// transfer returns when the link is done with bytes of which the first is there at a time. It is
// given in the order of first bytes: every request is announced a latency before its own.
func (d *drive) transfer(at units.Nanos, size units.Bytes) units.Nanos {
	if d.spec.LinkRate <= 0 {
		return at
	}
	d.link = max(d.link, at) + d.spec.LinkRate.Time(size)
	return d.link
}

// leave takes a piece out of the device and lets the next one in.
func (d *drive) leave(at units.Nanos, p *piece) {
	d.inside--
	if len(d.outside) > 0 {
		first := d.outside[0]
		d.outside = d.outside[:copy(d.outside, d.outside[1:])]
		d.enter(at, first)
	}
	r := p.of
	r.due = max(r.due, at)
	if r.left--; r.left == 0 {
		r.done <- r
	}
}

// defaultStripe is what flash.Spec states for a stripe of 0.
const defaultStripe = 4096

// choose returns the server for a read at offset that comes at a time.
func (d *drive) choose(at units.Nanos, offset units.Bytes) int {
	if d.spec.Placement == flash.PlaceByAddress {
		stripe := d.spec.Stripe
		if stripe < 1 {
			stripe = defaultStripe
		}
		return int(mix(uint64(offset/stripe)) % uint64(len(d.servers)))
	}
	// Of the idle servers the one that has rested least: the others can still serve a read that
	// ought to have come earlier. Without an idle one the first to be free.
	best := 0
	for i, free := range d.servers[1:] {
		was := d.servers[best]
		if idle := free <= at; idle && (was > at || free > was) || !idle && free < was {
			best = i + 1
		}
	}
	return best
}

// mix is the finaliser of MurmurHash3 (Appleby, public domain), which changes every bit of the
// result with every bit of v.
func mix(v uint64) uint64 {
	v = (v ^ v>>33) * 0xff51afd7ed558ccd
	v = (v ^ v>>33) * 0xc4ceb9fe1a85ec53
	return v ^ v>>33
}

// wholePages is the number of bytes of the pages that a read touches.
func wholePages(offset, size, page units.Bytes) units.Bytes {
	if page <= 1 || size == 0 {
		return size
	}
	before := offset % page
	pages := (before + size + page - 1) / page
	return pages * page
}
