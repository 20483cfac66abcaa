// Package emulated is a flash device of known specification behind flashio.Reader: real threads that really wait, over bytes
// that are already in memory. It exists to check the simulator where no steady device is at hand: the replay on it runs the
// whole engine in real time, and the simulation of the same specification must agree. A Run measured on it says "emulated".
//
// It shares no code with the simulator's station: servers are tokens in a channel, the link is a queue behind a lock, and time
// is the wall clock. Go's timers are late by up to a millisecond. A thread that wakes late does not make the device slower:
// the next service starts when the last one should have ended, and transfers keep the order in which they should have begun, so
// only the last wake-up of a batch shows. Use specifications of milliseconds.
package emulated

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/units"
)

// Device implements flashio.Reader.
type Device struct {
	data     io.ReaderAt
	close    func() error
	flash    devicemodels.Flash
	parallel int
	align    int64

	servers chan time.Time // one token per server: when it is next free
	mu      sync.Mutex
	link    time.Time   // when the link is next free
	waiting []*transfer // begun services whose transfer is not yet settled, by first byte

	next atomic.Int64
	errs []error // by request
	wait sync.WaitGroup
}

// New returns a Device that serves data at the pace of flash, with the given number of threads. The host costs of
// flash.Engines are not emulated: the real ones are there. closer, which may be nil, is called by Close.
func New(data io.ReaderAt, closer func() error, flash devicemodels.Flash, parallel int) (*Device, error) {
	if flash.Servers < 1 || parallel < 1 {
		return nil, fmt.Errorf("emulated: %d servers and %d threads: at least one of each is needed", flash.Servers, parallel)
	}
	if flash.MaxIOPS > 0 {
		return nil, fmt.Errorf("emulated: an IOPS ceiling is not emulated; leave flash.max_iops out")
	}
	d := &Device{data: data, close: closer, flash: flash, parallel: parallel, align: int64(max(flash.Align, 1)),
		servers: make(chan time.Time, flash.Servers)}
	for range flash.Servers {
		d.servers <- time.Time{}
	}
	return d, nil
}

// Mode implements flashio.Reader.
func (d *Device) Mode() flashio.Mode {
	return flashio.Mode{
		Engine: flashio.EngineEmulated, Requested: flashio.EngineEmulated, Align: units.Bytes(d.align), Parallel: d.parallel,
		FileSystem: "emulated", MemoryBacked: true,
		Notes: []string{"the device is emulated: bytes come from memory, times from a specification"},
	}
}

// ReadBatch implements flashio.Reader.
func (d *Device) ReadBatch(reqs []flashio.Request) error {
	if len(reqs) == 0 {
		return nil
	}
	d.errs = slices.Grow(d.errs[:0], len(reqs))[:len(reqs)]
	clear(d.errs)
	d.next.Store(0)
	start := time.Now()
	for range min(d.parallel, len(reqs)) {
		d.wait.Add(1)
		go d.thread(start, reqs)
	}
	d.wait.Wait()
	for _, err := range d.errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// thread is one reading thread: it takes the next request when the one before is complete. ready is when it should have
// been ready, had no wake-up been late.
func (d *Device) thread(ready time.Time, reqs []flashio.Request) {
	defer d.wait.Done()
	for {
		i := int(d.next.Add(1) - 1)
		if i >= len(reqs) {
			return
		}
		r := reqs[i]
		if r.Offset%d.align != 0 || int64(len(r.Buf))%d.align != 0 {
			d.errs[i] = fmt.Errorf("emulated: read of %d bytes at %d is not aligned to %d", len(r.Buf), r.Offset, d.align)
			continue
		}
		ready = d.serve(ready, units.Bytes(len(r.Buf)))
		if _, err := d.data.ReadAt(r.Buf, r.Offset); err != nil {
			d.errs[i] = fmt.Errorf("emulated: read of %d bytes at %d: %w", len(r.Buf), r.Offset, err)
		}
	}
}

// serve waits as long as the device takes and returns when it was done.
func (d *Device) serve(ready time.Time, size units.Bytes) time.Time {
	begin := later(ready, <-d.servers)
	first := begin.Add(time.Duration(d.flash.LTFB))
	end := first.Add(time.Duration(d.flash.ServerRate.Time(size)))
	t := &transfer{first: first, takes: time.Duration(d.flash.LinkRate.Time(size))}
	d.begin(t)
	time.Sleep(time.Until(first))
	d.settle(first)
	time.Sleep(time.Until(end))
	d.servers <- end
	time.Sleep(time.Until(t.over))
	return later(end, t.over)
}

// transfer is the use of the link by one request.
type transfer struct {
	first time.Time // when its first byte is there
	takes time.Duration
	over  time.Time // when the link is done with it; known once settled
}

// begin announces a transfer, an LTFB before its first byte: late wake-ups are shorter than that, so that every transfer is
// announced before its turn.
func (d *Device) begin(t *transfer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, _ := slices.BinarySearchFunc(d.waiting, t.first, func(w *transfer, first time.Time) int { return w.first.Compare(first) })
	d.waiting = slices.Insert(d.waiting, at, t)
}

// settle gives the link to all transfers whose first byte is there at a time, in order.
func (d *Device) settle(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, t := range d.waiting {
		if t.first.After(at) {
			break
		}
		d.link = later(d.link, t.first).Add(t.takes)
		t.over = d.link
		n++
	}
	d.waiting = slices.Delete(d.waiting, 0, n)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
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
