package uring

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/windrow-sim/windrow/internal/units"
)

// Batch is the list of reads of one call.
type Batch interface {
	// Len is the number of reads.
	Len() int
	// At returns the file offset of read i and the buffer that it fills completely.
	At(i int) (offset int64, buf []byte)
	// Present is the number of bytes of read i that the file has. A direct read may be rounded up
	// beyond its end.
	Present(i int) int
}

// Kernel has the operations of an io_uring that a Ring needs.
type Kernel interface {
	// Push queues one read under a tag. There are never more than depth tags in flight, so there is
	// room.
	Push(tag int, offset int64, buf []byte) error
	// Wait hands the queued reads to the kernel and returns when at least n completions can be
	// popped.
	Wait(n int) error
	// Pop takes one completion: the bytes that were read, or an errno below 0. ok is false when
	// none is ready.
	Pop() (tag int, result int32, ok bool)
	// Register makes reads into bufs skip the pinning of pages. It replaces an earlier
	// registration.
	Register(bufs [][]byte) error
	Close() error
}

// What this ring and the pool of threads share.
const (
	// MaxTries bounds how often in a row a read may fail with EINTR or EAGAIN or bring no whole
	// block, or a wait may end without a completion.
	MaxTries = 1000
	// MaxStarved bounds how often in a row a call may fail with ENOMEM. Between two of them is a
	// Backoff, of about a second in all.
	MaxStarved = 64
	// MaxPiece is the largest single read: Linux moves at most 2 GiB less a page per call.
	MaxPiece = 1 << 30
)

// flight is the state of one read in flight.
type flight struct {
	index int       // in the batch
	done  int       // bytes already read
	tries int       // interrupted attempts since the last progress
	since time.Time // when it was queued, if it is timed
}

// loop runs batches over a kernel. Its memory is allocated once, for depth reads.
type loop struct {
	k       Kernel
	align   int      // of the file's reads; 1 = none
	flights []flight // by tag
	free    []int    // tags not in flight

	times []units.Nanos // of the reads of a batch, by index; reads beyond its end are not timed
	now   func() time.Time
	// starved counts the calls that failed with ENOMEM
	starved atomic.Int64
}

func newLoop(k Kernel, depth, align int) *loop {
	l := &loop{k: k, align: align, flights: make([]flight, depth), free: make([]int, depth),
		now: time.Now}
	for i := range l.free {
		l.free[i] = depth - 1 - i
	}
	return l
}

// read fills every buffer of b. On failure it returns the lowest index that failed, after every
// read in flight has ended; reads behind the failed one are not started. Index -1 means that the
// ring itself failed: reads may then still be in flight and the ring must be closed.
func (l *loop) read(b Batch) (int, error) {
	end, next, idle := b.Len(), 0, 0
	var failure error
	for {
		for next < end && len(l.free) > 0 {
			if err := l.start(b, next); err != nil {
				return -1, err
			}
			next++
		}
		inFlight := len(l.flights) - len(l.free)
		if inFlight == 0 {
			break
		}
		err := l.k.Wait(l.worthWaiting(inFlight, end-next))
		starved := l.backOff(err, idle)
		if err != nil && (!Transient(err) || starved && idle >= MaxStarved) {
			return -1, fmt.Errorf("uring: io_uring_enter: %w", err)
		}
		idle++
		for {
			tag, result, ok := l.k.Pop()
			if !ok {
				break
			}
			idle = 0
			index, err := l.finish(b, tag, result)
			if err == nil {
				continue
			}
			if index < 0 {
				return -1, err
			}
			if index < end {
				end, failure = index, err
			}
		}
		if idle > MaxTries {
			return -1, fmt.Errorf("uring: io_uring_enter: no completion in %d waits with %d "+
				"reads in flight", idle, inFlight)
		}
	}
	if failure != nil {
		return end, failure
	}
	return 0, nil
}

// worthWaiting returns the number of completions to sleep for. With nothing left to start, only the
// last one matters; otherwise an eighth of the reads in flight keeps the device busy at an eighth
// of the system calls.
func (l *loop) worthWaiting(inFlight, left int) int {
	switch {
	case left > 0:
		return max(1, inFlight/8)
	case len(l.times) > 0:
		return 1 // timed reads are reaped one by one
	}
	return inFlight // left is below 0 after a failure
}

// start puts read i in flight; an empty read is complete at once.
func (l *loop) start(b Batch, i int) error {
	offset, buf := b.At(i)
	if len(buf) == 0 {
		if i < len(l.times) {
			l.times[i] = 0
		}
		return nil
	}
	tag := l.free[len(l.free)-1]
	l.free = l.free[:len(l.free)-1]
	l.flights[tag] = flight{index: i}
	if i < len(l.times) {
		l.flights[tag].since = l.now()
	}
	return l.k.Push(tag, offset, buf[:min(len(buf), MaxPiece)])
}

// finish takes one completion: it ends the read, or queues the rest of it again. The index is -1
// when the ring failed.
func (l *loop) finish(b Batch, tag int, result int32) (int, error) {
	if tag < 0 || tag >= len(l.flights) {
		return -1, fmt.Errorf("uring: completion of unknown read %d", tag)
	}
	f := &l.flights[tag]
	offset, buf := b.At(f.index)
	there := b.Present(f.index)
	switch errno := syscall.Errno(-result); {
	case result == 0:
		return l.end(tag), io.ErrUnexpectedEOF
	case result < 0 && !Transient(errno):
		return l.end(tag), errno
	default:
		done := Continue(f.done, int(result), there, l.align)
		if f.tries++; done > f.done {
			f.done, f.tries = done, 0
		}
		starved := result < 0 && l.backOff(errno, f.tries)
		if f.tries > MaxTries || starved && f.tries > MaxStarved {
			if result > 0 {
				return l.end(tag), GaveUp(f.tries, nil)
			}
			return l.end(tag), GaveUp(f.tries, errno)
		}
	}
	if f.done >= there {
		l.end(tag)
		return 0, nil
	}
	rest := buf[f.done:]
	if err := l.k.Push(tag, offset+int64(f.done), rest[:min(len(rest), MaxPiece)]); err != nil {
		return -1, err
	}
	return 0, nil
}

// end frees a tag and returns the index of its read.
func (l *loop) end(tag int) int {
	l.free = append(l.free, tag)
	f := &l.flights[tag]
	if f.index < len(l.times) {
		l.times[f.index] = units.Nanos(l.now().Sub(f.since))
	}
	return f.index
}

// Continue returns how many bytes of a read of size bytes are done after a call that began at done
// and read n: all, or whole blocks, since a direct read cannot go on within a block.
func Continue(done, n, size, align int) int {
	end := done + max(n, 0)
	if end >= size {
		return size
	}
	return end / align * align
}

// GaveUp is the error of a read that did not go on for so many calls. err is that of the last call,
// nil for one that brought less than a block: there the file ends.
func GaveUp(tries int, err error) error {
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("gave up after %d tries: %w", tries, err)
}

// backOff waits after a call that failed for want of memory, and counts it.
func (l *loop) backOff(err error, tries int) bool {
	if !Starved(err) {
		return false
	}
	l.starved.Add(1)
	time.Sleep(Backoff(tries))
	return true
}

// Starved reports whether a call failed for want of the kernel's memory. Others may give some back.
func Starved(err error) bool { return errors.Is(err, syscall.ENOMEM) }

// Backoff is the wait before a starved call is repeated, after so many tries: from 10 µs to 20 ms.
func Backoff(tries int) time.Duration {
	const first, longest, doublings = 10 * time.Microsecond, 20 * time.Millisecond, 11
	return min(first<<min(max(tries, 0), doublings), longest)
}

// Transient reports whether the same call can succeed when repeated: at once, or after a Backoff if
// it is Starved.
func Transient(err error) bool {
	return errors.Is(err, syscall.EINTR) || errors.Is(err, syscall.EAGAIN) ||
		errors.Is(err, syscall.EBUSY) || Starved(err)
}
