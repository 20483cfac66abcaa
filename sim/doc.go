// Package sim predicts how long a trace takes on a device: it replays the activation masks of a
// trace through the same residency policy and the same flash layout as the engine, and charges time
// from a device model.
//
// Decisions (hits, misses, evictions, requests, bytes, row moves) come from
// internal/decisions/policy and internal/decisions/layout and are therefore the engine's own; only
// time is modelled. For each token and layer, in this order:
//
//	attention   resident mat-vecs and reading keys and values
//	predict     mask, policy and layout decisions
//	io          the layer's read requests through the flash station, as discrete events
//	            (devicemodels/flash)
//	memory      row-cache copies: rows evicted after the previous token are overwritten, new rows
//	            appended
//	ffn         dot products and updates over the rows of the active units
//
// and once per token "other": final norm and output head. The embedding, a thousandth of a layer,
// is in the first layer's attention; sampling is not part of a Run.
//
// That is on demand. A Schedule moves reads ahead of their need, behind compute; it changes when
// things are read and what is read in vain, never what is needed, kept and evicted:
//
//	lookahead   when the attention of layer l is done, what a prediction names for layer l+1 is
//	            submitted. After the attention of l+1 its need is known, and what
//	            was not named is read on demand. Layer 0 of a token reads on demand, since nothing
//	            of it is known before
//	token       layers 0 … Dense−1 are dense and in memory. Once layer 0 has computed, all later
//	            layers are predicted and decided (in the
//	            "predict" of layer 0), and what they lack is submitted at once. The first sparse
//	            layer waits for all of it before its attention
//	            (NeuroPrefetcher, sections 3 and 4), or each layer for its own after its attention
//
// A reader in the background submits reads in chunks that share a staging buffer as the engine's do
// (layout.Staging): when all of one has come the next is submitted, if there is room, while the
// rows of the first are moved to their places, in order; this takes the copies off the layer's
// "memory". The next layer's reads of a lookahead so wait for those under way; with
// schedule.Unlimited they do not. Reads ahead and on demand share the slots, demand first, but a
// read in the drive is not called back. A layer waits for all that was read ahead for it, also in
// vain. The first token of a sequence finds nothing in memory, so that its reads are the largest.
//
// Compute beside reads is stretched as devicemodels.Host.Overlap says, over each part with the
// bytes that moved meanwhile. Where no accelerator computes (the device has no transfer, waiting
// for each other or holding of rows), it is stretched also by the share of the cores that the reads
// take, if that is more, and by the whole time of moving rows, which then gains nothing from the
// background. Compute that lost time makes up for it at its own rate and may lose again. A layer's
// memory traffic is taken to be spread evenly over its parts. Predicting the next layer costs
// nothing; PredictorRank is of the masks that say what is needed.
//
// An I/O row of such a Run is the time that compute waited, with the counts and bytes of all reads
// for the layer; traces.Ahead has what was hidden. The first sparse layer has two I/O rows when it
// waits for the whole token.
//
// With the backend "cuda" the GPU of the device model (devicemodels.GPU) computes, as package
// engine/cuda lets it. The host asks for kernels and lists on two streams, compute and moves;
// internal/decisions/launch has their number. A stage of n calls that is asked for at the host's
// time t, of work w, on a stream that is through at s:
//
//	host    t + n·launch
//	stream  max(max(s, t + launch) + w, t + n·launch)
//	waited  stream + reply + sync, where the host waits; reply is the copy of what it waits for
//
// The work of the stages is, with the rates and fixed times of the GPU (a mat-vec, say, takes
// dense_fixed + bytes/dense_rate),
//
//	attention  4 mat-vecs, keys and values of pos+1 positions, and a kernel each for norms,
//	           additions, storing and turning
//	arrive     on moves: rows that close gaps (move), rows that were read (scatter), and a
//	           transfer for each list
//	ffn        the rows of the units; it begins when compute and moves are both through
//	ends       the embedding and the output head, with the logits as reply
//
// In turn: attention is asked for, the host decides, waits until moves is through with the staging
// buffer, reads, asks for arrive and ffn. It waits for attention only where a predictor on the host
// wants the input, and else for nothing but the logits: then the device computes while the host
// reads. With Observed it waits after attention, arrive and ffn, as package replay makes the engine
// do. Rows of a Run are on the host's clock, so that they tile the time: what it did not wait for
// earlier is in "other". Under a schedule that reads ahead the streams are not followed: a stage
// takes max(w, n·launch), with its wait if there is one, and the wait for rows begins when
// attention is done. Several tokens in a step, and predictors on the GPU, are not modelled.
//
// Layer and Cache (decide.go) are the decisions, Host (host.go) the times of the host,
// Config.NewStation the flash: package sweep puts the same three together for many configurations
// at once.
//
// Reading guide: Run in sim.go, decide.go, host.go, gpu.go, then Station in devicemodels/flash;
// schedule.go, reader.go and ahead.go for reading ahead; prediction.go says how far a result can be
// trusted. Invariants tested here: same decisions as the engine (1, in package replay),
// conservation and drained at the end (2), Little's law (3), monotone (4), determinism (5), the
// same decisions under every schedule, and the closed form of sim/reproduce where times are
// constant.
package sim
