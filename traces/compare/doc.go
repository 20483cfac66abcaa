// Package compare says how far a simulated Run is from a measured one: in decisions, which must be
// equal, and in time, which must be within a tolerance.
//
// The model. Counters (hits, misses, evictions, requests, flash bytes) are compared exactly, per
// token and layer: simulator and engine share the code that takes the decisions, so one difference
// is a bug, not an error of the model. Times are compared per token, after the warm-up tokens, and
// a device that drifted more than the limit gets the verdict "device too noisy" whatever the errors
// are: agreement with noise proves nothing. Everything is a pure function of its arguments.
//
// Two times are kept apart. The time of a part is the sum of its rows, so parts that overlap add up
// to more than the token took. The latency of a token is the time by which it prolongs the run:
// from the completion of the tokens before it to its own. Latencies therefore add up to the length
// of the run, with every gap in it.
//
// Start with Compare and Comparison in compare.go, then Tokens in tokens.go (one Run, token by
// token); counters.go compares decisions, stats.go defines percentile, MAPE, correlation and rank
// order, verdict.go decides.
//
// Little's law cannot be checked here: a Run holds the depth and the duration of its reads, but not
// the latency of a request, and the law says nothing about two of its three terms.
package compare
