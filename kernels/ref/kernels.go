package ref

import "encoding/binary"

// Slices are cut as x[:n:len(x)]: that panics when x has fewer than n elements, where x[:n] would
// reach into its capacity.

// Dot returns the sum of w[i]·x[i]. len(x) must equal len(w).
func Dot(w []uint16, x []float32) float32 {
	x = x[:len(w):len(x)]
	var sum float32
	for i, h := range w {
		// The conversion forbids the compiler to fuse, so that the result is the same on every
		// architecture.
		sum += float32(F16ToF32(h) * x[i])
	}
	return sum
}

// Axpy adds a·w[i] to y[i]. len(y) must equal len(w).
func Axpy(a float32, w []uint16, y []float32) {
	y = y[:len(w):len(y)]
	for i, h := range w {
		y[i] += float32(a * F16ToF32(h))
	}
}

// MatVec sets y[r] = Dot(row r of w, x) for a w of rows × cols, an x of cols and a y of rows
// values.
func MatVec(w []uint16, rows, cols int, x, y []float32) {
	w, x = w[:rows*cols:len(w)], x[:cols:len(x)]
	for r := range rows {
		y[r] = Dot(w[r*cols:(r+1)*cols], x)
	}
}

// DotF32 returns the sum of a[i]·b[i]. len(b) must equal len(a).
func DotF32(a, b []float32) float32 {
	b = b[:len(a):len(b)]
	var sum float32
	for i, v := range a {
		sum += float32(v * b[i])
	}
	return sum
}

// AxpyF32 adds a·x[i] to y[i]. len(y) must equal len(x).
func AxpyF32(a float32, x, y []float32) {
	y = y[:len(x):len(y)]
	for i, v := range x {
		y[i] += float32(a * v)
	}
}

// StreamRead returns the sum, modulo 2^64, of b read as little-endian 64-bit words, the last one
// filled up with zeros. It touches every byte once, in order: its fast version is the roofline of
// memory bandwidth.
func StreamRead(b []byte) uint64 {
	var sum uint64
	for len(b) >= 8 {
		sum += binary.LittleEndian.Uint64(b)
		b = b[8:]
	}
	var last [8]byte
	copy(last[:], b)
	return sum + binary.LittleEndian.Uint64(last[:])
}
