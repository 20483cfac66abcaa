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

// router is the model with published repetitions of experts by layer.
const router = "Mixtral-8x7B"

// popularitySpread is the standard deviation of the log-normal popularity of experts. It is
// assumed: training balances experts. It explains all of the first layer's repetitions above
// chance, 48 % against 46 %.
const popularitySpread = 0.2

// maxExperts is the largest number of experts of a layer. A token looks at all experts for each one
// that it selects.
const maxExperts = 1 << 12

// routing is one layer's router: the popularity of its experts and the probability that one stays.
type routing struct {
	picked int     // experts per token
	stay   uint64  // probability that an expert of the previous token is kept, in units of 2⁻⁶⁴
	weight []int64 // by expert: popularity
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
	stay, err := stays()
	if err != nil {
		return nil, err
	}
	p := &plan{opt: opt, header: header(&opt, shape, info,
		"popularity of experts assumed (log-normal, 0.2); repetitions "+repetitionOrigin(
			info.Name))}
	p.header.UnitKind, p.header.Units = traces.Expert, experts
	p.header.UnitBytes = units.Bytes(shape.DFFN) * shape.RecordBytes()
	for l := range shape.Layers {
		r := routing{picked: info.ExpertsPerToken, stay: round32(stay(depthOf(l, shape.Layers))),
			weight: popularity(experts)}
		random := rng.Stream(opt.Seed, fmt.Sprintf("synth/experts/layer/%d", l))
		random.Shuffle(experts, func(i, j int) {
			r.weight[i], r.weight[j] = r.weight[j],
				r.weight[i]
		})
		p.routed = append(p.routed, r)
	}
	return p, nil
}

// repetitionOrigin returns the source of the time scale of a model's experts, for the header.
func repetitionOrigin(model string) string {
	if model == router {
		return "as published"
	}
	return "assumed as " + router
}

// depthOf returns the depth of a layer in the model, from 0 to 1.
func depthOf(layer, layers int) float64 {
	if layers == 1 {
		return 0.5
	}
	return float64(layer) / float64(layers-1)
}

// popularity gives n experts the middle quantiles of a log-normal distribution, the most popular
// expert first. Integers make the draws the same on every processor.
func popularity(n int) []int64 {
	const median = 1 << 20
	list := make([]int64, n)
	for i := range list {
		quantile := 1 - (float64(i)+0.5)/float64(n)
		z := math.Sqrt2 * math.Erfinv(2*quantile-1)
		list[i] = int64(math.Round(median * math.Exp(popularitySpread*z)))
	}
	return list
}

// stays returns the probability that an expert is kept for the next token, by depth. It
// interpolates between the layers with published repetitions. Two tokens share no expert if none is
// kept, (1−stay)^K, and if the draws avoid the old experts, apart.
func stays() (func(depth float64) float64, error) {
	shape, info, err := shapes.Lookup(router)
	if err != nil {
		return nil, fmt.Errorf("synth: experts: %w", err)
	}
	targets, err := Targets(router)
	if err != nil {
		return nil, err
	}
	none := apart(popularity(info.Experts))
	var at, stay []float64
	for _, t := range targets {
		var layer int
		if _, err := fmt.Sscan(t.Layer, &layer); err != nil || t.Quantity != "repetition" {
			continue
		}
		at = append(at, depthOf(layer-1, shape.Layers))
		stay = append(stay, math.Max(0, 1-math.Pow((1-t.Percent/100)/none,
			1/float64(info.ExpertsPerToken))))
	}
	if len(at) < 2 {
		return nil, fmt.Errorf("synth: targets.csv: %d repetitions of %s: two are needed for a "+
			"line over depth", len(at), router)
	}
	return func(depth float64) float64 {
		i := 1
		for i < len(at)-1 && depth > at[i] {
			i++
		}
		return stay[i-1] + (depth-at[i-1])/(at[i]-at[i-1])*(stay[i]-stay[i-1])
	}, nil
}

// apart returns the probability that two independent pairs have no expert in common. Each pair is
// drawn by weight without replacement.
func apart(weight []int64) float64 {
	total := 0.0
	for _, w := range weight {
		total += float64(w)
	}
	pair := func(a, b float64) float64 { return a * b / total * (1/(total-a) + 1/(total-b)) }
	sum := 0.0
	for i := range weight {
		for j := range i {
			a, b := float64(weight[i]), float64(weight[j])
			others := 0.0
			for k := range weight {
				if k != i && k != j {
					c := float64(weight[k])
					others += c / total * (total - a - b - c) / (total - c)
				}
			}
			sum += pair(a, b) * others
		}
	}
	return sum
}

// route generates the trace of experts.
func (p *plan) route(ctx context.Context, emit func(*traces.Token) error) error {
	for seq := p.opt.First; seq < p.opt.First+p.opt.Sequences; seq++ {
		random := make([]*rand.Rand, len(p.routed))
		for l := range random {
			random[l] = rng.Stream(p.opt.Seed, fmt.Sprintf("synth/experts/sequence/%d/layer/%d",
				seq, l))
		}
		ids := rng.Stream(p.opt.Seed, fmt.Sprintf("synth/sequence/%d/ids", seq))
		var before []mask.Mask
		for pos := range p.opt.Tokens {
			if err := ctx.Err(); err != nil {
				return err
			}
			masks := mask.NewLayers(len(p.routed), p.header.Units)
			for l := range p.routed {
				var old mask.Mask
				if before != nil {
					old = before[l]
				}
				p.routed[l].pick(random[l], old, masks[l])
			}
			t := traces.Token{Seq: uint32(seq), Pos: uint32(pos),
				Phase: traces.PhaseOf(pos < p.opt.Prompt), Active: masks}
			if vocab := p.header.Shape.Vocab; vocab > 0 {
				t.ID = uint32(ids.IntN(vocab))
			}
			before = masks
			if err := emit(&t); err != nil {
				return err
			}
		}
	}
	return nil
}

// pick adds the experts of a token to an empty mask. Each expert of the previous token is kept or
// not; the others are drawn by popularity from all that are not kept. before is nil for the first
// token.
func (r *routing) pick(random *rand.Rand, before, into mask.Mask) {
	left, picked := int64(0), 0
	for u, w := range r.weight {
		if before != nil && before.Has(uint32(u)) && random.Uint64() < r.stay {
			into.Set(uint32(u))
			picked++
		} else {
			left += w
		}
	}
	for ; picked < r.picked; picked++ {
		at := random.Int64N(left)
		for u, w := range r.weight {
			if into.Has(uint32(u)) {
				continue
			}
			if at -= w; at < 0 {
				into.Set(uint32(u))
				left -= w
				break
			}
		}
	}
}
