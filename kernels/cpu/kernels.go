package cpu

import (
	"unsafe"

	"github.com/windrow-sim/windrow/kernels/ref"
)

// Slices are cut as x[:n:len(x)]: that panics when x has fewer than n elements, where x[:n] would
// reach into its capacity.

// Features names the instructions in use: "avx2+fma+f16c" or "generic". It does not change while
// the program runs.
func Features() string { return features() }

// Dot returns the sum of w[i]·x[i] for float16 weights w. len(x) must equal len(w).
func Dot(w []uint16, x []float32) float32 {
	return dot(w, x[:len(w):len(x)], 0)
}

// DotNext is Dot(w, x) and meanwhile prefetches next, the row of the next call. This pays when rows
// lie scattered in memory, where the hardware cannot guess the next one, and costs little
// otherwise. next may be empty.
func DotNext(w []uint16, x []float32, next []uint16) float32 {
	return dot(w, x[:len(w):len(x)], distance(w, next))
}

// Axpy adds a·w[i] to y[i] for float16 weights w. len(y) must equal len(w). With FMA each element
// is rounded once.
func Axpy(a float32, w []uint16, y []float32) {
	axpy(a, w, y[:len(w):len(y)], 0)
}

// AxpyNext is Axpy(a, w, y) and meanwhile prefetches next, as DotNext does.
func AxpyNext(a float32, w []uint16, y []float32, next []uint16) {
	axpy(a, w, y[:len(w):len(y)], distance(w, next))
}

// MatVec sets y[r] = Dot(row r of w, x) for a row-major float16 w of rows × cols, an x of cols and
// a y of rows values.
func MatVec(w []uint16, rows, cols int, x, y []float32) {
	w, x, y = w[:rows*cols:len(w)], x[:cols:len(x)], y[:rows:len(y)]
	matVecFormat(ref.F16, bytesOf(w), rows, cols, x, y)
}

const (
	// sequentialAhead is MatVec's prefetch distance in bytes. The processor's own prefetcher keeps
	// pace with a loop that only loads, but the conversions here fill the instruction window before
	// it has seen enough loads. 8 to 12 KiB measured best on Zen 5, for all formats: two pages, and
	// small enough to leave x in a 32 KiB cache.
	sequentialAhead = 8 << 10
	halfBytes       = 2
)

// DotF32 returns the sum of a[i]·b[i]. len(b) must equal len(a).
func DotF32(a, b []float32) float32 {
	return dotF32(a, b[:len(a):len(b)], 0)
}

// AxpyF32 adds a·x[i] to y[i]. len(y) must equal len(x).
func AxpyF32(a float32, x, y []float32) {
	axpyF32(a, x, y[:len(x):len(y)], 0)
}

// F16SliceToF32 sets dst[i] to the value of the float16 src[i]. len(dst) must equal len(src). The
// conversion is exact.
func F16SliceToF32(dst []float32, src []uint16) {
	widen(dst[:len(src):len(dst)], src)
}

// StreamRead returns the sum, modulo 2^64, of b read as little-endian 64-bit words, the last one
// filled up with zeros. It reads memory as fast as one core can in order: the roofline of the
// mat-vec kernels.
func StreamRead(b []byte) uint64 {
	return stream(b)
}

// distance returns how many bytes next lies beyond w, the form in which the assembly takes a
// prefetch target; 0 for none.
func distance[T any](w, next []T) int {
	if len(next) == 0 {
		return 0
	}
	return int(uintptr(unsafe.Pointer(unsafe.SliceData(next))) -
		uintptr(unsafe.Pointer(unsafe.SliceData(w))))
}
