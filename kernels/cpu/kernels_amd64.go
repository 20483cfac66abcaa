//go:build !purego

package cpu

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// hasAVX2 is set once, when the program starts, and never changes.
var hasAVX2 = cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasF16C

func features() string {
	if hasAVX2 {
		return "avx2+fma+f16c"
	}
	return "generic"
}

func dot(w []uint16, x []float32, ahead int) float32 {
	if !hasAVX2 {
		return dotGeneric(w, x)
	}
	return dotAVX2(unsafe.SliceData(w), unsafe.SliceData(x), len(w), ahead)
}

func axpy(a float32, w []uint16, y []float32, ahead int) {
	if !hasAVX2 {
		axpyGeneric(a, w, y)
		return
	}
	axpyAVX2(a, unsafe.SliceData(w), unsafe.SliceData(y), len(w), ahead)
}

func dotF32(a, b []float32) float32 {
	if !hasAVX2 {
		return dotF32Generic(a, b)
	}
	return dotF32AVX2(unsafe.SliceData(a), unsafe.SliceData(b), len(a))
}

func axpyF32(a float32, x, y []float32) {
	if !hasAVX2 {
		axpyF32Generic(a, x, y)
		return
	}
	axpyF32AVX2(a, unsafe.SliceData(x), unsafe.SliceData(y), len(x))
}

func widen(dst []float32, src []uint16) {
	if !hasAVX2 {
		widenGeneric(dst, src)
		return
	}
	for len(src) > 0 {
		n := min(len(src), longestCall/4)
		widenAVX2(unsafe.SliceData(dst), unsafe.SliceData(src), n)
		dst, src = dst[n:], src[n:]
	}
}

const (
	// longestCall bounds the bytes that one call reads or writes where they are not one row: the scheduler cannot stop a
	// goroutine inside assembly, and a garbage collection would wait for it.
	longestCall = 1 << 20
	// streamBlock is the unit of streamAVX2 in bytes.
	streamBlock = 256
)

func stream(b []byte) uint64 {
	if !hasAVX2 {
		return streamGeneric(b)
	}
	var sum uint64
	for len(b) >= streamBlock {
		n := min(len(b), longestCall) / streamBlock
		sum += streamAVX2(unsafe.SliceData(b), n)
		b = b[n*streamBlock:]
	}
	return sum + streamGeneric(b)
}
