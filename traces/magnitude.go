package traces

import "math"

// Codes of magnitudes: 8 per octave from 2^-16 on, so that 256 of them reach 2^16 and every normal
// fp16 number has a code of its own range. One step is a factor of 2^(1/8), 9.05 %.
const (
	codesPerOctave = 8
	lowestOctave   = -16
	highestOctave  = 16
)

// MagnitudeCode returns the code of |v|: code c stands for MagnitudeFloor(c) ≤ |v| <
// MagnitudeFloor(c+1), code 0 also for everything below, code 255 for everything above, infinities
// and NaN. Rounding down makes "code ≥ c" the same as "|v| ≥ MagnitudeFloor(c)".
func MagnitudeCode(v float32) uint8 {
	const mantissaBits, bias = 23, 127
	bits := math.Float32bits(v) &^ (1 << 31)
	octave := int(bits>>mantissaBits) - bias
	switch {
	case octave < lowestOctave:
		return 0
	case octave >= highestOctave:
		return 255
	}
	// the mantissas of 2^(1/8) … 2^(7/8), rounded up: the smallest float32 numbers that are not
	// below them
	steps := [codesPerOctave - 1]uint32{0x0B95C2, 0x1837F1, 0x25FED7, 0x3504F4, 0x45672B, 0x5744FD,
		0x6AC0C7}
	mantissa, code := bits&(1<<mantissaBits-1), (octave-lowestOctave)*codesPerOctave
	for _, s := range steps {
		if mantissa >= s {
			code++
		}
	}
	return uint8(code)
}

// MagnitudeFloor is the smallest |activation| of a code: 2^(code/8 − 16).
func MagnitudeFloor(code uint8) float64 {
	return math.Exp2(float64(code)/codesPerOctave + lowestOctave)
}
