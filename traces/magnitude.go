package traces

import "math"

// Codes of magnitudes, 8 per octave from 2^-16 on. The 256 codes reach 2^16, so that every normal
// fp16 number lies within their range. One step is a factor of 2^(1/8), 9.05 %.
const (
	codesPerOctave = 8
	lowestOctave   = -16
	highestOctave  = 16
)

// MagnitudeCode returns the code of |v|. Code c stands for MagnitudeFloor(c) ≤ |v| <
// MagnitudeFloor(c+1). Code 0 also stands for all smaller values, code 255 for all larger ones,
// infinities and NaN. Codes round down, so that "code ≥ c" means "|v| ≥ MagnitudeFloor(c)".
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
	// The mantissas of 2^(1/8) … 2^(7/8), rounded up to float32.
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

// MagnitudeFloor returns the smallest |activation| of a code: 2^(code/8 − 16).
func MagnitudeFloor(code uint8) float64 {
	return math.Exp2(float64(code)/codesPerOctave + lowestOctave)
}
