//go:build unix

package flashio

import (
	"fmt"
	"io"
	"runtime/debug"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mmapReader copies from a shared mapping of the file, as a program without its own reads would.
// Pages that were copied are given up: they stay in the page cache, and are not counted as memory
// of this process, whose budget they are not in.
type mmapReader struct {
	file
	stopwatch
	data   []byte
	mapped int // most bytes that were mapped since pages were given up
}

const (
	// aroundBytes is the most that the kernel maps around an access: small reads map more than
	// they copy.
	aroundBytes = 64 << 10
	// mappedBytes is how much may be mapped before it is given up.
	mappedBytes = 1 << 20
)

func openMmap(_ host, base file, _ Options) (Reader, error) {
	base.mode.Engine = EngineMmap
	m := &mmapReader{file: base}
	if base.size > 0 { // the system refuses to map nothing
		p, err := unix.MmapPtr(int(base.f.Fd()), 0, nil, uintptr(base.size), unix.PROT_READ,
			unix.MAP_SHARED)
		if err != nil {
			return nil, fmt.Errorf("flashio: mmap: %s: map of %d bytes: %w", base.path, base.size,
				err)
		}
		m.data = unsafe.Slice((*byte)(p), base.size)
	}
	return m, nil
}

// ReadBatch implements Reader.
func (m *mmapReader) ReadBatch(reqs []Request) error {
	if err := m.check(reqs); err != nil {
		return err
	}
	for i := range reqs {
		started := m.start(i)
		if err := m.copyOut(reqs[i]); err != nil {
			return requestError(EngineMmap, m.path, reqs[i], err)
		}
		m.stop(i, started)
		m.giveUp(len(reqs[i].Buf))
	}
	return nil
}

// giveUp gives the mapped pages up once there are many, after one more read of a length. A kernel
// that refuses only keeps them mapped.
func (m *mmapReader) giveUp(length int) {
	if m.mapped += length + aroundBytes; m.mapped >= mappedBytes {
		m.mapped = 0
		_ = unix.Madvise(m.data, unix.MADV_DONTNEED)
	}
}

// copyOut copies one request. The request lies in the mapping, but a page of it has no data behind
// it if the file was truncated or the drive failed since. The access is then a fault that would
// kill the process; here it becomes an error.
func (m *mmapReader) copyOut(r Request) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			err = m.explain(r, fault)
		}
	}()
	copy(r.Buf, m.data[r.Offset:])
	return nil
}

// explain distinguishes a truncated file from a failed drive.
func (m *mmapReader) explain(r Request, fault any) error {
	if st, err := m.f.Stat(); err == nil && st.Mode().IsRegular() &&
		st.Size() < r.Offset+int64(len(r.Buf)) {
		return io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w (%v)", unix.EIO, fault)
}

// Close implements Reader.
func (m *mmapReader) Close() error {
	if m.closed {
		return nil
	}
	m.closed = true
	if m.data != nil {
		if err := unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(m.data)),
			uintptr(len(m.data))); err != nil {
			return fmt.Errorf("flashio: mmap: %s: unmap: %w", m.path, err)
		}
		m.data = nil
	}
	return m.f.Close()
}
