package cpu

import (
	"encoding/binary"
	"math"

	"github.com/windrow-sim/windrow/kernels/ref"
)

// The portable versions. Dot products keep four sums: a single sum would wait for the latency of
// each addition. The slices of four in the loops let the compiler check bounds once. Remainders are
// left to ref.

func dotGeneric(w []uint16, x []float32) float32 {
	var s0, s1, s2, s3 float32
	for len(w) >= 4 && len(x) >= 4 {
		h, v := w[:4], x[:4]
		s0 += half(h[0]) * v[0]
		s1 += half(h[1]) * v[1]
		s2 += half(h[2]) * v[2]
		s3 += half(h[3]) * v[3]
		w, x = w[4:], x[4:]
	}
	return (s0 + s2) + (s1 + s3) + ref.Dot(w, x)
}

func axpyGeneric(a float32, w []uint16, y []float32) {
	for len(w) >= 4 && len(y) >= 4 {
		h, v := w[:4], y[:4]
		v[0] += float32(a * half(h[0]))
		v[1] += float32(a * half(h[1]))
		v[2] += float32(a * half(h[2]))
		v[3] += float32(a * half(h[3]))
		w, y = w[4:], y[4:]
	}
	ref.Axpy(a, w, y)
}

// half is ref.F16ToF32 for arithmetic, short enough to be inlined. An arithmetic shift spreads the
// sign. A signalling NaN stays one, because the multiplication that follows makes it quiet.
func half(h uint16) float32 {
	const signAndValue = 0x8fffe000
	b := uint32(int32(int16(h))<<13) & signAndValue
	if h&0x7c00 == 0x7c00 {
		return math.Float32frombits(b | 0x7f800000)
	}
	return math.Float32frombits(b) * 0x1p112
}

func dotF32Generic(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	for len(a) >= 4 && len(b) >= 4 {
		u, v := a[:4], b[:4]
		s0 += u[0] * v[0]
		s1 += u[1] * v[1]
		s2 += u[2] * v[2]
		s3 += u[3] * v[3]
		a, b = a[4:], b[4:]
	}
	return (s0 + s2) + (s1 + s3) + ref.DotF32(a, b)
}

func axpyF32Generic(a float32, x, y []float32) { ref.AxpyF32(a, x, y) }

func widenGeneric(dst []float32, src []uint16) { ref.F16SliceToF32(dst, src) }

// streamGeneric keeps four sums of four words; wrap-around addition does not mind the order.
func streamGeneric(b []byte) uint64 {
	var s0, s1, s2, s3 uint64
	for len(b) >= 32 {
		v := b[:32]
		s0 += binary.LittleEndian.Uint64(v)
		s1 += binary.LittleEndian.Uint64(v[8:])
		s2 += binary.LittleEndian.Uint64(v[16:])
		s3 += binary.LittleEndian.Uint64(v[24:])
		b = b[32:]
	}
	return s0 + s1 + s2 + s3 + ref.StreamRead(b)
}
