//go:build linux && giouring

package uring

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"github.com/pawelgaczynski/giouring"
)

// Setup flags of one thread that submits and reaps, from the best to the plainest: completions run
// when that thread asks for them (Linux 6.1), without interrupting it (5.19), any kernel.
const (
	bestFlags  = giouring.SetupSingleIssuer | giouring.SetupDeferTaskrun
	goodFlags  = giouring.SetupCoopTaskrun
	plainFlags = 0
)

// giouringKernel is a ring of giouring with one registered file.
type giouringKernel struct {
	ring *giouring.Ring
	// iovecs are the registered buffers, by index.
	iovecs []syscall.Iovec
}

// openKernel makes a ring and registers fd as its only file, unless fd is negative. It must be
// called on the thread that uses the ring.
func openKernel(fd, depth int) (Kernel, error) {
	ring, err := setup(uint32(depth))
	if err != nil {
		return nil, fmt.Errorf("uring: io_uring_setup: %w", err)
	}
	k := &giouringKernel{ring: ring}
	if err := k.prepare(fd); err != nil {
		return nil, errors.Join(err, k.Close())
	}
	return k, nil
}

func setup(depth uint32) (ring *giouring.Ring, err error) {
	for _, flags := range []uint32{bestFlags, goodFlags, plainFlags} {
		ring = giouring.NewRing()
		if err = ring.QueueInit(depth, flags); !errors.Is(err, syscall.EINVAL) {
			return ring, err
		}
	}
	return ring, err
}

func (k *giouringKernel) prepare(fd int) error {
	probe, err := k.ring.GetProbeRing()
	if err != nil || !probe.IsSupported(giouring.OpRead) {
		return fmt.Errorf("uring: this kernel's io_uring cannot read (Linux 5.6 can): %w",
			syscall.ENOSYS)
	}
	if fd >= 0 {
		// The raw call: Ring.RegisterFiles passes 8-byte integers where the kernel reads 4-byte
		// ones and drops the errno.
		files := [1]int32{int32(fd)}
		if _, errno := k.ring.Register(k.ring.RingFd(), giouring.RegisterFiles,
			unsafe.Pointer(&files), 1); errno != 0 {
			return fmt.Errorf("uring: register file: %w", errno)
		}
	}
	// A registered ring saves the kernel a descriptor look-up per call. An error does no harm.
	_, _ = k.ring.RegisterRingFd()
	return nil
}

func (k *giouringKernel) Push(tag int, offset int64, buf []byte) error {
	sqe := k.ring.GetSQE()
	if sqe == nil {
		return errors.New("uring: submission queue is full")
	}
	const fileIndex = 0
	start := uintptr(unsafe.Pointer(unsafe.SliceData(buf)))
	if i := k.registered(start, len(buf)); i >= 0 {
		sqe.PrepareReadFixed(fileIndex, start, uint32(len(buf)), uint64(offset), i)
	} else {
		sqe.PrepareRead(fileIndex, start, uint32(len(buf)), uint64(offset))
	}
	sqe.SetFlags(uint32(giouring.SqeFixedFile))
	sqe.SetData64(uint64(tag))
	return nil
}

// registered returns the index of the registered buffer that holds length bytes at start, or -1.
func (k *giouringKernel) registered(start uintptr, length int) int {
	for i := range k.iovecs {
		base := uintptr(unsafe.Pointer(k.iovecs[i].Base))
		if start >= base && start+uintptr(length) <= base+uintptr(k.iovecs[i].Len) {
			return i
		}
	}
	return -1
}

func (k *giouringKernel) Wait(n int) error {
	_, err := k.ring.SubmitAndWait(uint32(n))
	return err
}

func (k *giouringKernel) Pop() (int, int32, bool) {
	if k.ring.CQReady() == 0 {
		return 0, 0, false
	}
	cqe, err := k.ring.PeekCQE()
	if err != nil || cqe == nil {
		return 0, 0, false
	}
	tag, result := int(cqe.UserData), cqe.Res
	k.ring.CQESeen(cqe)
	return tag, result, true
}

func (k *giouringKernel) Register(bufs [][]byte) error {
	if len(k.iovecs) > 0 {
		k.iovecs = nil
		if _, err := k.ring.UnregisterBuffers(); err != nil {
			return fmt.Errorf("uring: unregister buffers: %w", err)
		}
	}
	var iovecs []syscall.Iovec
	for _, b := range bufs {
		if len(b) > 0 {
			v := syscall.Iovec{Base: unsafe.SliceData(b)}
			v.SetLen(len(b))
			iovecs = append(iovecs, v)
		}
	}
	if len(iovecs) == 0 {
		return nil
	}
	if _, err := k.ring.RegisterBuffers(iovecs); err != nil {
		return fmt.Errorf("uring: register buffers: %w", err)
	}
	k.iovecs = iovecs
	return nil
}

func (k *giouringKernel) Close() error {
	k.ring.QueueExit()
	return nil
}
