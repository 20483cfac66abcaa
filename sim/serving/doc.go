// Package serving predicts the latencies and rates that the users of a server see when its model is
// on flash. Requests arrive over time, and a scheduler forms a batch for every step.
//
// # Model
//
// There is one server with one device. Between two steps the scheduler admits requests, first come,
// first served. It admits while fewer than Config.MaxBatch sequences run and their keys and values
// fit (iteration-level scheduling: Yu et al., Orca, OSDI 2022). A step computes one token of each
// sequence past its prompt. It also computes up to Config.Chunk prompt tokens, of the other
// sequences in order of admission (chunked prefill without stalling the others: Agrawal et al.,
// Sarathi-Serve, OSDI 2024). The step that computes the last prompt token of a request delivers its
// first output token. A request of P prompt and O output tokens therefore needs P + O − 1 computed
// tokens. A running sequence is never preempted.
//
// In every layer, a step reads the union of the masks of all its tokens once. Each layer has one
// policy for the whole server. A step is for the policy what a token is in package sim: a window of
// k keeps the rows of the last k steps. The policy is never reset. Decisions, host and flash are
// those of package sim. A step of one token takes as long as that token takes in sim.Run.
//
// # Masks
//
// Request logs have lengths but no masks. Traces have masks, but of other requests. Each request
// therefore takes its masks from the trace, from two random positions that depend on its number and
// the seed. Its prompt tokens take the rows of prompts from the first position on, its output
// tokens the generated rows from the second, one row per token. After the last row comes the first.
// This keeps the similarity of neighbouring tokens. It assumes that requests have as much in common
// as distant positions of the trace. Unions of a short trace are too small; Result.Warnings says
// so.
//
// # Compute
//
// The tokens of a step share the reads of the weights from memory, but not the arithmetic.
// Config.Compute chooses the charge:
//
//	peak  one pass over the weights, or the arithmetic of all tokens at the device's peak,
//	      whichever is longer: a lower bound, as every roofline
//	once  one pass alone: a lower bound for processors limited by arithmetic
//	each  every token by itself, as a mat-vec: an upper bound
//
// The default is peak if the device states one (host.compute_gflops), else each. Row arithmetic is
// that of each token's own mask. Row traffic is that of the union. Keys and values are read once
// per sequence and step; with each, once per token. The output head is charged once per step; with
// peak and each, once per token with an output.
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
// Rates are per Duration: from the first arrival to the end of the last step. Percentiles come from
// histograms and are within 0.1 %.
//
// # Reading guide
//
// serving.go has the configuration, schedule.go Run, from arrival to last token, step.go the cost
// of a step, masks.go the masks of a request, load.go the sources of requests, rate.go the largest
// rate that meets the objectives, result.go and histogram.go the measures. study.go serves a load
// or searches its rate, document.go describes what comes of it for a reader.
//
// # Invariants
//
//  1. Every token of an admitted request is computed once, in order.
//  2. Finished, failed, unfinished and refused requests add up to those that arrived.
//  3. The same configuration, requests and seed give the same result. A request's masks depend on
//     its number alone.
//  4. Memory does not depend on the number of requests: waiting requests stay in the source.
//  5. A step of one token costs what sim.Run charges for it.
//
// A higher rate of the same requests does not raise every percentile. A request that arrives a
// little later may just catch a step, and its neighbours may leave useful rows in memory. A rate
// several times as high does raise them.
package serving
