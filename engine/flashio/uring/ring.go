package uring

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/windrow-sim/windrow/internal/units"
)

// ErrNotBuilt: the program has no io_uring code.
var ErrNotBuilt = errors.New("uring: this program was built without io_uring; on Linux build it " +
	"with " +
	"-tags=giouring -ldflags=-checklinkname=0 (`make build` does)")

// MaxDepth is the largest queue depth that the kernel accepts.
const MaxDepth = 32768

// Ring reads one file. It is not safe for concurrent use.
type Ring struct {
	work   chan job
	answer chan outcome
	times  []units.Nanos
	closed bool
	loop   *loop
}

// job is one request to the ring's thread: a batch to read, or buffers to register.
type job struct {
	batch Batch
	times []units.Nanos // of the batch's reads
	bufs  [][]byte
}

type outcome struct {
	index int
	err   error
}

// Open makes a ring of the given depth for the file behind descriptor fd, which must stay open
// until Close returns. Reads are aligned to align bytes, at least 1. The error wraps ErrNotBuilt,
// or the kernel's errno.
func Open(fd, depth, align int) (*Ring, error) {
	if depth < 1 || depth > MaxDepth {
		return nil, fmt.Errorf("uring: depth %d is outside 1..%d", depth, MaxDepth)
	}
	return open(depth, align, func() (Kernel, error) { return openKernel(fd, depth) })
}

// New makes a ring over a Kernel that only the caller knows, as a test's own. The ring closes it.
func New(k Kernel, depth, align int) (*Ring, error) {
	return open(depth, align, func() (Kernel, error) { return k, nil })
}

// Probe returns nil if this program can read through io_uring on this host, else the error that
// Open would return.
func Probe() error {
	r, err := open(1, 1, func() (Kernel, error) { return openKernel(-1, 1) })
	if err != nil {
		return err
	}
	return r.Close()
}

func open(depth, align int, openKernel func() (Kernel, error)) (*Ring, error) {
	r := &Ring{work: make(chan job), answer: make(chan outcome),
		loop: newLoop(nil, depth, align)}
	go r.serve(openKernel)
	if o := <-r.answer; o.err != nil {
		return nil, o.err
	}
	return r, nil
}

// serve owns the kernel ring. It ends without unlocking its thread, so that the thread ends too:
// only then does the kernel free the state of a registered ring.
func (r *Ring) serve(openKernel func() (Kernel, error)) {
	runtime.LockOSThread()
	k, err := openKernel()
	r.answer <- outcome{0, err}
	if err != nil {
		return
	}
	l := r.loop
	l.k = k
	var broken error
	for j := range r.work {
		switch {
		case broken != nil:
			r.answer <- outcome{-1, broken}
		case j.batch != nil:
			o := outcome{}
			l.times = j.times
			if o.index, o.err = l.read(j.batch); o.err != nil && o.index < 0 {
				broken = o.err
			}
			r.answer <- o
		default:
			r.answer <- outcome{0, k.Register(j.bufs)}
		}
	}
	r.answer <- outcome{0, k.Close()}
}

// Read fills every buffer of b, in any order, and returns when no read is in flight any more. On
// failure it returns the lowest index that failed; index -1 means that the ring itself failed for
// good.
func (r *Ring) Read(b Batch) (int, error) {
	if r.closed {
		return -1, os.ErrClosed
	}
	r.work <- job{batch: b, times: r.times}
	o := <-r.answer
	return o.index, o.err
}

// Time makes the next calls of Read store in into[i] the time of read i, from its queueing until
// the ring saw its completion. Reads beyond the end of into are not timed; nil ends the
// measurement.
func (r *Ring) Time(into []units.Nanos) { r.times = into }

// Starved is the number of calls so far that failed for want of memory and were repeated.
func (r *Ring) Starved() int64 { return r.loop.starved.Load() }

// Register makes reads into bufs cheaper: their pages are pinned once, not per read. It is meant
// for a few large buffers outside the Go heap, and replaces an earlier registration. On an error,
// typically ENOMEM under RLIMIT_MEMLOCK, nothing is registered and reads work as before.
func (r *Ring) Register(bufs [][]byte) error {
	if r.closed {
		return os.ErrClosed
	}
	r.work <- job{bufs: bufs}
	return (<-r.answer).err
}

// Close ends the ring and its thread. A second Close returns nil.
func (r *Ring) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	close(r.work)
	return (<-r.answer).err
}
