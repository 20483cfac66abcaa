package synth

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/windrow-sim/windrow/traces/shapes"
)

// router holds the parameters of the routing process of one published model; the package
// documentation explains them. The three shares are of the variance of a score. What they leave of
// 1 is drawn anew for every token.
type router struct {
	model           string
	experts, picked int // of the published model, per layer and per token

	popularity    float64 // share that belongs to the expert for good
	topic         float64 // share that drifts with the topic
	context       float64 // share that drifts with the last tokens
	topicTokens   float64 // time constant of the topic, in tokens
	contextTokens float64 // time constant of the context, in tokens

	// depth scales topic and context of a layer; nil means 1 in all layers.
	depth []depthFactor
}

// depthFactor is a point of a line over depth, which goes from 0 (first layer) to 1 (last).
type depthFactor struct{ depth, factor float64 }

// assumedPopularity is the popularity of routers of which none is published: the geometric mean of
// the two that are fitted.
const assumedPopularity = 0.05

// routers lists the models with published routing. TestFittedRouters repeats the fits: of
// popularity to shares of use, of the others to repetitions and hit ratios, all in routing.csv.
// Mixtral-8x7B has no published hit ratio: its process is that of OLMoE-1B-7B, scaled by depth to
// its own repetitions, and its popularity explains what the first layer repeats above chance.
func routers() []router {
	return []router{
		{model: "Mixtral-8x7B", experts: 8, picked: 2, popularity: 0.027,
			topic: 0.18, context: 0.48, topicTokens: 114, contextTokens: 1.57,
			depth: []depthFactor{{0, 0}, {0.484, 0.59}, {1, 0.11}}},
		{model: "OLMoE-1B-7B", experts: 64, picked: 8, popularity: 0.14,
			topic: 0.18, context: 0.48, topicTokens: 114, contextTokens: 1.57,
			depth: []depthFactor{{0, 0.41}, {0.0667, 0.57}, {0.133, 0.94}, {0.2, 0.96},
				{0.267, 1.19}, {0.333, 1.23}, {0.4, 1.26}, {0.467, 1.19}, {0.533, 0.99},
				{0.6, 0.84}, {0.667, 0.72}, {0.733, 0.93}, {0.8, 0.91}, {0.867, 1.02}}},
		{model: "Qwen3-30B-A3B", experts: 128, picked: 8, popularity: assumedPopularity,
			topic: 0.44, context: 0.28, topicTokens: 978, contextTokens: 8.18},
		{model: "Qwen3.8-Flash-Next", experts: 512, picked: 10, popularity: 0.0114,
			topic: 0.48, context: 0.23, topicTokens: 191, contextTokens: 1.56},
		{model: "GLM-5.2", experts: 256, picked: 8, popularity: assumedPopularity,
			topic: 0.31, context: 0.26, topicTokens: 126, contextTokens: 3.02},
	}
}

// Routings returns the names of the models with published routing, for Options.Routing.
func Routings() []string {
	var names []string
	for _, r := range routers() {
		names = append(names, r.model)
	}
	return names
}

// routerOf returns the router that opt asks for, else that of the model, else that of the published
// model with as many experts per layer and per token, else OLMoE-1B-7B's. origin says which it is,
// for the header.
func routerOf(opt *Options, info *shapes.Info) (r router, origin string, err error) {
	list := routers()
	named := func(name string) func(router) bool {
		return func(r router) bool { return strings.EqualFold(r.model, strings.TrimSpace(name)) }
	}
	if opt.Routing != "" {
		i := slices.IndexFunc(list, named(opt.Routing))
		if i < 0 {
			return router{}, "", fmt.Errorf("synth: options: no routing is published of %q; there "+
				"is %s", opt.Routing, strings.Join(Routings(), ", "))
		}
		return list[i], "routing as of " + list[i].model + " (asked for)", nil
	}
	if i := slices.IndexFunc(list, named(info.Name)); i >= 0 {
		return list[i], "routing fitted to published figures of " + list[i].model, nil
	}
	i := slices.IndexFunc(list, func(r router) bool {
		return r.experts == info.Experts && r.picked == info.ExpertsPerToken
	})
	if i < 0 {
		i = slices.IndexFunc(list, named(fallbackRouter))
	}
	return list[i], "routing assumed as of " + list[i].model, nil
}

// fallbackRouter is the model whose process others are given: the one with the most published
// figures.
const fallbackRouter = "OLMoE-1B-7B"

// at returns the shares of topic and context at a depth from 0 to 1. Something is always left to
// chance.
func (r *router) at(depth float64) (topic, context float64) {
	factor := 1.0
	for i, p := range r.depth {
		switch {
		case i == 0 || depth >= p.depth:
			factor = p.factor
		case depth > r.depth[i-1].depth:
			before := r.depth[i-1]
			factor = before.factor + (depth-before.depth)/(p.depth-before.depth)*
				(p.factor-before.factor)
		}
	}
	const most = 0.98 // of the variance that popularity leaves
	factor = math.Min(factor, most*(1-r.popularity)/(r.topic+r.context))
	return factor * r.topic, factor * r.context
}

// use returns the long-run share of tokens that use each of n experts if picked are used per token,
// the most popular expert first. A token uses an expert if its score, normal around its popularity,
// is above a common threshold.
func (r *router) use(n, picked int) []float64 {
	share := make([]float64, n)
	spread := math.Sqrt(1 - r.popularity)
	sum := func(threshold float64) (total float64) {
		for i := range share {
			z := (math.Sqrt(r.popularity)*quantile(i, n) - threshold) / spread
			share[i] = 0.5 * math.Erfc(-z/math.Sqrt2)
			total += share[i]
		}
		return total
	}
	lo, hi := -8.0, 8.0 // standard deviations of a score
	for range 60 {
		if mid := (lo + hi) / 2; sum(mid) > float64(picked) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return share
}

// quantile returns the middle of the i-th of n equally likely parts of the normal distribution, the
// largest first.
func quantile(i, n int) float64 {
	return math.Sqrt2 * math.Erfinv(2*(1-(float64(i)+0.5)/float64(n))-1)
}
