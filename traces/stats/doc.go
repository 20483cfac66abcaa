// Package stats measures a trace in one pass: how sparse it is, how much of it repeats from token
// to token, what every window of 0 to 64 tokens would hit and miss, and what batches of 1 to 64
// sequences need together.
//
// # Model
//
// An access is one unit that one token needs in one layer. Its gap is the number of tokens since
// the last access of the same unit in the same sequence (1 = the token before); the first access of
// a sequence has none. With M_t(k) the number of units that token t needs and that none of the k
// tokens before it in its sequence needed, that is the accesses with a gap above k or without one,
// and D_t(k) the number of distinct units in the k tokens that end with t:
//
//	D_t(k+1) = D_{t−1}(k) + M_t(k)        since the k+1 tokens are the k before t, and t
//
// so one histogram of gaps per token and layer gives all windows at once (gaps above 64 count as
// 65):
//
//	misses(k)  = Σ_t M_t(k), over all tokens exactly what policy.Window(k) loads, with a cold
//	           start of each sequence
//	s_agg(k)   = mean of D_t(k) over the tokens t that end a full window: those with k−1 tokens
//	           before them
//	Δ(k)       = mean of M_t(k) over the tokens t with k tokens before them in their sequence
//	s_agg(k+1) = Δ(k) + mean of D_t(k) over all full windows but the last of each sequence
//
// The last line makes "Δ(k) = s_agg(k+1) − s_agg(k)" (LLM in a flash, section 3.1) exact; with
// s_agg(k) over all windows it holds up to the share of one window in a sequence. A sequence
// shorter than k contributes nothing to s_agg(k).
//
// The pass keeps one token index per unit and layer, and a few numbers per window. Its memory does
// not depend on the length of the trace, and the result does not depend on the number of workers.
//
// # Unions
//
// A batch of B sequences needs in a step the units that at least one of them needs. ComputeUnions
// forms batches of all sizes from the lanes of a trace (traces/batch) and counts how many of the
// masks each unit is in. With least(M) the number of units in at least M of the masks, leaving out
// those in fewer than M drops this many of the activations, which are all pairs of a sequence and a
// unit that it needs:
//
//	dropped(M) = Σ_{m<M} least(m) − (M−1)·least(M)
//
// since the sum counts min(c, M−1) of a unit in c masks. A larger batch contains a smaller one, so
// that unions are monotone in B. ComputeChunks is the same over tokens that follow each other,
// which is what a prompt needs that is computed several tokens at a time.
//
// # Reading guide
//
// compute.go: Compute, its batches of tokens and workers. pass.go: the pass over one layer, the
// formulas above. stats.go: the result. unions.go: batches of sequences. groups.go: what choosing
// the sequences gains. chunks.go: prompts.
package stats
