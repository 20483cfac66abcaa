// Package compare compares a simulated Run with a measured one. Their decisions must be equal.
// Their times must agree within a tolerance.
//
// The model. Counters (hits, misses, evictions, requests, flash bytes) are compared exactly, per
// token and layer. Simulator and engine share the code that takes decisions, so one difference is a
// bug and not an error of the model. Times are compared per token, after the warm-up tokens. If the
// device drifted more than the limit, the verdict is "device too noisy" whatever the errors:
// agreement with noise proves nothing. All functions are pure.
//
// There are two times. The time of a part is the sum of its rows, so overlapping parts add up to
// more than the token took. The latency of a token is the time between the completion of the tokens
// before it and its own. Latencies therefore add up to the length of the run, with all gaps.
//
// Start with Compare and Comparison in compare.go, then Tokens in tokens.go, which adds up one Run
// by token. counters.go compares decisions. stats.go defines percentile, MAPE, correlation and rank
// order. verdict.go decides.
//
// Little's law cannot be checked here. A Run holds the depth and the duration of its reads, but not
// the latency of a request.
package compare
