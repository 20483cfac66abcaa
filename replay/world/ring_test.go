package world

import (
	"errors"
	"math/rand/v2"
	"syscall"

	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/engine/flashio/uring"
	"github.com/windrow-sim/windrow/internal/rng"
)

// ringKernel is an io_uring of the disk: reads that were queued are calls of the disk, which ends
// them one by one.
type ringKernel struct {
	d           *disk
	queued      []*call
	flying      int
	ended       chan *call // by the disk
	ready       []*call
	interrupted float64 // chance that a wait is interrupted
	dice        *rand.Rand
}

var _ uring.Kernel = (*ringKernel)(nil)

// openRing returns a reader of the disk through the ring of engine uring.
func openRing(c *Case, d *disk, opt flashio.SourceOptions) (flashio.Reader, error) {
	return flashio.NewRing(&ringKernel{d: d, ended: make(chan *call, opt.Threads),
		interrupted: c.Faults.Interrupted, dice: rng.Stream(c.Seed, "world/ring")}, opt)
}

// Push implements uring.Kernel.
func (k *ringKernel) Push(tag int, offset int64, buf []byte) error {
	k.queued = append(k.queued, &call{tag: tag, buf: buf, offset: offset, most: len(buf),
		ring: k.ended})
	return nil
}

// Wait implements uring.Kernel.
func (k *ringKernel) Wait(n int) error {
	if k.dice.Float64() < k.interrupted {
		return syscall.EINTR
	}
	for _, c := range k.queued {
		k.d.calls <- c
	}
	k.flying += len(k.queued)
	k.queued = k.queued[:0]
	for len(k.ready) < n {
		if k.flying == 0 {
			return errors.New("world: a wait for reads that nobody asked for")
		}
		k.take(<-k.ended)
	}
	for {
		select {
		case c := <-k.ended:
			k.take(c)
			continue
		default:
		}
		return nil
	}
}

func (k *ringKernel) take(c *call) {
	k.flying--
	k.ready = append(k.ready, c)
}

// Pop implements uring.Kernel.
func (k *ringKernel) Pop() (tag int, result int32, ok bool) {
	if len(k.ready) == 0 {
		return 0, 0, false
	}
	c := k.ready[0]
	k.ready = k.ready[1:]
	var errno syscall.Errno
	if errors.As(c.errno, &errno) {
		return c.tag, -int32(errno), true
	}
	return c.tag, int32(c.n), true
}

// Register implements uring.Kernel.
func (k *ringKernel) Register([][]byte) error { return nil }

// Close implements uring.Kernel.
func (k *ringKernel) Close() error { return k.d.Close() }
