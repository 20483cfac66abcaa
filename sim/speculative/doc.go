// Package speculative predicts what speculative decoding gains on a model whose rows are on flash
// (LLM in a flash, section 5.2).
//
// # Model
//
// A small model drafts λ tokens one after the other; the large one verifies them in one pass over
// λ+1 positions and keeps those up to the first that it would not have chosen, and one of its own:
// 1 + α + … + α^λ tokens on average. A verification of a layer
//
//	reads     the union of the rows that its λ+1 tokens need and that are not in memory, once
//	keeps     the rows of the k tokens that end with its token α·(λ+1), rounded: the paper's
//	          conjecture of where the next batch begins
//	computes  as one token does, with the rows of the union; keys and values are read for each of
//	          the λ+1 tokens
//
// and its time over the tokens that it yields is the time of a token. Decisions about rows,
// requests and times are the simulator's own (package sim); with λ = 0 the result is that of
// sim.Run.
//
// Compute is charged once per verification, as if all tokens used the weights while they pass: a
// lower bound for a processor that arithmetic limits, where it may be up to λ+1 times as much. The
// draft model is in memory, its size is not counted, and it takes a given time per token.
//
// The trace knows only the tokens that were chosen. With the mean acceptance, verifications follow
// each other in steps of λ+1 tokens and a rejected token stands for its successor, which shares its
// topics: text moves on faster than it is written, so that more is read than would be. With drawn
// acceptance, each drafted token is accepted or not by a draw, and the next batch begins behind the
// last accepted one: rejected places are verified again, with the very same rows, so that less is
// read. What really happens lies between the two. Break-even acceptance is that of the mean, so
// rather too high. Prompts are not speculated about: their tokens run one by one and are not
// counted.
//
// # Reading guide
//
// speculation.go: λ, α, the tokens of a verification and the window rule, which the tables of the
// paper (sim/reproduce) share. verify.go: one verification. run.go: the table over λ, the optimum
// and break-even acceptance.
package speculative
