package flashio

import "unsafe"

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
