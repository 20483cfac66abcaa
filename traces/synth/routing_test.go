package synth

import (
	"math"
	"math/bits"
	"testing"

	"github.com/windrow-sim/windrow/internal/rng"
)

// When experts are equally popular, the closed forms of chance hold: two pairs out of eight are
// apart with 15 in 28, an expert is kept or drawn again as often as counting says, and lru finds
// exactly its share of all experts.
func TestRoutingByChance(t *testing.T) {
	even := make([]int64, 8)
	for i := range even {
		even[i] = 1000
	}
	if got := apart(even); math.Abs(got-15.0/28) > 1e-12 {
		t.Errorf("two pairs are apart with probability %g, want 15/28", got)
	}
	// the first layer of Mixtral: 0.48
	if got := 1 - apart(popularity(8)); got < 0.465 || got > 0.485 {
		t.Errorf("popularity alone makes %.4g of the tokens repeat an expert", got)
	}
	for _, stay := range []float64{0, 0.3} {
		r := routing{picked: 2, stay: round32(stay), weight: even}
		random := rng.Stream(9, "test")
		before := []uint64{3}
		const tokens = 100000
		again := 0
		var recent []int // lru by hand, the last used first
		hits := map[int]int{}
		for range tokens {
			mask := []uint64{0}
			r.pick(random, before, mask)
			if bits.OnesCount64(mask[0]) != 2 {
				t.Fatalf("%b picked", mask[0])
			}
			again += bits.OnesCount64(mask[0] & before[0])
			recent = touch(recent, mask[0], hits)
			before = mask
		}
		// Kept, or dropped and drawn again: of m other experts kept, 2−m−… are drawn from 8−m.
		want := stay + (1-stay)*((1-stay)*2/8+stay*1/7)
		if got := float64(again) / (2 * tokens); math.Abs(got-want) > 0.005 {
			t.Errorf("an expert kept with %g is used again with %.4g, want %.4g", stay, got, want)
		}
		if stay > 0 {
			continue
		}
		for capacity := 2; capacity <= 8; capacity++ {
			if got, want := float64(hits[capacity])/(2*tokens),
				float64(capacity)/8; math.Abs(got-want) > 0.005 {
				t.Errorf("lru of %d experts finds %.4g, want %.4g", capacity, got, want)
			}
		}
	}
}

// touch counts, for every capacity, which of the experts of a mask an lru cache holds, and moves
// them to the front.
func touch(recent []int, mask uint64, hits map[int]int) []int {
	var used, others []int
	for i, u := range recent {
		if mask>>u&1 != 0 {
			for capacity := i + 1; capacity <= 8; capacity++ {
				hits[capacity]++
			}
		} else {
			others = append(others, u)
		}
	}
	for ; mask != 0; mask &= mask - 1 {
		used = append(used, bits.TrailingZeros64(mask))
	}
	return append(used, others...)
}
