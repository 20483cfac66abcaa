//go:build unix

package flashio

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapAligned maps memory.
func mapAligned(n int, align int) []byte {
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

func unmap(b []byte) error {
	if page := os.Getpagesize(); bufferAddress(b)%uintptr(page) != 0 || cap(b)%page != 0 {
		return fmt.Errorf("%d bytes at a partial page are not from AlignedBuffer; give the whole "+
			"buffer", cap(b))
	}
	return unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(b)), uintptr(cap(b)))
}
