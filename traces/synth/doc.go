// Package synth generates activation traces in the shape of a real model whose statistics match
// published ones, for studies without the model's weights.
//
// # Process
//
// Each neuron of each layer is independent of all others and follows one two-state Markov chain and
// two coin tosses per token:
//
//  1. Topic. The unit is in topic or not. It enters and leaves at random; it stays for a mean of
//     dwell = 43 tokens. How often a unit is in topic, its popularity, differs between units: the
//     odds are log-normal (standard deviation 1.5), in 8 classes of equal size. A core of 4 % of
//     the units is always in topic. Popularity belongs to the layer and is the same in all
//     sequences; topics are drawn anew for each sequence.
//  2. Prediction. At each token a unit in topic is predicted with probability 0.22 (core: 0.95),
//     any other never.
//  3. Activity. A predicted unit is active with one probability, and a unit in topic that is not
//     predicted with another, small one, such that the layer has its active share, its false
//     negatives and its false positives.
//
// So there are three time scales: popularity (for ever), topics (tens of tokens), and the toss per
// token. Layers differ in their active share: the odds of core, topic and rate are scaled until it
// is right.
//
// # Experts
//
// Units of a mixture of experts are whole experts. Every token uses exactly K of N in each layer.
// Each expert that the token before used is kept with a probability that depends on the depth of
// the layer; the others are drawn one after the other by popularity, among all that are not kept.
// Popularity is log-normal (standard deviation 0.2, assumed) and belongs to the layer; the
// probabilities make the share of tokens that have an expert in common with the one before what is
// published for Mixtral-8x7B: 48, 64 and 51 % in layers 1, 16 and 32 (46 % by chance), straight
// lines in between. For other models, and whatever their K and N, the same probabilities are
// assumed. The layers of a token are independent of each other, and there are no predicted masks.
//
// # What is matched
//
// For OPT-6.7B, means over layers, all from LLM in a flash (targets.csv names the places): 3.3 %
// active, 1.56, 2.66 and 5.36 % in layers 1, 16 and 32 and smooth in between; 5 % false negatives
// and 7 % false positives, which gives 9.9 % predicted (the paper says about 10 %); and of the
// predicted masks s_agg(5) = 24 % and Δ(4) = s_agg(5) − s_agg(4) = 2.4 %.
//
// The paper speaks of k = 4 and of the past 5 tokens in one paragraph. Here the window holds the
// units of 4 tokens before the current one; with the current token's units the cache holds
// s_agg(5), the 24 %, and each token loads Δ(4), the 2.4 %.
//
// The three values fit together: Δ(0) … Δ(4) of a mixture of stationary on/off chains fall in a
// convex way from 9.9 to 2.4 and must add up to 24, which they can (here 9.90, 4.95, 3.76, 2.98,
// 2.40). What happens beyond 5 tokens is not published for this model; Δ(29)/Δ(4) = 0.15 is
// assumed, after the curve of another model in the same paper. The closed form of s_agg(k) is
// class.idle; the parameters are fitted to it, and a test repeats the fit.
//
// For other models the active share is theirs and everything else is assumed as for OPT-6.7B, but
// where targets.csv has a published value: Mistral-7B has its share of persistent units. The
// header's Sampling field says so for each trace.
//
// # What is not matched
//
// Units are independent given their class. There is no co-activation beyond popularity, neighbours
// on flash are not related (mean run of active units 1.03 to 1.11; 1.05 is published for OPT-6.7B),
// and the active share varies less from token to token than in a recorded trace, so that
// percentiles of latency come out too narrow. The temporal statistics of the true masks are a
// consequence of the process, not of published values. Prompt tokens have the statistics of all
// others, and token ids are uniform noise.
//
// # Reading guide
//
// process.go: the process and its closed form. profile.go: the fitted parameters and the layers.
// targets.go: the published numbers. generate.go and bits.go: the generator, which makes 64 tokens
// of a unit at once, one bit of a word each. experts.go: all of experts.
package synth
