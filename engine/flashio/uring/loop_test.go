package uring

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/windrow-sim/windrow/internal/units"
)

// fakeKernel serves reads from data, in random order, and misbehaves as a real kernel may.
type fakeKernel struct {
	t        *testing.T
	dice     *rand.Rand
	data     []byte
	depth    int
	queued   []fakeRead // pushed, not submitted
	running  []fakeRead // submitted, not popped
	ready    int        // how many of running may be popped
	pushes   int
	maxUsed  int
	align    int64   // of direct reads; 0 = none
	unwell   float64 // probability of a short read, EINTR or EAGAIN
	fail     map[int64]syscall.Errno
	waitErrs []error // returned by the next waits, before anything is done
	closed   bool
	regErr   error
}

type fakeRead struct {
	tag    int
	offset int64
	buf    []byte
}

func (k *fakeKernel) Push(tag int, offset int64, buf []byte) error {
	if k.align > 0 && (offset%k.align != 0 || int64(len(buf))%k.align != 0) {
		k.t.Errorf("a read of %d bytes at %d is not aligned", len(buf), offset)
	}
	k.pushes++
	k.queued = append(k.queued, fakeRead{tag, offset, buf})
	k.maxUsed = max(k.maxUsed, len(k.queued)+len(k.running))
	if len(k.queued)+len(k.running) > k.depth {
		k.t.Errorf("%d reads in a ring of depth %d", len(k.queued)+len(k.running), k.depth)
	}
	for _, r := range k.running {
		if r.tag == tag {
			k.t.Errorf("tag %d is in flight twice", tag)
		}
	}
	return nil
}

func (k *fakeKernel) Wait(n int) error {
	if len(k.waitErrs) > 0 {
		err := k.waitErrs[0]
		k.waitErrs = k.waitErrs[1:]
		return err
	}
	k.running = append(k.running, k.queued...)
	k.queued = k.queued[:0]
	if n > len(k.running) || n < 1 {
		k.t.Errorf("wait for %d of %d reads: would sleep for ever", n, len(k.running))
	}
	k.ready = n + k.dice.IntN(len(k.running)-n+1)
	return nil
}

func (k *fakeKernel) Pop() (int, int32, bool) {
	if k.ready == 0 {
		return 0, 0, false
	}
	k.ready--
	i := k.dice.IntN(len(k.running))
	r := k.running[i]
	k.running = append(k.running[:i], k.running[i+1:]...)
	return r.tag, k.serve(r), true
}

func (k *fakeKernel) serve(r fakeRead) int32 {
	if errno := k.fail[r.offset]; errno != 0 {
		return -int32(errno)
	}
	n := len(r.buf)
	if k.dice.Float64() < k.unwell {
		switch k.dice.IntN(3) {
		case 0:
			return -int32(syscall.EINTR)
		case 1:
			return -int32(syscall.EAGAIN)
		default:
			n = 1 + k.dice.IntN(n)
		}
	}
	if r.offset >= int64(len(k.data)) {
		return 0
	}
	return int32(copy(r.buf[:n], k.data[r.offset:]))
}

func (k *fakeKernel) Register([][]byte) error { return k.regErr }
func (k *fakeKernel) Close() error            { k.closed = true; return nil }

type reads []struct {
	offset int64
	buf    []byte
}

func (r *reads) Len() int                 { return len(*r) }
func (r *reads) At(i int) (int64, []byte) { return (*r)[i].offset, (*r)[i].buf }
func (r *reads) Present(i int) int        { return len((*r)[i].buf) }

func newFake(t *testing.T, seed uint64, depth int) *fakeKernel {
	dice := rand.New(rand.NewPCG(seed, 1))
	data := make([]byte, 1<<16)
	for i := range data {
		data[i] = byte(dice.Uint32())
	}
	return &fakeKernel{t: t, dice: dice, data: data, depth: depth, fail: map[int64]syscall.Errno{}}
}

// batch makes n reads at distinct offsets with lengths from 0.
func (k *fakeKernel) batch(n int) *reads {
	b := make(reads, n)
	for i := range b {
		b[i].offset = int64(i * len(k.data) / n)
		b[i].buf = make([]byte, k.dice.IntN(300))
	}
	return &b
}

func TestLoopReadsEverythingFromAnUnwellKernel(t *testing.T) {
	for seed := range uint64(50) {
		for _, depth := range []int{1, 2, 8, 256} {
			k := newFake(t, seed, depth)
			k.unwell = 0.5
			l := newLoop(k, depth, 1)
			for range 3 { // the loop is used again
				n := 1 + k.dice.IntN(100)
				b := k.batch(n)
				if i, err := l.read(b); err != nil {
					t.Fatalf("seed %d depth %d: read %d: %v", seed, depth, i, err)
				}
				for i, r := range *b {
					want := k.data[r.offset:min(int(r.offset)+len(r.buf), len(k.data))]
					if !bytes.Equal(r.buf[:len(want)], want) {
						t.Fatalf("seed %d depth %d: read %d has wrong bytes", seed, depth, i)
					}
				}
				if len(l.free) != depth || len(k.running)+len(k.queued) != 0 {
					t.Fatalf("seed %d depth %d: %d reads are still in flight", seed, depth,
						len(k.running)+len(k.queued))
				}
			}
		}
	}
}

// TestLoopGoesOnFromABlock: a short direct read goes on from the start of a block.
func TestLoopGoesOnFromABlock(t *testing.T) {
	const align = 16
	for seed := range uint64(50) {
		k := newFake(t, seed, 4)
		k.unwell, k.align = 0.5, align
		b := make(reads, 20)
		for i := range b {
			b[i].offset, b[i].buf = int64(i*align*4), make([]byte, align*(1+k.dice.IntN(4)))
		}
		if i, err := newLoop(k, 4, align).read(&b); err != nil {
			t.Fatalf("seed %d: read %d: %v", seed, i, err)
		}
		for i, r := range b {
			if !bytes.Equal(r.buf, k.data[r.offset:][:len(r.buf)]) {
				t.Fatalf("seed %d: read %d has wrong bytes", seed, i)
			}
		}
	}
}

func TestLoopKeepsTheDeviceBusy(t *testing.T) {
	k := newFake(t, 1, 16)
	b := make(reads, 1000)
	for i := range b {
		b[i].offset, b[i].buf = int64(i), make([]byte, 8)
	}
	if _, err := newLoop(k, 16, 1).read(&b); err != nil {
		t.Fatal(err)
	}
	if k.maxUsed != 16 {
		t.Errorf("at most %d reads were in flight, want 16", k.maxUsed)
	}
	if k.pushes != 1000 {
		t.Errorf("%d pushes for 1000 reads", k.pushes)
	}
}

func TestLoopReturnsTheFirstErrorInRequestOrder(t *testing.T) {
	for seed := range uint64(100) {
		k := newFake(t, seed, 8)
		k.unwell = 0.3
		b := make(reads, 64)
		for i := range b {
			b[i].offset, b[i].buf = int64(i*1000), make([]byte, 200)
		}
		first := k.dice.IntN(60)
		k.fail[b[first].offset] = syscall.EIO
		k.fail[b[first+1+k.dice.IntN(3)].offset] = syscall.EINVAL
		l := newLoop(k, 8, 1)
		i, err := l.read(&b)
		if i != first || !errors.Is(err, syscall.EIO) {
			t.Fatalf("seed %d: read %d: %v, want read %d: EIO", seed, i, err, first)
		}
		if len(k.running)+len(k.queued) != 0 || len(l.free) != 8 {
			t.Fatalf("seed %d: reads are in flight after the error", seed)
		}
		for i := range first {
			if !bytes.Equal(b[i].buf, k.data[b[i].offset:][:200]) {
				t.Fatalf("seed %d: read %d before the failed one is not complete", seed, i)
			}
		}
	}
}

// TestLoopTimesReads: a clock that moves a millisecond with every look at it bounds each time by
// the looks between its read's push and its pop, and reads that are not asked about cost no look.
func TestLoopTimesReads(t *testing.T) {
	for _, depth := range []int{1, 8} {
		k := newFake(t, 1, depth)
		k.unwell = 0.3
		l := newLoop(k, depth, 1)
		looks := 0
		l.now = func() time.Time {
			looks++
			return time.Unix(0, int64(looks)*int64(units.Millisecond))
		}
		const n, timed = 40, 25
		b := k.batch(n)
		(*b)[4].buf = nil
		l.times = make([]units.Nanos, timed)
		for i := range l.times {
			l.times[i] = -1
		}
		if _, err := l.read(b); err != nil {
			t.Fatal(err)
		}
		empty := 0
		for i, at := range l.times {
			if len((*b)[i].buf) == 0 {
				empty++
				if at != 0 {
					t.Errorf("the empty read %d took %v", i, at)
				}
			} else if at < units.Millisecond || at > units.Nanos(2*depth)*units.Millisecond*8 {
				t.Errorf("depth %d: read %d took %v", depth, i, at)
			} else if depth == 1 && at != units.Millisecond {
				t.Errorf("read %d took %v, want 1 ms", i, at)
			}
		}
		if looks != 2*(timed-empty) {
			t.Errorf("depth %d: %d looks at the clock for %d reads", depth, looks, timed-empty)
		}
		l.times = nil
		if _, err := l.read(k.batch(n)); err != nil || looks != 2*(timed-empty) {
			t.Errorf("without times: %v, %d looks", err, looks)
		}
	}
}

func TestLoopEndOfFile(t *testing.T) {
	k := newFake(t, 1, 4)
	b := reads{{0, make([]byte, 10)}, {int64(len(k.data)) - 5, make([]byte, 10)}}
	if i, err := newLoop(k, 4, 1).read(&b); i != 1 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("read %d: %v, want read 1: unexpected EOF", i, err)
	}
}

func TestLoopSurvivesInterruptedWaits(t *testing.T) {
	k := newFake(t, 1, 4)
	k.waitErrs = []error{syscall.EINTR, syscall.EAGAIN, syscall.EBUSY}
	if i, err := newLoop(k, 4, 1).read(k.batch(10)); err != nil {
		t.Errorf("read %d: %v", i, err)
	}
}

func TestLoopGivesUp(t *testing.T) {
	k := newFake(t, 1, 4)
	k.fail[1000] = syscall.EAGAIN
	b := reads{{0, make([]byte, 10)}, {1000, make([]byte, 10)}}
	if i, err := newLoop(k, 4, 1).read(&b); i != 1 || !errors.Is(err, syscall.EAGAIN) {
		t.Errorf("endless EAGAIN: read %d: %v", i, err)
	}
	k = newFake(t, 1, 4)
	for range MaxTries + 1 {
		k.waitErrs = append(k.waitErrs, syscall.EINTR)
	}
	if i, err := newLoop(k, 4, 1).read(&b); i != -1 || err == nil {
		t.Errorf("endless EINTR of wait: read %d: %v", i, err)
	}
}

func TestRingBreaksForGood(t *testing.T) {
	k := newFake(t, 1, 4)
	r, err := open(4, 1, func() (Kernel, error) { return k, nil })
	if err != nil {
		t.Fatal(err)
	}
	k.waitErrs = []error{syscall.EBADF}
	for range 2 {
		if i, err := r.Read(k.batch(10)); i != -1 || !errors.Is(err, syscall.EBADF) {
			t.Errorf("read %d: %v, want -1 and EBADF", i, err)
		}
	}
	for range 2 {
		if err := r.Close(); err != nil || !k.closed {
			t.Errorf("close: %v, closed %v", err, k.closed)
		}
	}
	if _, err := r.Read(k.batch(1)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("read after close: %v", err)
	}
	if err := r.Register(nil); !errors.Is(err, os.ErrClosed) {
		t.Errorf("register after close: %v", err)
	}
}

func TestOpenErrors(t *testing.T) {
	if _, err := open(1, 1, func() (Kernel, error) {
		return nil, fmt.Errorf("setup: %w",
			syscall.EPERM)
	}); !errors.Is(err, syscall.EPERM) {
		t.Errorf("refused setup: %v", err)
	}
	for _, depth := range []int{-1, 0, MaxDepth + 1} {
		if _, err := Open(0, depth, 1); err == nil {
			t.Errorf("depth %d was accepted", depth)
		}
	}
}
