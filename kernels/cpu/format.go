package cpu

import (
	"fmt"
	"unsafe"

	"github.com/windrow-sim/windrow/kernels/ref"
)

// DotFormat returns the sum of w[i]·x[i] for a row w of len(x) weights in the format. Meanwhile it
// prefetches next, the row of the next call, as DotNext does; next may be empty. len(w) must be
// f.Size(len(x)). Quantised weights are widened in registers; each group is summed before its scale
// multiplies the sum.
func DotFormat(f ref.Format, w []byte, x []float32, next []byte) float32 {
	return dotFormat(f, w[:rowSize(f, len(x)):len(w)], x, distance(w, next))
}

// AxpyFormat adds a·w[i] to y[i] for a row w of len(y) weights in the format; next as in DotFormat.
// The value of a quantised weight is exact, and with FMA each element is rounded once.
func AxpyFormat(f ref.Format, a float32, w []byte, y []float32, next []byte) {
	w, ahead := w[:rowSize(f, len(y)):len(w)], distance(w, next)
	switch f {
	case ref.BF16:
		axpyBF16(a, words[uint16](w), y, ahead)
	case ref.F32:
		axpyF32(a, words[float32](w), y, ahead)
	case ref.Q8:
		axpyQ8(a, w, y, ahead)
	case ref.Q4:
		axpyQ4(a, w, y, ahead)
	default:
		axpy(a, words[uint16](w), y, ahead)
	}
}

// MatVecFormat sets y[r] = DotFormat(row r of w, x), with the rows divided among the workers. The
// number of workers does not change the bits.
func (p *Pool) MatVecFormat(f ref.Format, w []byte, rows, cols int, x, y []float32) {
	p.matVecBy(matVecGrain/max(rowSize(f, cols), 1)+1, f, w, rows, cols, x, y)
}

// dotFormat is DotFormat with a checked w and a distance to prefetch at.
func dotFormat(f ref.Format, w []byte, x []float32, ahead int) float32 {
	switch f {
	case ref.BF16:
		return dotBF16(words[uint16](w), x, ahead)
	case ref.F32:
		return dotF32(words[float32](w), x, ahead)
	case ref.Q8:
		return dotQ8(w, x, ahead)
	case ref.Q4:
		return dotQ4(w, x, ahead)
	}
	return dot(words[uint16](w), x, ahead)
}

// matVecFormat sets y[r] = dotFormat(row r of w, x).
func matVecFormat(f ref.Format, w []byte, rows, cols int, x, y []float32) {
	size := f.Size(cols)
	for r := range rows {
		ahead := sequentialAhead
		if (rows-r)*size <= ahead {
			ahead = 0 // do not prefetch beyond the matrix
		}
		y[r] = dotFormat(f, w[r*size:(r+1)*size], x, ahead)
	}
}

// rowSize is f.Size for a row of n weights. A part of a group has no meaning and panics, as a wrong
// shape does.
func rowSize(f ref.Format, n int) int {
	if n%f.Group() != 0 {
		panic(fmt.Sprintf("cpu: a row of %d weights in %s, which has groups of %d", n, f,
			f.Group()))
	}
	return f.Size(n)
}

// words returns the little-endian elements of b, in place. Weights in memory are aligned: their
// buffers are, and rows have even lengths.
func words[T uint16 | float32](b []byte) []T {
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(zero)))
}

// bytesOf is the memory of w.
func bytesOf(w []uint16) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(w))), len(w)*halfBytes)
}
