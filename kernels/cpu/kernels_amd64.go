//go:build !purego

package cpu

//go:generate go run -C ../../tools/avo .

import (
	"unsafe"

	"golang.org/x/sys/cpu"

	"github.com/windrow-sim/windrow/kernels/ref"
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

func dotBF16(w []uint16, x []float32, ahead int) float32 {
	if !hasAVX2 {
		return dotBF16Generic(w, x)
	}
	return dotBF16AVX2(unsafe.SliceData(w), unsafe.SliceData(x), len(w), ahead)
}

func axpyBF16(a float32, w []uint16, y []float32, ahead int) {
	if !hasAVX2 {
		axpyBF16Generic(a, w, y)
		return
	}
	axpyBF16AVX2(a, unsafe.SliceData(w), unsafe.SliceData(y), len(w), ahead)
}

func dotF32(a, b []float32, ahead int) float32 {
	if !hasAVX2 {
		return dotF32Generic(a, b)
	}
	return dotF32AVX2(unsafe.SliceData(a), unsafe.SliceData(b), len(a), ahead)
}

func axpyF32(a float32, x, y []float32, ahead int) {
	if !hasAVX2 {
		axpyF32Generic(a, x, y)
		return
	}
	axpyF32AVX2(a, unsafe.SliceData(x), unsafe.SliceData(y), len(x), ahead)
}

func dotQ8(w []byte, x []float32, ahead int) float32 {
	if !hasAVX2 {
		return dotQ8Generic(w, x)
	}
	return dotQ8AVX2(unsafe.SliceData(w), unsafe.SliceData(x), len(x)/ref.QuantGroup, ahead)
}

func axpyQ8(a float32, w []byte, y []float32, ahead int) {
	if !hasAVX2 {
		axpyQ8Generic(a, w, y)
		return
	}
	axpyQ8AVX2(a, unsafe.SliceData(w), unsafe.SliceData(y), len(y)/ref.QuantGroup, ahead)
}

func dotQ4(w []byte, x []float32, ahead int) float32 {
	if !hasAVX2 {
		return dotQ4Generic(w, x)
	}
	return dotQ4AVX2(unsafe.SliceData(w), unsafe.SliceData(x), len(x)/ref.QuantGroup, ahead)
}

func axpyQ4(a float32, w []byte, y []float32, ahead int) {
	if !hasAVX2 {
		axpyQ4Generic(a, w, y)
		return
	}
	axpyQ4AVX2(a, unsafe.SliceData(w), unsafe.SliceData(y), len(y)/ref.QuantGroup, ahead)
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
	// longestCall bounds the bytes of one call, rows aside. The scheduler cannot stop a goroutine
	// inside assembly, and a garbage collection waits for it.
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
