//go:build unix

package flashio

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// AlignedBuffer returns n zero bytes outside the Go heap, at an address that is a multiple of
// align, rounded up to a power of two of at least 4096. The buffer never moves, so io_uring can
// register it, and the garbage collector does not see it: free it with FreeBuffer. The result is
// nil when n is not positive or the host is out of memory.
func AlignedBuffer(n int, align int) []byte {
	if n <= 0 || align > 1<<30 {
		return nil
	}
	page := os.Getpagesize()
	a := max(roundAlign(align), page)
	size := (n + page - 1) / page * page
	// Map up to one alignment more, then unmap the parts before the aligned start and behind the
	// end.
	whole := size + a - page
	base, err := unix.MmapPtr(-1, 0, nil, uintptr(whole), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil
	}
	head := int(-uintptr(base) & uintptr(a-1))
	trim(base, 0, head)
	trim(base, head+size, whole)
	return unsafe.Slice((*byte)(unsafe.Add(base, head)), size)[:n]
}

// trim unmaps the bytes [from, to) of a mapping. A failure leaves unused address space and nothing
// else.
func trim(base unsafe.Pointer, from, to int) {
	if to > from {
		_ = unix.MunmapPtr(unsafe.Add(base, from), uintptr(to-from))
	}
}

// FreeBuffer frees a buffer of AlignedBuffer, whole, as it was returned; nil is allowed. Neither b
// nor any part of it may be used afterwards.
func FreeBuffer(b []byte) error {
	if cap(b) == 0 {
		return nil
	}
	if page := os.Getpagesize(); bufferAddress(b)%uintptr(page) != 0 || cap(b)%page != 0 {
		return fmt.Errorf("flashio: free buffer: %d bytes at a partial page are not from "+
			"AlignedBuffer; give the whole buffer", cap(b))
	}
	if err := unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(b)), uintptr(cap(b))); err != nil {
		return fmt.Errorf("flashio: free buffer: %w", err)
	}
	return nil
}
