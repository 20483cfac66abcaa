package synth

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/shapes"
)

// maxExperts is the largest number of experts of a layer. A token draws a score for each.
const maxExperts = 1 << 12

// Scores are whole numbers, so that the same seed gives the same bytes on every processor.
const (
	scoreUnit = 37837   // standard deviation of drawScore: √(4·(2³²−1)/12)
	fraction  = 16      // binary digits of the factors of a chain
	weightOne = 1 << 14 // weight of a part of the score that is all of its variance
)

// routing is the process of one layer. A token uses the experts with the highest scores. A score is
// the sum of what belongs to the expert, of two parts that drift, and of one that is drawn anew for
// every token.
type routing struct {
	picked                                  int     // experts per token
	popularity                              []int64 // by expert, with its weight
	topic, context                          chain
	topicWeight, contextWeight, freshWeight int64
}

// chain is a stationary autoregressive process of order 1 with standard deviation scoreUnit.
type chain struct{ keep, add int64 } // factors of the old value and of a new draw

func newChain(tokens float64) chain {
	one := math.Exp2(fraction)
	return chain{keep: int64(math.Round(one * math.Exp(-1/tokens))),
		add: int64(math.Round(one * math.Sqrt(1-math.Exp(-2/tokens))))}
}

// next returns the value after one token.
func (c chain) next(value, draw int64) int64 { return (c.keep*value + c.add*draw) >> fraction }

// drawScore returns a nearly normal number with mean 0 and standard deviation scoreUnit: the sum of
// four uniform numbers.
func drawScore(random *rand.Rand) int64 {
	const digits, mask = 16, 1<<16 - 1
	x := random.Uint64()
	sum := x&mask + x>>digits&mask + x>>(2*digits)&mask + x>>(3*digits)
	return int64(sum) - 2*mask
}

// expertPlan returns the plan of a model whose units are experts.
func expertPlan(opt Options, shape traces.Shape, info *shapes.Info) (*plan, error) {
	experts := info.Experts
	if opt.Units != 0 {
		experts = opt.Units
	}
	switch {
	case opt.Predicted:
		return nil, fmt.Errorf("synth: model %s: its units are experts, of which no predictor's "+
			"errors are published; ask for the true masks only", info.Name)
	case opt.ActiveShare != 0:
		return nil, fmt.Errorf("synth: model %s: its router picks %d experts for every token; "+
			"an active share cannot be given", info.Name, info.ExpertsPerToken)
	case experts < info.ExpertsPerToken || experts > maxExperts || info.ExpertsPerToken < 1:
		return nil, fmt.Errorf("synth: options: %d experts, of which a token of %s uses %d: %d "+
			"to %d are possible", experts, info.Name, info.ExpertsPerToken, info.ExpertsPerToken,
			maxExperts)
	}
	r, origin, err := routerOf(&opt, info)
	if err != nil {
		return nil, err
	}
	p := &plan{opt: opt, header: header(&opt, shape, info, origin),
		routed: r.layers(opt.Seed, shape.Layers, experts, info.ExpertsPerToken)}
	p.header.UnitKind, p.header.Units = traces.Expert, experts
	p.header.UnitBytes = units.Bytes(shape.DFFN) * shape.RecordBytes()
	return p, nil
}

// layers returns the processes of n layers. Popularity is shuffled in each of them.
func (r *router) layers(seed uint64, n, experts, picked int) []routing {
	list := make([]routing, n)
	for l := range list {
		topic, context := r.at(depthOf(l, n))
		list[l] = routing{picked: picked, popularity: make([]int64, experts),
			topic: newChain(r.topicTokens), context: newChain(r.contextTokens),
			topicWeight: weight(topic), contextWeight: weight(context),
			freshWeight: weight(1 - r.popularity - topic - context)}
		known := list[l].popularity
		for i := range known {
			known[i] = weight(r.popularity) * int64(math.Round(scoreUnit*quantile(i, experts)))
		}
		random := rng.Stream(seed, fmt.Sprintf("synth/experts/layer/%d", l))
		random.Shuffle(experts, func(i, j int) { known[i], known[j] = known[j], known[i] })
	}
	return list
}

// weight returns the factor of a part of the score with a share of its variance.
func weight(share float64) int64 {
	return int64(math.Round(weightOne * math.Sqrt(math.Max(0, share))))
}

// depthOf returns the depth of a layer in the model, from 0 to 1.
func depthOf(layer, layers int) float64 {
	if layers == 1 {
		return 0.5
	}
	return float64(layer) / float64(layers-1)
}

// route generates the trace of experts.
func (p *plan) route(ctx context.Context, emit func(*traces.Token) error) error {
	for seq := p.opt.First; seq < p.opt.First+p.opt.Sequences; seq++ {
		walks := make([]walkOfScores, len(p.routed))
		for l := range walks {
			walks[l] = p.routed[l].start(rng.Stream(p.opt.Seed,
				fmt.Sprintf("synth/experts/sequence/%d/layer/%d", seq, l)))
		}
		ids := rng.Stream(p.opt.Seed, fmt.Sprintf("synth/sequence/%d/ids", seq))
		for pos := range p.opt.Tokens {
			if err := ctx.Err(); err != nil {
				return err
			}
			masks := mask.NewLayers(len(p.routed), p.header.Units)
			for l := range walks {
				walks[l].pick(masks[l])
			}
			t := traces.Token{Seq: uint32(seq), Pos: uint32(pos),
				Phase: traces.PhaseOf(pos < p.opt.Prompt), Active: masks}
			if vocab := p.header.Shape.Vocab; vocab > 0 {
				t.ID = uint32(ids.IntN(vocab))
			}
			if err := emit(&t); err != nil {
				return err
			}
		}
	}
	return nil
}

// walkOfScores is the state of a layer within a sequence.
type walkOfScores struct {
	*routing
	random        *rand.Rand
	topics, texts []int64 // by expert: the drifting parts of its score
	best          []candidate
}

// candidate is an expert with its score.
type candidate struct {
	expert int
	score  int64
}

// start begins a sequence. The drifting parts are drawn from their stationary distribution.
func (r *routing) start(random *rand.Rand) walkOfScores {
	w := walkOfScores{routing: r, random: random, topics: make([]int64, len(r.popularity)),
		texts: make([]int64, len(r.popularity)), best: make([]candidate, 0, r.picked)}
	for e := range w.topics {
		w.topics[e], w.texts[e] = drawScore(random), drawScore(random)
	}
	return w
}

// pick adds the experts of the next token to an empty mask: those with the highest scores, of equal
// ones the lower. Then the parts that drift go on by one token.
func (w *walkOfScores) pick(into mask.Mask) {
	w.best = w.best[:0]
	for e, score := range w.popularity {
		score += w.topicWeight*w.topics[e] + w.contextWeight*w.texts[e] +
			w.freshWeight*drawScore(w.random)
		w.offer(candidate{e, score})
		w.topics[e] = w.topic.next(w.topics[e], drawScore(w.random))
		w.texts[e] = w.context.next(w.texts[e], drawScore(w.random))
	}
	for _, c := range w.best {
		into.Set(uint32(c.expert))
	}
}

// offer keeps a candidate if it is one of the best so far, which are in falling order.
func (w *walkOfScores) offer(c candidate) {
	n := len(w.best)
	if n == w.picked {
		if c.score <= w.best[n-1].score {
			return
		}
		n--
		w.best = w.best[:n]
	}
	w.best = append(w.best, c)
	for ; n > 0 && w.best[n-1].score < c.score; n-- {
		w.best[n] = w.best[n-1]
		w.best[n-1] = c
	}
}
