// Package quality shows what a model loses when it computes fewer of its neurons, beside what that
// saves: perplexity and agreement with the dense model on a text, and the bytes that a window of
// tokens reads from flash. Neurons are left out by a threshold on their value, found on the same
// text (CATS, TEAL), or by a predictor.
//
// Start with Run. counts.go observes the engine: masks, sizes of values, errors of a predictor.
package quality
