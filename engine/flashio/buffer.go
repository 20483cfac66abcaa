package flashio

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/windrow-sim/windrow/internal/units"
)

// inUse is the memory of all buffers that were not freed. It is of the process, as its address
// space is.
var inUse atomic.Int64

// BuffersInUse returns the memory of all AlignedBuffers of this program that were not freed.
func BuffersInUse() units.Bytes { return units.Bytes(inUse.Load()) }

// AlignedBuffer returns n zero bytes at an address that is a multiple of align, rounded up to a
// power of two of at least 4096. Free it with FreeBuffer: on Unix it is outside the Go heap, so
// that it never moves, io_uring can register it, and the garbage collector does not see it. The
// result is nil when n is not positive or the host is out of memory.
func AlignedBuffer(n int, align int) []byte {
	if n <= 0 || align > 1<<30 {
		return nil
	}
	b := mapAligned(n, align)
	inUse.Add(int64(cap(b)))
	return b
}

// FreeBuffer frees a buffer of AlignedBuffer, whole, as it was returned; nil is allowed. Neither b
// nor any part of it may be used afterwards.
func FreeBuffer(b []byte) error {
	if cap(b) == 0 {
		return nil
	}
	if err := unmap(b); err != nil {
		return fmt.Errorf("flashio: free buffer: %w", err)
	}
	inUse.Add(-int64(cap(b)))
	return nil
}

// minAlign is the least alignment of an AlignedBuffer: a memory page, and more than any drive
// needs.
const minAlign = 4096

// roundAlign returns the alignment to use for a wish: at least minAlign and a power of two.
func roundAlign(align int) int {
	a := minAlign
	for a < align {
		a *= 2
	}
	return a
}

func bufferAddress(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
