// Package speculative predicts the gain of speculative decoding for a model whose rows are on flash
// (LLM in a flash, section 5.2).
//
// # Model
//
// A small model drafts λ tokens one after the other. The large model verifies them in one pass over
// λ+1 positions. It keeps the drafted tokens before the first that it would not have chosen, and
// adds one token of its own. That makes 1 + α + … + α^λ tokens on average. In one layer, a
// verification
//
//	reads     the union of the rows that its λ+1 tokens need and that are not in memory, once
//	keeps     the rows of the k tokens that end with its token α·(λ+1), rounded: the paper's
//	          conjecture of where the next batch begins
//	computes  as one token does, with the rows of the union; keys and values are read for each of
//	          the λ+1 tokens
//
// The time of a token is the time of a verification divided by its tokens. Decisions about rows,
// requests and times are those of package sim. With λ = 0 the result equals sim.Run.
//
// Compute is charged once per verification, as if all tokens shared each read of the weights. That
// is a lower bound: a processor limited by arithmetic takes up to λ+1 times as long. The draft
// model is in memory, its size is not counted, and it takes a given time per token.
//
// The trace has no rejected tokens. There are two ways to do without them. With the mean
// acceptance, verifications follow each other in steps of λ+1 tokens, and a rejected token is
// replaced by its successor, which shares its topics. The text then advances too fast, so that too
// much is read. With drawn acceptance, every drafted token is accepted or rejected by a random
// draw, and the next batch begins after the last accepted token. Rejected positions are verified
// again with the same rows, so that too little is read. The truth lies between the two. Break-even
// acceptance uses the mean and is therefore rather too high. Prompts are not drafted: their tokens
// run one by one and are not counted.
//
// # Reading guide
//
// speculation.go has λ, α, the tokens of a verification and the window rule. verify.go has one
// verification. run.go has the table over λ, the optimum and break-even acceptance, document.go its
// description for a reader. sim/reproduce runs the paper's row by Run.
package speculative
