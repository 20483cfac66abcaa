// Package stats measures a trace in one pass: its sparsity, its repetition from token to token, the
// hits and misses of every window of 0 to 64 tokens, and the unions of batches of 1 to 64
// sequences.
//
// # Model
//
// An access is one unit that one token needs in one layer. Its gap is the number of tokens since
// the last access of the same unit in the same sequence; 1 is the previous token. The first access
// of a unit in a sequence has no gap. M_t(k) is the number of units that token t needs and that
// none of the k tokens before it in its sequence needed: the accesses with a gap above k or without
// one. D_t(k) is the number of distinct units in the k tokens that end with t. Then
//
//	D_t(k+1) = D_{t−1}(k) + M_t(k)        since the k+1 tokens are the k before t, and t
//
// so that one histogram of gaps per token and layer gives all windows at once (gaps above 64 count
// as 65):
//
//	misses(k)  = Σ_t M_t(k), over all tokens exactly what policy.Window(k) loads, with a cold
//	           start of each sequence
//	s_agg(k)   = mean of D_t(k) over the tokens t that end a full window: those with k−1 tokens
//	           before them
//	Δ(k)       = mean of M_t(k) over the tokens t with k tokens before them in their sequence
//	s_agg(k+1) = Δ(k) + mean of D_t(k) over all full windows but the last of each sequence
//
// The last line makes "Δ(k) = s_agg(k+1) − s_agg(k)" (LLM in a flash, section 3.1) exact. With
// s_agg(k) over all windows it holds up to the share of one window in a sequence. A sequence
// shorter than k contributes nothing to s_agg(k).
//
// The pass keeps one token index per unit and layer, and a few numbers per window. Its memory does
// not depend on the length of the trace. The result does not depend on the number of workers.
//
// # Unions
//
// A batch of B sequences needs the units that at least one of them needs. ComputeUnions forms
// batches of all sizes from the lanes of a trace (traces/batch) and counts the masks that each unit
// is in. An activation is a pair of a sequence and a unit that it needs. Let least(M) be the number
// of units in at least M of the masks. Leaving out the units in fewer than M masks drops this many
// activations:
//
//	dropped(M) = Σ_{m<M} least(m) − (M−1)·least(M)
//
// since the sum counts min(c, M−1) for a unit in c masks. A larger batch contains a smaller one, so
// that unions grow with B. ComputeChunks measures unions of consecutive tokens, which a prompt
// needs that is computed several tokens at a time.
//
// # Reading guide
//
// compute.go has Compute, its batches of tokens and its workers. pass.go is the pass over one
// layer, with the formulas above. stats.go is the result. unions.go measures batches of sequences,
// groups.go the gain of choosing the sequences, chunks.go prompts.
package stats
