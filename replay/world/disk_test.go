package world

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"syscall"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
)

// diskPath is the name of the simulated file in errors.
const diskPath = "disk.flash.safetensors"

// disk is a simulated file on a simulated device: a flashio.Source. Its goroutine serve has all of
// its state.
type disk struct {
	data    []byte
	align   int64
	station *flash.Station
	faults  atomic.Pointer[Faults] // replaced by heal, which another goroutine calls
	dice    *rand.Rand
	zero    time.Time

	calls  chan *call
	stop   chan struct{}
	ended  chan struct{}
	active []*call // with the device or on their way back
	count  int     // calls so far
	size   int64
	beyond bool // a read went beyond it
	ids    int
	moved  units.Bytes // read so far
	wrong  []string    // what no caller may do, and what the station found
}

// call is one pread.
type call struct {
	id     int
	buf    []byte
	offset int64
	most   int         // bytes that it reads at most
	errno  error       // that it ends with
	due    units.Nanos // when it ends; not known while the device is asked
	late   units.Nanos // that it ends after the device
	asked  bool
	group  flash.Group
	n      int
	done   chan struct{} // closed when it ends
	ring   chan<- *call  // gets it when it ends, instead; nil for a thread's
	tag    int           // of the ring
}

// newDisk returns a file in the bubble of the caller. stop ends it.
func newDisk(c *Case, data []byte, station *flash.Station) *disk {
	d := &disk{data: data, align: int64(c.Layout.Align), station: station,
		dice: rng.Stream(c.Seed, "world/faults"), zero: time.Now(), calls: make(chan *call, 64),
		stop: make(chan struct{}), ended: make(chan struct{}), size: int64(len(data))}
	d.faults.Store(&c.Faults)
	go d.serve()
	return d
}

func (d *disk) now() units.Nanos { return units.Nanos(time.Since(d.zero)) }

// Pread implements flashio.Source.
func (d *disk) Pread(buf []byte, offset int64) (int, error) {
	c := &call{buf: buf, offset: offset, most: len(buf), done: make(chan struct{})}
	d.calls <- c
	<-c.done
	return c.n, c.errno
}

// Close implements flashio.Source.
func (d *disk) Close() error {
	close(d.stop)
	<-d.ended
	return nil
}

// serve acts whenever all others wait: it takes the new calls, or ends one call, or sleeps until
// something happens.
func (d *disk) serve() {
	defer close(d.ended)
	for {
		synctest.Wait()
		d.take()
		if c := d.complete(); c != nil {
			d.finish(c)
			continue
		}
		var timer <-chan time.Time
		if at, ok := d.next(); ok {
			timer = time.After(time.Duration(at - d.now()))
		}
		select {
		case c := <-d.calls:
			d.calls <- c // take sorts it among the others
		case <-timer:
		case <-d.stop:
			if len(d.active) > 0 {
				d.wrong = append(d.wrong, fmt.Sprintf("closed with %d reads in flight",
					len(d.active)))
			}
			return
		}
	}
}

// take begins the calls that have come, in the order of their offsets.
func (d *disk) take() {
	var list []*call
	for {
		select {
		case c := <-d.calls:
			list = append(list, c)
			continue
		default:
		}
		break
	}
	slices.SortFunc(list, func(a, b *call) int {
		return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(len(a.buf), len(b.buf)))
	})
	for _, c := range list {
		d.begin(c)
	}
}

// begin decides what becomes of a call.
func (d *disk) begin(c *call) {
	faults := d.faults.Load()
	d.count++
	d.ids++
	c.id = d.ids
	d.active = append(d.active, c)
	for i := range c.buf {
		c.buf[i] = 0xa5 // poison: the engine must not use it before the call ends
	}
	if faults.Truncated == d.count {
		d.size = d.size * 3 / 4
	}
	if c.errno = d.fault(c); c.errno != nil {
		c.due = d.now() + units.Nanos(1+d.dice.Int64N(50_000))
		return
	}
	if d.dice.Float64() < faults.Short && len(c.buf) > 1 {
		c.most = 1 + d.dice.IntN(len(c.buf)-1)
	}
	if d.dice.Float64() < faults.Late {
		c.late = units.Nanos(1 + d.dice.Int64N(1_000_000))
	}
	var err error
	c.asked = true
	if c.group, err = d.station.Submit(d.now(), flash.Demand, []flash.Read{{
		Offset: units.Bytes(c.offset), Length: units.Bytes(len(c.buf))}}); err != nil {
		d.wrong = append(d.wrong, err.Error())
	}
}

// fault returns the error of a call, or nil.
func (d *disk) fault(c *call) error {
	f, end := d.faults.Load(), c.offset+int64(len(c.buf))
	switch address := int64(uintptr(unsafe.Pointer(unsafe.SliceData(c.buf)))); {
	case len(c.buf) == 0 || (c.offset|int64(len(c.buf))|address)%d.align != 0:
		d.wrong = append(d.wrong, fmt.Sprintf("a read of %d bytes at %d is not aligned to %d",
			len(c.buf), c.offset, d.align))
		return syscall.EINVAL
	case f.EIO == d.count:
		return syscall.EIO
	case f.NoMemory > 0 && d.count >= f.NoMemory: // from then on: a starved call is repeated
		return syscall.ENOMEM
	case f.Bad > 0 && c.offset <= f.Bad && f.Bad < end:
		return syscall.EIO
	case d.dice.Float64() < f.Interrupted:
		return syscall.EINTR
	case d.dice.Float64() < f.Again:
		if d.count%2 == 0 {
			return syscall.ENOMEM
		}
		return syscall.EAGAIN
	}
	return nil
}

// complete returns the first call that ends now, nil for none.
func (d *disk) complete() *call {
	now := d.now()
	if err := d.station.Advance(now); err != nil {
		d.wrong = append(d.wrong, err.Error())
	}
	var first *call
	for _, c := range d.active {
		if c.asked && d.station.Done(c.group) {
			result, err := d.station.Take(c.group)
			if err != nil {
				d.wrong = append(d.wrong, err.Error())
			}
			c.asked, c.due = false, result.End+c.late
		}
		if !c.asked && c.due <= now && (first == nil || c.due < first.due) {
			first = c // active is in the order of ids
		}
	}
	return first
}

// next returns when something happens next.
func (d *disk) next() (at units.Nanos, ok bool) {
	at, ok = d.station.Due()
	for _, c := range d.active {
		if !c.asked && (!ok || c.due < at) {
			at, ok = c.due, true
		}
	}
	return at, ok
}

// finish ends a call.
func (d *disk) finish(c *call) {
	d.active = slices.DeleteFunc(d.active, func(other *call) bool { return other == c })
	if c.errno == nil {
		d.beyond = d.beyond || c.offset+int64(len(c.buf)) > d.size
		end := max(min(c.offset+int64(c.most), d.size), c.offset)
		c.n = copy(c.buf, d.data[min(c.offset, end):end])
		d.moved += units.Bytes(c.n)
	}
	if c.ring != nil {
		c.ring <- c
		return
	}
	close(c.done)
}
