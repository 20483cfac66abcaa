package emulated

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/units"
)

// Options say how a Device is read.
type Options struct {
	Parallel int // threads, or requests in flight of a ring; at least 1
	// one thread submits, as to an io_uring, instead of one thread per request in flight
	Ring bool
	Seed uint64 // of the latencies drawn from LTFBShape
	// stretch of addresses that the reads are spread over, which chooses from Spans; 0 = not known
	Span units.Bytes
}

// Device implements flashio.Reader, and io.ReaderAt for a file server.
type Device struct {
	data  io.ReaderAt
	close func() error
	opt   Options
	align int64
	zero  time.Time

	mu      sync.Mutex
	drive   *drive
	ticking bool          // the clock runs
	target  units.Nanos   // what it waits for
	sooner  chan struct{} // tells it that something is due before
	late    []lateness    // of ReadAt

	// Of the batch that is being read.
	reqs  []flashio.Request
	next  int
	errs  []error       // by request
	times []units.Nanos // by request; nil = not asked for
	wait  sync.WaitGroup
}

// New returns a Device that serves data at the pace of spec. closer, which may be nil, is called by
// Close. It refuses specifications with parts that are not emulated.
func New(data io.ReaderAt, closer func() error, spec flash.Spec, opt Options) (*Device, error) {
	refuse := func(field string) error {
		return fmt.Errorf("emulated: flash.%s is not emulated; leave it out", field)
	}
	switch {
	case spec.Servers < 1 || opt.Parallel < 1:
		return nil, fmt.Errorf("emulated: %d servers and %d requests in flight: at least one of "+
			"each is needed", spec.Servers, opt.Parallel)
	case spec.Placement != "" && spec.Placement != flash.PlaceAny &&
		spec.Placement != flash.PlaceByAddress:
		return nil, fmt.Errorf("emulated: flash.placement %q is not emulated; write any or address",
			spec.Placement)
	case spec.Sustained != nil:
		return nil, refuse("sustained")
	case spec.Background != nil:
		return nil, refuse("background")
	case spec.PageCache != nil:
		return nil, refuse("page_cache")
	}
	return &Device{
		data: data, close: closer, opt: opt, align: int64(max(spec.Align, 1)), zero: time.Now(),
		drive: newDrive(spec.Within(opt.Span), opt.Seed), sooner: make(chan struct{}, 1),
	}, nil
}

// Mode implements flashio.Reader.
func (d *Device) Mode() flashio.Mode {
	m := flashio.Mode{
		Engine: flashio.EngineEmulated, Requested: flashio.EngineEmulated,
		Align: units.Bytes(d.align), Parallel: d.opt.Parallel,
		FileSystem: "emulated", MemoryBacked: true,
		Notes: []string{"the device is emulated: bytes come from memory, times from a " +
			"specification"},
	}
	if d.opt.Ring {
		m.Notes = append(m.Notes, "one thread submits all requests, as to a ring")
	}
	return m
}

// TimeReads has the next batches write into into[i] how long the device took for request i, waiting
// included: from when its thread (or its slot of the ring) was ready for it until it was done, in
// the device's own time, which knows no late wake-ups. Requests that were not read keep what was
// there, and those beyond len(into) are not written. nil ends it. The result says that the Device
// can do it, which is always true.
func (d *Device) TimeReads(into []units.Nanos) bool {
	d.times = into
	return true
}

// ReadBatch implements flashio.Reader.
func (d *Device) ReadBatch(reqs []flashio.Request) error {
	if len(reqs) == 0 {
		return nil
	}
	d.errs = slices.Grow(d.errs[:0], len(reqs))[:len(reqs)]
	clear(d.errs)
	d.reqs, d.next = reqs, 0
	defer func() { d.reqs = nil }()
	start, parallel := d.now(), min(d.opt.Parallel, len(reqs))
	if d.opt.Ring {
		d.ring(start, parallel)
	} else {
		for range parallel {
			d.wait.Go(func() { d.thread(start) })
		}
		d.wait.Wait()
	}
	for _, err := range d.errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// thread is one reading thread: it takes the next request when the one before is complete. ready is
// when it should have been ready, had no wake-up been late.
func (d *Device) thread(ready units.Nanos) {
	done := make(chan *request, 1)
	r := &request{ready: ready, done: done}
	for d.take(r) {
		d.copy(r.index)
		d.finish(<-done)
	}
}

// ring is the one submitting thread: a request that is done makes room for the next. slots is how
// many are in flight.
func (d *Device) ring(start units.Nanos, slots int) {
	done := make(chan *request, slots)
	flying := 0
	submit := func(r *request) {
		if d.take(r) {
			flying++
			d.copy(r.index)
		}
	}
	for range slots {
		submit(&request{ready: start, done: done})
	}
	for flying > 0 {
		r := <-done
		flying--
		d.finish(r)
		submit(r)
	}
}

// take issues the next request of the batch as r; false when there is none.
func (d *Device) take(r *request) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.next < len(d.reqs) {
		i := d.next
		d.next++
		offset, size := d.reqs[i].Offset, len(d.reqs[i].Buf)
		if d.errs[i] = d.check(offset, size); d.errs[i] == nil {
			r.index = i
			d.drive.ask(r, units.Bytes(offset), units.Bytes(size))
			d.proceed()
			return true
		}
	}
	return false
}

// copy brings the bytes while the device is at work.
func (d *Device) copy(i int) {
	r := d.reqs[i]
	if _, err := d.data.ReadAt(r.Buf, r.Offset); err != nil {
		d.errs[i] = fmt.Errorf("emulated: read of %d bytes at %d: %w", len(r.Buf), r.Offset, err)
	}
}

// finish notes the time of a request that is done, and makes its bearer ready for the next.
func (d *Device) finish(r *request) {
	if r.index < len(d.times) {
		d.times[r.index] = r.due - r.ready
	}
	r.ready = r.due
}

// ErrAlign is the kind of error of reads that are not aligned to Spec.Align.
var ErrAlign = errors.New("emulated: misaligned read")

func (d *Device) check(offset int64, size int) error {
	if offset < 0 || offset%d.align != 0 || int64(size)%d.align != 0 {
		return fmt.Errorf("%w: %d bytes at %d; align both to %d", ErrAlign, size, offset, d.align)
	}
	return nil
}

// lateness is that of a caller who was let go at a time, by so much too late.
type lateness struct{ at, by units.Nanos }

// soon is how long after such a return the next read is taken for that caller's: it comes within
// microseconds, or, through a file server, a tenth of a millisecond. tooLate is what is made up for
// at most, so that a host which cannot keep up with the device falls behind for good and does not
// catch up at a pace that the device does not have.
const (
	soon    = units.Millisecond
	tooLate = 10 * units.Millisecond
)

// ReadAt implements io.ReaderAt for a file server: one request in real time, from the calling
// goroutine, beside any others. It is safe for concurrent use, as many callers at a time as there
// are. Reads that are not aligned fail with ErrAlign.
//
// A caller that comes back as soon as its last read was done, as the loops of a benchmark do, is
// taken to have come when it was due, so that late wake-ups do not make the device slower; the time
// of a single read still shows its own.
func (d *Device) ReadAt(p []byte, off int64) (int, error) {
	if err := d.check(off, len(p)); err != nil {
		return 0, err
	}
	done := make(chan *request, 1)
	r := &request{done: done}
	d.mu.Lock()
	r.ready = d.came(d.now())
	d.drive.ask(r, units.Bytes(off), units.Bytes(len(p)))
	d.proceed()
	d.mu.Unlock()

	n, err := d.data.ReadAt(p, off)
	<-done

	d.mu.Lock()
	now := d.now()
	d.late = append(d.late, lateness{now, min(now-r.due, tooLate)})
	d.mu.Unlock()
	return n, err
}

// came returns when a read that comes now ought to have come. The caller holds d.mu.
func (d *Device) came(now units.Nanos) units.Nanos {
	n := 0
	for n < len(d.late) && d.late[n].at < now-soon {
		n++
	}
	ready := now
	if n < len(d.late) {
		ready -= d.late[n].by
		n++
	}
	d.late = slices.Delete(d.late, 0, n)
	return ready
}

// Close implements flashio.Reader.
func (d *Device) Close() error {
	if d.close == nil {
		return nil
	}
	closer := d.close
	d.close = nil
	return closer()
}
