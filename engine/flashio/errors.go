package flashio

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
)

// ErrEnvironment is the kind of errors about the host, which state the remedy.
var ErrEnvironment = refusal.Kind(refusal.ErrHost, "the host cannot do this")

// ErrMisaligned is wrapped by the error for a request that a direct reader cannot serve.
var ErrMisaligned = errors.New("request is not aligned for direct reads")

// ErrShort is wrapped by the error for a read that ended early and that the engine's own retries
// did not complete. Only injected faults cause it.
var ErrShort = errors.New("short read")

// requestError names the read that failed. It wraps err.
func requestError(engine Engine, path string, r Request, err error) error {
	return fmt.Errorf("flashio: %s: %s: read of %d bytes at offset %d: %w%s", engine, path,
		len(r.Buf), r.Offset, err, remedy(err))
}

// remedy returns the remedy for an error, as the end of a message.
func remedy(err error) string {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "; the file became shorter while it was open: pack it again"
	case errors.Is(err, syscall.ENOMEM):
		return "; the kernel has no memory for reads: stop other programs, or raise the limit of " +
			"this container"
	case errors.Is(err, syscall.EIO):
		return "; the drive or its file system failed: look in the kernel log"
	}
	return ""
}

// closedError is the error of a call on a closed reader.
func closedError(engine Engine, path string) error {
	return fmt.Errorf("flashio: %s: %s: %w", engine, path, os.ErrClosed)
}

// checkRequests finds the first request that cannot be served, before any read is started.
func checkRequests(m *Mode, path string, size int64, reqs []Request) error {
	align := int64(max(m.Align, 1))
	end := (size + align - 1) / align * align
	for i := range reqs {
		r := &reqs[i]
		if n := int64(len(r.Buf)); r.Offset < 0 || r.Offset > size || n > end-r.Offset {
			return boundsError(m.Engine, path, size, *r)
		}
		if m.Align > 1 && len(r.Buf) > 0 && !aligned(r, m.Align) {
			return requestError(m.Engine, path, *r,
				fmt.Errorf("%w: offset, length and buffer address (now at +%d) must be "+
					"multiples of %d; "+
					"use AlignedBuffer and plan with this alignment, or open with direct off",
					ErrMisaligned, bufferAddress(r.Buf)%uintptr(m.Align), int64(m.Align)))
		}
	}
	return nil
}

func boundsError(engine Engine, path string, size int64, r Request) error {
	if r.Offset < 0 {
		return requestError(engine, path, r, errors.New("the offset is negative"))
	}
	return fmt.Errorf("flashio: %s: %s: read of %d bytes at offset %d: %w: the file has %d bytes; "+
		"the image is shorter than its header says: pack it again", engine, path, len(r.Buf),
		r.Offset, io.ErrUnexpectedEOF, size)
}

func aligned(r *Request, align units.Bytes) bool {
	a := uint64(align)
	return uint64(r.Offset)%a == 0 && uint64(len(r.Buf))%a == 0 &&
		uint64(bufferAddress(r.Buf))%a == 0
}
