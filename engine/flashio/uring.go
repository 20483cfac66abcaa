package flashio

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/windrow-sim/windrow/engine/flashio/uring"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/units"
)

// uringReader reads through one io_uring.
type uringReader struct {
	file
	ring  ring
	batch requestBatch
	host  host
}

// requestBatch shows requests of a file of a size to the package uring.
type requestBatch struct {
	reqs []Request
	size int64
}

// Len implements uring.Batch.
func (b *requestBatch) Len() int { return len(b.reqs) }

// At implements uring.Batch.
func (b *requestBatch) At(i int) (int64, []byte) { return b.reqs[i].Offset, b.reqs[i].Buf }

// Present implements uring.Batch.
func (b *requestBatch) Present(i int) int { return present(&b.reqs[i], b.size) }

var _ uring.Batch = (*requestBatch)(nil)

func openUring(h host, base file, opt Options) (Reader, error) {
	depth := opt.Parallel
	if depth == 0 {
		depth = ioengine.DefaultParallel(ioengine.Uring)
	}
	r, err := h.openRing(int(base.f.Fd()), depth, int(base.mode.Align))
	if err != nil {
		return nil, &missingError{engine: EngineUring, why: h.uringRefusal(err), cause: err}
	}
	base.mode.Engine, base.mode.Parallel = EngineUring, depth
	return &uringReader{file: base, ring: r, host: h}, nil
}

// NewRing returns a Reader through the ring of engine uring, over a Kernel that only a program
// knows, as a test's own. Threads of opt is the depth.
func NewRing(k uring.Kernel, opt SourceOptions) (Reader, error) {
	if err := opt.check(); err != nil {
		return nil, err
	}
	r, err := uring.New(k, opt.Threads, int(opt.Align))
	if err != nil {
		return nil, err
	}
	base := opt.file()
	base.mode.Engine, base.mode.Requested, base.mode.Parallel = EngineUring, EngineUring,
		opt.Threads
	return &uringReader{file: base, ring: r, host: realHost()}, nil
}

// ReadBatch implements Reader.
func (u *uringReader) ReadBatch(reqs []Request) error {
	if err := u.check(reqs); err != nil {
		return err
	}
	if len(reqs) == 0 {
		return nil
	}
	u.batch.reqs, u.batch.size = reqs, u.size
	index, err := u.ring.Read(&u.batch)
	u.batch.reqs = nil
	switch {
	case err == nil:
		for i := range reqs {
			clear(reqs[i].Buf[present(&reqs[i], u.size):])
		}
		return nil
	case index < 0:
		return fmt.Errorf("flashio: uring: %s: the ring failed: %w; open the file again, or "+
			"with engine pread", u.path, err)
	}
	return requestError(EngineUring, u.path, reqs[index], err)
}

// TimeReads makes the reader a timer.
func (u *uringReader) TimeReads(into []units.Nanos) bool {
	u.ring.Time(into)
	return true
}

// Close implements Reader.
func (u *uringReader) Close() error {
	if u.closed {
		return nil
	}
	u.closed = true
	err := u.ring.Close()
	if u.f == nil { // of NewRing
		return err
	}
	return errors.Join(err, u.f.Close())
}

// registrar is a Reader with cheaper reads into registered buffers.
type registrar interface {
	registerBuffers(bufs [][]byte) (bool, string)
}

// RegisterBuffers registers a few large buffers from AlignedBuffer that reads will go into, so that
// io_uring pins their pages once and not for every read. It replaces an earlier registration.
// Engines without registration ignore it. If the kernel refuses, reads work as before: the result
// is false and the note, a whole sentence with the remedy, says why.
func RegisterBuffers(r Reader, bufs ...[]byte) (registered bool, note string) {
	if inner, ok := find[registrar](r); ok {
		return inner.registerBuffers(bufs)
	}
	return false, ""
}

func (u *uringReader) registerBuffers(bufs [][]byte) (bool, string) {
	err := u.ring.Register(bufs)
	if err == nil {
		return true, ""
	}
	if !errors.Is(err, syscall.ENOMEM) {
		return false, fmt.Sprintf("Buffers are not registered with io_uring, which costs some "+
			"processor time per read: %v.", err)
	}
	var need units.Bytes
	for _, b := range bufs {
		need += units.Bytes(len(b))
	}
	limit := "unknown"
	if l, ok := u.host.memlock(); ok {
		limit = l.String()
	}
	return false, fmt.Sprintf("Buffers are not registered with io_uring, which costs some "+
		"processor time per read: they need %v of locked memory "+
		"and RLIMIT_MEMLOCK is %s; raise it with `ulimit -l %d` (KiB).", need, limit,
		(need+units.KiB-1)/units.KiB)
}
