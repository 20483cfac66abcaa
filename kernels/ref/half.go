package ref

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unsafe"
)

// Bit patterns of a float16 without its sign.
const (
	halfSign = 0x8000
	halfInf  = 0x7c00 // above it: NaN
	quietNaN = 0x0200
	fraction = 0x03ff
)

const (
	// A float16 has 10 fraction bits, a float32 has 23.
	fractionShift = 13
	// Their exponent biases are 15 and 127.
	rebias = 0x1p112
)

// F16ToF32 returns the value of a float16. The conversion is exact. A NaN keeps its sign and
// payload and becomes quiet, as with the F16C instructions.
func F16ToF32(h uint16) float32 {
	sign := uint32(h&halfSign) << 16
	magnitude := uint32(h&^halfSign) << fractionShift
	if h&halfInf == halfInf {
		if h&fraction != 0 {
			magnitude |= quietNaN << fractionShift
		}
		return math.Float32frombits(sign | magnitude | 0x7f800000)
	}
	// With its exponent bits in place the number is too small by the difference of the biases.
	// Multiplying by it is exact and also normalises subnormal float16 numbers.
	return math.Float32frombits(sign|magnitude) * rebias
}

// F32ToF16 returns the float16 nearest to f, ties to even. Too large a number becomes Inf; a number
// too small for a normal one becomes subnormal or zero of the same sign. A NaN keeps its sign and
// the upper bits of its payload and becomes quiet.
func F32ToF16(f float32) uint16 {
	const (
		infinity  = 0x7f800000
		overflow  = 0x47800000 // 2^16
		minNormal = 0x38800000 // 2^-14
	)
	b := math.Float32bits(f)
	sign := uint16(b>>16) & halfSign
	b &^= 1 << 31
	switch {
	case b > infinity:
		return sign | halfInf | quietNaN | uint16(b>>fractionShift)&fraction
	case b >= overflow:
		return sign | halfInf
	case b >= minNormal:
		b -= (127 - 15) << 23
		// Half of the last kept bit, less one when that bit is even; a carry moves into the
		// exponent, up to Inf.
		b += 1<<(fractionShift-1) - 1 + b>>fractionShift&1
		return sign | uint16(b>>fractionShift)
	default:
		// In [0.5, 1) a float32 counts in steps of 2^-24, as subnormal float16 numbers do: this sum
		// rounds as wanted and leaves the number of steps in its lowest bits.
		return sign | uint16(math.Float32bits(math.Float32frombits(b)+0.5))
	}
}

// F16SliceToF32 sets dst[i] to the value of src[i]. len(dst) must equal len(src).
func F16SliceToF32(dst []float32, src []uint16) {
	dst = dst[:len(src):len(dst)]
	for i, h := range src {
		dst[i] = F16ToF32(h)
	}
}

// ErrCast is why Bytes16 refuses.
var ErrCast = errors.New("bytes cannot be used as 16-bit words in place")

// Bytes16 returns the little-endian 16-bit words of b without a copy: the result shares b's memory
// and keeps it alive. It refuses (ErrCast) an odd length, memory that is not 2-byte aligned, and a
// big-endian host.
func Bytes16(b []byte) ([]uint16, error) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		return nil, fmt.Errorf("ref: %w: this host is big-endian; copy and swap the bytes", ErrCast)
	}
	if len(b)%2 != 0 {
		return nil, fmt.Errorf("ref: %w: the length %d is odd; is the tensor truncated?", ErrCast,
			len(b))
	}
	if len(b) == 0 {
		return nil, nil
	}
	p := unsafe.Pointer(unsafe.SliceData(b))
	if uintptr(p)%2 != 0 {
		return nil, fmt.Errorf("ref: %w: they start at an odd address; copy them to an aligned "+
			"buffer", ErrCast)
	}
	return unsafe.Slice((*uint16)(p), len(b)/2), nil
}
