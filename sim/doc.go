// Package sim predicts the time of a trace on a device. It replays the activation masks of the
// trace through the residency policy and the flash layout of the engine, and charges time from a
// device model.
//
// Decisions are hits, misses, evictions, requests, bytes and row copies. They come from
// internal/decisions/policy and internal/decisions/layout, which the engine uses too. Only time is
// modelled here.
//
// # One layer
//
// Machine (machine.go) carries out one layer of one token, for every study of the simulator. The
// parts follow each other in this order:
//
//	attention   resident mat-vecs, and reading keys and values
//	predict     mask, policy and layout decisions
//	io          the layer's read requests through the flash station, as discrete events
//	            (devicemodels/flash)
//	memory      row-cache copies: the last rows of the cache fill the places of rows that were
//	            evicted after the previous token; loaded rows are appended
//	ffn         dot products and updates over the rows of the active units
//
// The part "other" ends a token: final norm and output head. The embedding takes a thousandth of a
// layer and is part of the first layer's attention. Sampling is not part of a Run.
//
// # Schedules
//
// Without a Schedule, reads are on demand. A Schedule submits reads before they are needed, while
// the model computes. It changes the times of reads and adds reads that a prediction names
// wrongly. It does not change what is needed, kept and evicted.
//
//	lookahead   After the attention of layer l, the units predicted for layer l+1 are prefetched.
//	            After the attention of layer l+1 its needed units are known. Units that were not
//	            predicted are read on demand. Layer 0 reads on demand, because nothing predicts
//	            it; the prefetches for layer 1 follow when its rows are in their places.
//	token       Layers 0 … Dense−1 are dense and resident. After layer 0, all later layers are
//	            predicted and decided, as the part "predict" of layer 0, and prefetched at once.
//	            The first sparse layer waits for all prefetches before its attention
//	            (NeuroPrefetcher, sections 3 and 4). With WaitLayer, each layer waits for its own
//	            after its attention.
//
// A background reader submits the prefetches in batches (layout.Planner.Batches). They share a
// staging buffer as in the engine (layout.Staging). When the batches of one submission are read,
// the next ones are submitted if there is room, and the rows of the first are scattered to the
// cache, in order. The part "memory" of the layer does
// not include these copies. A lookahead for the next layer waits for the batches in flight, except
// with schedule.Unlimited. Prefetches and demand reads share the slots of the drive. A free slot
// takes demand reads first. A read in the drive is not cancelled. A layer waits for all its
// prefetches, also for those that it does not need. The first token of a sequence finds an empty
// cache, so its reads are the largest.
//
// Reads slow down compute that runs beside them, as devicemodels.Host.Overlap says: part by part,
// with the bytes that move meanwhile. Without an accelerator (the device has no transfer, no
// synchronisation and no cost of resident rows), two more effects slow it down: the share of the
// cores that reads take, if it is larger, and the whole time of row copies. Copies in the
// background then gain nothing. Compute makes up for lost time at its own rate and may be slowed
// down again. The memory traffic of a layer is taken as evenly spread over its parts. The
// prediction for the next layer costs nothing. PredictorRank is the cost of the masks that say
// what is needed.
//
// The I/O row of such a Run is the time that compute waited. Its counts and bytes are those of all
// reads for the layer. traces.Prefetches has the hidden time. The first sparse layer has two I/O
// rows if it waits for the whole token.
//
// # GPU
//
// With the backend "cuda" the GPU of the device model (devicemodels.GPU) computes, in the manner of
// package engine/cuda. The host launches kernels and lists of kernels on two streams, compute and
// moves. internal/decisions/launch counts them. The equations of a stage have these operands: n
// launches by the host from its time t on, work w on the device, a stream that is busy until s:
//
//	host    t + n·launch
//	stream  max(max(s, t + launch) + w, t + n·launch)
//	waited  stream + reply + sync, if the host waits; reply is the device-to-host copy
//
// The work of the stages uses the rates and fixed times of the GPU. A mat-vec, for example, takes
// dense_fixed + bytes/dense_rate.
//
//	attention  4 mat-vecs, keys and values of pos+1 positions, and one kernel each for norms,
//	           additions, storing and RoPE
//	scatter    on the stream moves: rows that fill gaps (move), rows that were read (scatter), and
//	           one transfer for each list
//	ffn        the rows of the units; starts when both streams are idle
//	ends       the embedding and the output head; the reply is the logits
//
// The host launches attention, decides, waits until the stream moves has emptied the staging
// buffer, reads, and launches scatter and ffn. It waits for attention only if a predictor on the
// host needs its output. Otherwise it waits for the logits alone, so that the device computes
// while the host reads. With Observed it waits after attention, scatter and ffn, as package replay
// does. Rows of a Run are on the host's clock and cover the whole time. The device's remaining time
// is in "other". Under a schedule that prefetches, the streams are not followed: a stage takes
// max(w, n·launch), and its wait if there is one. The wait for rows then starts when attention is
// done. Steps of several tokens, and predictors on the GPU, are not modelled.
//
// # Reading guide
//
// Start with Run in sim.go and Machine in machine.go. Then read decide.go (decisions), host.go and
// gpu.go (times of the host and of a GPU) and Station in devicemodels/flash. schedule.go,
// prefetch.go and prefetcher.go are the schedules. prediction.go says how far a result can be
// trusted. limits.go is for studies that cannot simulate every setting.
//
// # Invariants
//
// The numbers are those of the invariants of the product. Tested here: same decisions as the engine
// (1, in package replay), conservation and an empty device at the end (2), Little's law (3),
// monotone (4), determinism (5). Also tested: the same decisions under every schedule, and the
// closed form where times are constant.
package sim
