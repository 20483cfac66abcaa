package ref

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Format is the type of stored weights. The quantised formats keep groups of QuantGroup weights
// with one float16 scale in front, as GGUF's Q8_0 and Q4_0 do. So a row carries its own scales and
// is one read.
type Format uint8

// The formats.
const (
	F16  Format = iota // IEEE 754 half precision
	BF16               // the upper half of a float32
	F32                // single precision
	Q8                 // scale·q, q an int8; 34 bytes per group
	// scale·(q−8), with q of four bits: weight i in the low nibble of byte i, weight i+16 in the
	// high nibble; 18 bytes per group
	Q4
)

// QuantGroup is the number of weights that share a scale.
const QuantGroup = 32

const (
	q8Bytes = 2 + QuantGroup
	q4Bytes = 2 + QuantGroup/2
)

// Formats returns all formats.
func Formats() []Format { return []Format{F16, BF16, F32, Q8, Q4} }

// String returns the name that images carry: "F16", "BF16", "F32", "Q8" or "Q4".
func (f Format) String() string {
	if int(f) < len(formatNames()) {
		return formatNames()[f]
	}
	return fmt.Sprintf("format %d", uint8(f))
}

func formatNames() []string { return []string{"F16", "BF16", "F32", "Q8", "Q4"} }

// ParseFormat is the inverse of String; ok is false for another name.
func ParseFormat(name string) (f Format, ok bool) {
	for i, n := range formatNames() {
		if n == name {
			return Format(i), true
		}
	}
	return 0, false
}

// Group is the number of weights in a group. The length of a row, and of every part of a row, must
// be a multiple.
func (f Format) Group() int {
	if f == Q8 || f == Q4 {
		return QuantGroup
	}
	return 1
}

// Size is the number of bytes of n weights, n a multiple of Group.
func (f Format) Size(n int) int {
	switch f {
	case F32:
		return 4 * n
	case Q8:
		return n / QuantGroup * q8Bytes
	case Q4:
		return n / QuantGroup * q4Bytes
	}
	return 2 * n
}

// Decode sets dst to the weights in src; len(src) must be Size(len(dst)). All conversions to
// float32 are exact: the products of Q8 and Q4 have 11 and 8 bits.
func (f Format) Decode(dst []float32, src []byte) {
	src = src[:f.Size(len(dst)):len(src)]
	switch f {
	case F16:
		for i := range dst {
			dst[i] = F16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
		}
	case BF16:
		for i := range dst {
			dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(src[2*i:])) << 16)
		}
	case F32:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
		}
	case Q8:
		for g := 0; g*QuantGroup < len(dst); g++ {
			p, to := src[g*q8Bytes:], dst[g*QuantGroup:]
			scale := F16ToF32(binary.LittleEndian.Uint16(p))
			for i := range QuantGroup {
				to[i] = scale * float32(int8(p[2+i]))
			}
		}
	case Q4:
		const half = QuantGroup / 2
		for g := 0; g*QuantGroup < len(dst); g++ {
			p, to := src[g*q4Bytes:], dst[g*QuantGroup:]
			scale := F16ToF32(binary.LittleEndian.Uint16(p))
			for i := range half {
				to[i] = scale * float32(int(p[2+i]&15)-8)
				to[i+half] = scale * float32(int(p[2+i]>>4)-8)
			}
		}
	}
}

// Encode sets dst to src in the format, rounding to nearest, ties to even (F16, BF16), or to the
// nearest step of the group's scale. len(dst) must be Size(len(src)); src must be finite. It
// returns the index of the first weight that is too large for the format, or −1.
//
// The scale of Q8 is max|w|/127. The scale of Q4 is w*/−8 with w* the weight of the largest
// magnitude, so that w* is exact up to the rounding of the scale.
func (f Format) Encode(dst []byte, src []float32) int {
	dst = dst[:f.Size(len(src)):len(dst)]
	switch f {
	case F16:
		for i, v := range src {
			h := F32ToF16(v)
			if h&halfInf == halfInf {
				return i
			}
			binary.LittleEndian.PutUint16(dst[2*i:], h)
		}
	case BF16:
		for i, v := range src {
			b := math.Float32bits(v)
			b += 1<<15 - 1 + b>>16&1
			if b&0x7f800000 == 0x7f800000 {
				return i
			}
			binary.LittleEndian.PutUint16(dst[2*i:], uint16(b>>16))
		}
	case F32:
		for i, v := range src {
			binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
		}
	default:
		for g := 0; g*QuantGroup < len(src); g++ {
			group := src[g*QuantGroup:][:QuantGroup]
			top := 0
			for i, v := range group {
				if math.Abs(float64(v)) > math.Abs(float64(group[top])) {
					top = i
				}
			}
			if !f.encodeGroup(dst[f.Size(g*QuantGroup):], group, group[top]) {
				return g*QuantGroup + top
			}
		}
	}
	return -1
}

// encodeGroup quantises a group. top is its weight of the largest magnitude. It returns false when
// the scale is beyond float16.
func (f Format) encodeGroup(dst []byte, group []float32, top float32) bool {
	const half = QuantGroup / 2
	scale := F32ToF16(float32(math.Abs(float64(top))) / 127)
	if f == Q4 {
		scale = F32ToF16(top / -8)
	}
	if scale&halfInf == halfInf {
		return false
	}
	binary.LittleEndian.PutUint16(dst, scale)
	step := float64(F16ToF32(scale))
	quantum := func(v float32, low, high float64) int {
		if step == 0 {
			return 0
		}
		return int(min(max(math.RoundToEven(float64(v)/step), low), high))
	}
	for i := range group {
		switch {
		case f == Q8:
			dst[2+i] = byte(int8(quantum(group[i], -127, 127)))
		case i < half:
			dst[2+i] = byte(quantum(group[i], -8, 7)+8) | byte(quantum(group[i+half], -8, 7)+8)<<4
		}
	}
	return true
}

// Dot returns the sum of w[i]·x[i] for a row w of the format.
func (f Format) Dot(w []byte, x []float32) float32 {
	row := make([]float32, len(x))
	f.Decode(row, w)
	return DotF32(row, x)
}

// Axpy adds a·w[i] to y[i] for a row w of the format.
func (f Format) Axpy(a float32, w []byte, y []float32) {
	row := make([]float32, len(y))
	f.Decode(row, w)
	AxpyF32(a, row, y)
}
