// Package synth generates activation traces in the shape of a real model, with statistics that
// match published ones. Studies then do not need the model's weights.
//
// # Process
//
// Each neuron of each layer is independent of all others. It follows one two-state Markov chain and
// two coin tosses per token:
//
//  1. Topic. The unit is in topic or not. It enters and leaves at random and stays for a mean of
//     dwell = 43 tokens. Its popularity is how often it is in topic. Popularity differs between
//     units: its odds are log-normal (standard deviation 1.5), in 8 classes of equal size. A core
//     of 4 % of the units is always in topic. Popularity belongs to the layer and is the same in
//     all sequences. Topics are drawn anew for each sequence.
//  2. Prediction. At each token a unit in topic is predicted with probability 0.22 (core: 0.95); no
//     other unit is predicted.
//  3. Activity. A predicted unit is active with one probability, and an unpredicted unit in topic
//     with another, small one. These two give the layer its active share, its false negatives and
//     its false positives.
//
// So there are three time scales: popularity (constant), topics (tens of tokens), and the toss per
// token. Layers differ in their active share: the odds of core, topic and rate are scaled to reach
// it.
//
// # Experts
//
// Units of a mixture of experts are whole experts. Every token uses exactly K of N in each layer:
// those with the highest scores, as a router's top-k. The score of an expert is a sum of four
// normal parts, whose shares of the variance are the parameters:
//
//   - popularity belongs to the expert. It is the same in all sequences and differs between layers.
//   - topic drifts over hundreds of tokens. It is drawn anew for each sequence.
//   - context drifts over a few tokens.
//   - the rest is drawn anew for each token.
//
// Topic and context are autoregressive of order 1, each with its time constant. Layers differ by a
// factor on both, where repetitions by layer are published. The layers of a token are independent,
// and so are the experts of a layer. There are no predicted masks.
//
// Each published model has its own parameters (routers), fitted by a search that TestFittedRouters
// repeats. routing.csv has the figures with their places: OLMoE-1B-7B (popularity, repetition by
// layer, hit ratios), Qwen3-30B-A3B (repetition, hit ratios; popularity assumed),
// Qwen3.8-Flash-Next (popularity, hit ratios), GLM-5.2 (hit ratios; popularity assumed) and
// Mixtral-8x7B (repetition in layers 1, 16 and 32: 48, 64 and 51 % of the tokens have an expert in
// common with the one before, 46 % by chance; the time constants and the ratio of topic to context
// are OLMoE-1B-7B's). Other models have the process of the one with as many experts per layer and
// per token, or else OLMoE-1B-7B's. The header says which. docs/validation.md compares hit ratios
// with published ones that were not fitted.
//
// # What is matched
//
// For OPT-6.7B, as means over layers, all from LLM in a flash (targets.csv names the places): 3.3 %
// active, with 1.56, 2.66 and 5.36 % in layers 1, 16 and 32 and smooth in between; 5 % false
// negatives and 7 % false positives, which gives 9.9 % predicted (the paper says about 10 %); and
// of the predicted masks s_agg(5) = 24 % and Δ(4) = s_agg(5) − s_agg(4) = 2.4 %.
//
// The paper uses k = 4 and the past 5 tokens in one paragraph. Here the window holds the units of
// the 4 tokens before the current one. With the current token's units the cache holds s_agg(5), the
// 24 %. Each token loads Δ(4), the 2.4 %.
//
// The three values are consistent. Δ(0) … Δ(4) of a mixture of stationary on/off chains fall
// convexly from 9.9 to 2.4 and must add up to 24. They can: here they are 9.90, 4.95, 3.76, 2.98,
// 2.40. Beyond 5 tokens nothing is published for this model. Δ(29)/Δ(4) = 0.15 is assumed, after
// the curve of another model in the same paper. The closed form of s_agg(k) is class.idle. The
// parameters are fitted to it, and a test repeats the fit.
//
// Other models use their own active share. All else is assumed as for OPT-6.7B, except for
// published values in targets.csv: Mistral-7B has its share of persistent units. The header's
// Sampling field says so for each trace.
//
// # What is not matched
//
// Units are independent given their class. There is no co-activation beyond popularity. Neighbours
// on flash are not related: the mean run of active units is 1.03 to 1.11, and 1.05 is published for
// OPT-6.7B. The active share varies less from token to token than in a recorded trace, so that
// percentiles of latency come out too narrow. The temporal statistics of the true masks follow from
// the process and not from published values. Prompt tokens have the statistics of all others. Token
// ids are uniform noise.
//
// # Reading guide
//
// process.go has the process and its closed form, profile.go the fitted parameters and the layers,
// targets.go the published numbers. generate.go and bits.go are the generator, which makes 64
// tokens of a unit at once, one bit of a word each. experts.go is the generator of experts,
// routers.go its parameters.
package synth
