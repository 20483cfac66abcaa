package speculative

import (
	"math"

	"github.com/windrow-sim/windrow/internal/mask"
)

// Speculation is speculative decoding with a sliding window (LLM in a flash, section 5.2). The zero
// value drafts nothing.
type Speculation struct {
	Draft int `json:"draft_count"` // λ: drafted tokens per verification
	// α: probability that a drafted token is accepted if its predecessors are; in [0, 1]
	Acceptance float64 `json:"acceptance"`
	Window     int     `json:"window_tokens"` // k: tokens whose rows stay in memory
}

// Tokens is the mean number of tokens of one verification, at most λ+1:
// 1 + α + … + α^λ = (1 − α^(λ+1))/(1 − α) (Leviathan, Kalman and Matias, 2023, equation 1).
func (s Speculation) Tokens() float64 {
	sum, power := 0.0, 1.0
	for range s.Draft + 1 {
		sum += power
		power *= s.Acceptance
	}
	return sum
}

// AcceptanceFor is the α at which a token has a wanted cost. cost is the cost of a verification by
// Last; it falls with Last. The cost of a token falls with α. The result is 0 if the cost is lower
// for every α, and 1 if it is higher for every α.
func AcceptanceFor(draft int, wanted float64, cost func(last int) float64) float64 {
	low, high := 0.0, 1.0
	for range 60 {
		mid := Speculation{Draft: draft, Acceptance: (low + high) / 2}
		if cost(mid.Last())/mid.Tokens() > wanted {
			low = mid.Acceptance
		} else {
			high = mid.Acceptance
		}
	}
	return (low + high) / 2
}

// Last is the token of a batch, counted from 1, at which the kept window ends: α·(λ+1), the
// conjecture of section 5.2.
func (s Speculation) Last() int {
	return min(max(int(math.Round(s.Acceptance*float64(s.Draft+1))), 1), s.Draft+1)
}

// union sets into to the units that any of the tokens needs in a layer.
func union(into mask.Mask, tokens [][]mask.Mask, layer int) {
	clear(into)
	for _, masks := range tokens {
		into.Or(masks[layer])
	}
}
