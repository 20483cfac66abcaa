// Package serving predicts what the users of a server see whose model lies on flash: requests come
// at their times, and a scheduler joins them into batches step by step.
//
// # Model
//
// One server, one device. Between two steps the scheduler admits requests, first come, first
// served, as long as fewer than Config.MaxBatch run and their keys and values fit (iteration-level
// scheduling: Yu et al., Orca, OSDI 2022). A step computes one token of each sequence that is past
// its prompt, and up to Config.Chunk prompt tokens, of the sequences in the order in which they
// were admitted (chunked prefill without stalling the others: Agrawal et al., Sarathi-Serve, OSDI
// 2024). The step that computes the last prompt token of a request yields its first output token;
// so a request of P prompt and O output tokens needs P + O − 1 computed tokens. A running sequence
// is never put aside or thrown out.
//
// What a step needs of a layer is the union of the masks of all its tokens, read once for all of
// them. Residency is one policy per layer for the whole server, to which a step is what a token is
// in package sim: a window of k keeps the rows of the last k steps. It is never reset. Decisions,
// host and flash are sim's own, so that a step of one token takes as long as that token takes in
// sim.Run.
//
// # Masks
//
// Logs of requests have lengths and no masks, traces have masks of other requests. Each request
// therefore walks its own way through the trace: from one place on, drawn by its number and the
// seed, through the rows of prompts, and from another through the generated ones, one row per
// token, and from the end on at the beginning. That keeps how alike neighbouring tokens are, and
// assumes that requests have as much in common as distant places of the trace. Where the trace is
// short, unions come out too small; Result.Warnings says so.
//
// # Compute
//
// Several tokens share the weights that pass through the processor, but not the arithmetic.
// Config.Compute chooses:
//
//	peak  the time of one pass over the weights, or of the arithmetic of all tokens at the
//	      device's peak, whichever is longer: a bound from
//	      below, as every roofline
//	once  the pass alone: a bound from below for processors that arithmetic limits
//	each  every token by itself, as a mat-vec: a bound from above
//
// By default peak where the device states one (host.compute_gflops), else each. Row arithmetic is
// that of each token's own mask, while row traffic is the union's. Keys and values are read once
// per sequence and step; with each, once per token. The output head is charged once per step, with
// peak and each for every token that has an output.
//
// # Measures
//
//	TTFT      from the request's arrival to its first output token, waiting included
//	ITL       from one output token of a request to the next, one value per gap
//	TPOT      mean of a request's gaps; requests of one output token have none and are left out
//	E2EL      from arrival to the last token
//	queueing  from arrival to admission
//	goodput   requests per second that meet all objectives
//
// Duration, which rates are per, is from the first arrival to the end of the last step. Percentiles
// are of histograms, within 0.1 %.
//
// # Reading guide
//
// serving.go: the configuration. schedule.go: Run, from arrival to last token. step.go: what one
// step costs. masks.go: a request's way through the trace. load.go: where requests come from.
// rate.go: the largest rate that meets the objectives. result.go and histogram.go: the measures.
//
// # Invariants
//
//  1. Every token of an admitted request is computed once, in order.
//  2. Finished, unfinished and refused requests are those that arrived.
//  3. The same configuration, requests and seed give the same result; a request's masks depend on
//     its number alone.
//  4. Memory does not depend on the number of requests: those that wait stay in the source.
//  5. A step of one token costs what sim.Run charges for it.
//
// A higher rate of the same requests does not always raise a percentile: a request that comes a
// little later may just catch a step, and neighbours may leave the right rows in memory. Over
// factors of the rate it does.
package serving
