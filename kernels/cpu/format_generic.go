package cpu

import (
	"math"

	"github.com/windrow-sim/windrow/kernels/ref"
)

// The portable versions for the formats besides float16 and float32. Pointers to arrays make the
// compiler check bounds once for a group.

const (
	group   = ref.QuantGroup
	q8Bytes = 2 + group   // a scale and a byte for each weight
	q4Bytes = 2 + group/2 // a scale and half a byte for each
)

func bfloat(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

func dotBF16Generic(w []uint16, x []float32) float32 {
	var s0, s1, s2, s3 float32
	for len(w) >= 4 && len(x) >= 4 {
		h, v := w[:4], x[:4]
		s0 += bfloat(h[0]) * v[0]
		s1 += bfloat(h[1]) * v[1]
		s2 += bfloat(h[2]) * v[2]
		s3 += bfloat(h[3]) * v[3]
		w, x = w[4:], x[4:]
	}
	sum := (s0 + s2) + (s1 + s3)
	for i, v := range x {
		sum += bfloat(w[i]) * v
	}
	return sum
}

func axpyBF16Generic(a float32, w []uint16, y []float32) {
	w = w[:len(y)]
	for i := range y {
		y[i] += float32(a * bfloat(w[i]))
	}
}

func scale(low, high byte) float32 { return half(uint16(low) | uint16(high)<<8) }

func dotQ8Generic(w []byte, x []float32) float32 {
	var sum float32
	for len(w) >= q8Bytes && len(x) >= group {
		p, v := (*[q8Bytes]byte)(w), (*[group]float32)(x)
		var s0, s1, s2, s3 float32
		for i := 0; i < group; i += 4 {
			s0 += float32(int8(p[2+i])) * v[i]
			s1 += float32(int8(p[3+i])) * v[i+1]
			s2 += float32(int8(p[4+i])) * v[i+2]
			s3 += float32(int8(p[5+i])) * v[i+3]
		}
		sum += scale(p[0], p[1]) * ((s0 + s2) + (s1 + s3))
		w, x = w[q8Bytes:], x[group:]
	}
	return sum
}

// The products of scales and weights are exact: 11 and 8 bits.
func axpyQ8Generic(a float32, w []byte, y []float32) {
	for len(w) >= q8Bytes && len(y) >= group {
		p, v := (*[q8Bytes]byte)(w), (*[group]float32)(y)
		s := scale(p[0], p[1])
		for i := range v {
			v[i] += float32(a * (s * float32(int8(p[2+i]))))
		}
		w, y = w[q8Bytes:], y[group:]
	}
}

// nibbles are the two weights of a byte.
func nibbles(b byte) (low, high float32) {
	return float32(int32(b&15) - 8), float32(int32(b>>4) - 8)
}

func dotQ4Generic(w []byte, x []float32) float32 {
	var sum float32
	for len(w) >= q4Bytes && len(x) >= group {
		p, v := (*[q4Bytes]byte)(w), (*[group]float32)(x)
		var s0, s1, s2, s3 float32
		for i := 0; i < group/2; i += 2 {
			q0, q2 := nibbles(p[2+i])
			q1, q3 := nibbles(p[3+i])
			s0 += q0 * v[i]
			s1 += q1 * v[i+1]
			s2 += q2 * v[i+group/2]
			s3 += q3 * v[i+group/2+1]
		}
		sum += scale(p[0], p[1]) * ((s0 + s2) + (s1 + s3))
		w, x = w[q4Bytes:], x[group:]
	}
	return sum
}

func axpyQ4Generic(a float32, w []byte, y []float32) {
	for len(w) >= q4Bytes && len(y) >= group {
		p, v := (*[q4Bytes]byte)(w), (*[group]float32)(y)
		s := scale(p[0], p[1])
		for i := range group / 2 {
			low, high := nibbles(p[2+i])
			v[i] += float32(a * (s * low))
			v[i+group/2] += float32(a * (s * high))
		}
		w, y = w[q4Bytes:], y[group:]
	}
}
