package whatif

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/windrow-sim/windrow/internal/rng"
)

// holdTokens is the period of the slow part of a score, in tokens.
const holdTokens = 64

// levels is the number of different scores.
const levels = 1 << 16

// weights are the weights of the parts of a score in sixteenths. They add up to 16.
type weights struct{ hot, held, fast uint32 }

// The weights of the package documentation. Noise alone decides whether an active unit stays. An
// inactive unit is the more likely to be added the more often it is active in the trace.
func thinWeights() weights    { return weights{held: 8, fast: 8} }
func thickenWeights() weights { return weights{hot: 3, held: 6, fast: 7} }

// scorer gives scores to the units of one layer. A score depends on (seed, sequence, position,
// unit) and on the number of tokens that the unit is active in.
type scorer struct {
	weights
	heldKey, fastKey, phaseKey uint64
	// rank by unit, the most active last; nil if it has no weight
	hot []uint16
}

// newScorer names its random stream after its use, so that different uses of one seed are
// independent.
func newScorer(seed uint64, use string, layer int, w weights, counts []uint32) scorer {
	r := rng.Stream(seed, fmt.Sprintf("whatif/%s/layer/%d", use, layer))
	s := scorer{weights: w, heldKey: r.Uint64(), fastKey: r.Uint64(), phaseKey: r.Uint64()}
	if w.hot > 0 {
		s.hot = ranks(counts, s.phaseKey)
	}
	return s
}

// ranks spreads the units over 0 … levels−1 in the order of their counts. Equal counts are in
// random order.
func ranks(counts []uint32, key uint64) []uint16 {
	order := make([]int, len(counts))
	for u := range order {
		order[u] = u
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(counts[a], counts[b]), cmp.Compare(mix(key^uint64(a)),
			mix(key^uint64(b))), cmp.Compare(a, b))
	})
	rank := make([]uint16, len(counts))
	for i, u := range order {
		rank[u] = uint16((2*i + 1) * levels / (2 * len(order)))
	}
	return rank
}

// draw gives the scores of the units at one token. Four units share a random word.
type draw struct {
	*scorer
	seq, pos   uint64
	group      int
	held, fast uint64
}

func (s *scorer) at(seq, pos uint32) draw {
	return draw{scorer: s, seq: uint64(seq) << 32, pos: uint64(pos), group: -1}
}

// score returns a score in 0 … levels−1.
func (d *draw) score(u uint32) uint32 {
	if g := int(u >> 2); g != d.group {
		d.group = g
		id := uint64(g)
		// Units renew their slow part at different tokens, so that the trace has no seams.
		epoch := (d.pos + mix(d.phaseKey^id)%holdTokens) / holdTokens
		d.held = mix(mix(d.heldKey^d.seq^epoch) + id)
		d.fast = mix(mix(d.fastKey^d.seq^d.pos) + id)
	}
	shift := 16 * (u & 3)
	sum := d.weights.held*uint32(uint16(d.held>>shift)) +
		d.weights.fast*uint32(uint16(d.fast>>shift))
	if d.hot != nil {
		sum += d.weights.hot * uint32(d.hot[u])
	}
	return sum / 16
}

// mix is a fixed hash of 64 bits (splitmix64).
func mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// tally counts scores.
type tally []int64

func newTally() tally { return make(tally, levels) }

// highest returns the cutoff and the number of scores at or above it. That number is as near to
// want as possible. A larger want never has a larger cutoff, so that kept units nest.
func (t tally) highest(want int64) (cutoff uint32, got int64) {
	sum := int64(0)
	for c := levels; c > 0; c-- {
		more := sum + t[c-1]
		if more > want && more-want > want-sum {
			return uint32(c), sum
		}
		sum = more
	}
	return 0, sum
}
