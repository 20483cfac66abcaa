package cpu

import (
	"unsafe"

	"github.com/windrow-sim/windrow/kernels/ref"
)

// DotFormat returns the sum of w[i]·x[i] for a row w of len(x) weights in the format, and meanwhile brings next, the row that is wanted
// after this one, into the cache where the format's kernel can; next may be empty. len(w) must be f.Size(len(x)).
func DotFormat(f ref.Format, w []byte, x []float32, next []byte) float32 {
	w = w[:f.Size(len(x)):len(w)]
	switch f {
	case ref.F16:
		return DotNext(words[uint16](w), x, words[uint16](next))
	case ref.F32:
		return DotF32(words[float32](w), x)
	}
	return dotDecoded(f, w, x)
}

// AxpyFormat adds a·w[i] to y[i] for a row w of len(y) weights in the format; next as in DotFormat.
func AxpyFormat(f ref.Format, a float32, w []byte, y []float32, next []byte) {
	w = w[:f.Size(len(y)):len(w)]
	switch f {
	case ref.F16:
		AxpyNext(a, words[uint16](w), y, words[uint16](next))
	case ref.F32:
		AxpyF32(a, words[float32](w), y)
	default:
		axpyDecoded(f, a, w, y)
	}
}

// MatVecFormat sets y[r] = DotFormat(row r of w, x), with the rows divided among the workers. It gives the same bits for any number of them.
func (p *Pool) MatVecFormat(f ref.Format, w []byte, rows, cols int, x, y []float32) {
	if f == ref.F16 {
		p.MatVec(words[uint16](w[:f.Size(rows*cols):len(w)]), rows, cols, x, y)
		return
	}
	size := f.Size(cols)
	w, x, y = w[:size*rows:len(w)], x[:cols:len(x)], y[:rows:len(y)]
	p.Run(rows, matVecGrain/max(size, 1)+1, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			y[r] = DotFormat(f, w[r*size:(r+1)*size], x, nil)
		}
	})
}

// decodeBlock is how many weights are decoded at once: they stay in the first cache.
const decodeBlock = 256

func dotDecoded(f ref.Format, w []byte, x []float32) float32 {
	var block [decodeBlock]float32
	var sum float32
	for len(x) > 0 {
		n := min(len(x), decodeBlock)
		f.Decode(block[:n], w)
		sum += DotF32(block[:n], x[:n:n])
		w, x = w[f.Size(n):], x[n:]
	}
	return sum
}

func axpyDecoded(f ref.Format, a float32, w []byte, y []float32) {
	var block [decodeBlock]float32
	for len(y) > 0 {
		n := min(len(y), decodeBlock)
		f.Decode(block[:n], w)
		AxpyF32(a, block[:n], y[:n:n])
		w, y = w[f.Size(n):], y[n:]
	}
}

// words are the little-endian elements of b, in place. Weights in memory are aligned: their buffers are, and rows have even lengths.
func words[T uint16 | float32](b []byte) []T {
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(zero)))
}
