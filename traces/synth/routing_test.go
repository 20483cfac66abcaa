package synth

import (
	"math"
	"testing"

	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/rng"
)

// A draw has mean 0 and the standard deviation that scores are in; a chain keeps them, and forgets
// with its time constant.
func TestScoresAreStationary(t *testing.T) {
	const n, tokens = 200000, 5.0
	random := rng.Stream(3, "test")
	c := newChain(tokens)
	value := drawScore(random)
	var sum, square, product float64
	for range n {
		before := value
		value = c.next(value, drawScore(random))
		sum += float64(value)
		square += float64(value) * float64(value)
		product += float64(value) * float64(before)
	}
	if mean := sum / n / scoreUnit; math.Abs(mean) > 0.02 {
		t.Errorf("the mean is %.3g standard deviations", mean)
	}
	if deviation := math.Sqrt(square/n) / scoreUnit; math.Abs(deviation-1) > 0.01 {
		t.Errorf("the standard deviation is %.4g of what it should be", deviation)
	}
	if kept := product / square; math.Abs(kept-math.Exp(-1/tokens)) > 0.01 {
		t.Errorf("a token later %.4g is left, want %.4g", kept, math.Exp(-1/tokens))
	}
}

// Without popularity and memory the closed forms of chance hold: an expert is used again with k in
// n, and a cache finds its share of all experts.
func TestRoutingByChance(t *testing.T) {
	r := router{experts: 64, picked: 8, topicTokens: 1, contextTokens: 1}
	masks := routed(t, r, 9, 1, 1, 5000)
	if got := repetition(masks, r.experts, 1, 0); math.Abs(got-12.5) > 0.7 {
		t.Errorf("%.4g %% of the experts are used again, want 12.5", got)
	}
	for _, slots := range []int{8, 16, 40, 64} {
		p, err := policy.New(policy.Spec{Kind: policy.KindLRU, Capacity: slots}, r.experts,
			policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var d policy.Decision
		hits, uses := 0, 0
		for i, m := range masks[0][0] {
			if p.Step(m, &d); i >= 100 {
				hits, uses = hits+d.Hits, uses+r.picked
			}
		}
		got, want := float64(hits)/float64(uses), float64(slots)/float64(r.experts)
		if math.Abs(got-want) > 0.01 {
			t.Errorf("lru of %d experts finds %.4g, want %.4g", slots, got, want)
		}
	}
}

// The closed form of popularity is what a long trace shows.
func TestUseOfExperts(t *testing.T) {
	r := router{experts: 32, picked: 4, popularity: 0.2, topic: 0.1, context: 0.2, topicTokens: 5,
		contextTokens: 2}
	const tokens = 20000
	layers := r.layers(7, 1, r.experts, r.picked)
	w := layers[0].start(rng.Stream(7, "test"))
	uses := map[int64]float64{} // by popularity, which differs between experts
	for range tokens {
		m := mask.New(r.experts)
		w.pick(m)
		for e := range m.Each {
			uses[w.popularity[e]]++
		}
	}
	for i, want := range r.use(r.experts, r.picked) {
		known := weight(r.popularity) * int64(math.Round(scoreUnit*quantile(i, r.experts)))
		if got := uses[known] / tokens; math.Abs(got-want) > 0.03 {
			t.Errorf("the expert of rank %d is used by %.4g of the tokens, want %.4g", i, got, want)
		}
	}
}

// A factor is a straight line between its points, and never leaves nothing to chance.
func TestFactorByDepth(t *testing.T) {
	r := router{popularity: 0.1, topic: 0.2, context: 0.4,
		depth: []depthFactor{{0.2, 0.5}, {0.6, 1}, {0.8, 5}}}
	for depth, want := range map[float64]float64{0: 0.5, 0.2: 0.5, 0.4: 0.75, 0.6: 1,
		1: 0.98 * 0.9 / 0.6} {
		topic, context := r.at(depth)
		if math.Abs(topic-0.2*want) > 1e-12 || math.Abs(context-0.4*want) > 1e-12 {
			t.Errorf("at depth %g: %g and %g, want the factor %g", depth, topic, context, want)
		}
	}
}
