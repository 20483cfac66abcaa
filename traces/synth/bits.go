package synth

import (
	"math/bits"
	"math/rand/v2"
)

// bernoulli returns a word whose bits inside lanes are 1 with probability p·2⁻⁶⁴, independently,
// and 0 outside. Each lane compares a random binary fraction with p, digit by digit from the top,
// until they differ. The lanes share the random words, so that a whole word needs about 8 of them.
func bernoulli(r *rand.Rand, p, lanes uint64) uint64 {
	below := uint64(0)
	for lanes != 0 && p != 0 {
		random := r.Uint64()
		if p>>63 == 1 {
			below |= lanes &^ random // digit 0 against 1: the fraction is smaller than p
			lanes &= random
		} else {
			lanes &^= random // digit 1 against 0: larger
		}
		p <<= 1
	}
	return below
}

// walk returns 64 steps of an on/off chain. Bit t is the state after step t; on is the state before
// step 0. An on chain goes off at the steps with a bit in exit. An off chain goes on at the steps
// with a bit in enter.
func walk(on bool, enter, exit uint64) uint64 {
	states := uint64(0)
	for t := 0; t < 64; t++ {
		if on {
			stay := bits.TrailingZeros64(exit >> t)
			states |= lowBits(stay) << t // shifts by 64 and more give 0
			t += stay
		} else {
			t += bits.TrailingZeros64(enter >> t)
			if t < 64 {
				states |= 1 << t
			}
		}
		on = !on
	}
	return states
}

// lowBits returns a word with the lowest n bits set, n from 0 to 64.
func lowBits(n int) uint64 { return 1<<n - 1 }

// transpose exchanges rows and columns of a 64×64 bit matrix: bit j of word i becomes bit i of word
// j. It swaps the off-diagonal blocks of size 32, then 16, … 1 (Hacker's Delight, section 7-3).
func transpose(m *[64]uint64) {
	mask := uint64(0x00000000FFFFFFFF)
	for size := 32; size != 0; size >>= 1 {
		for i := 0; i < 64; i = (i + size + 1) &^ size {
			swap := (m[i]>>size ^ m[i+size]) & mask
			m[i] ^= swap << size
			m[i+size] ^= swap
		}
		mask ^= mask << (size >> 1)
	}
}
