// Package engine runs a language model, one token or a few at a time, with its feed-forward rows
// either all in memory (Resident) or on flash (Flash). It computes on the CPU, or where a Backend
// does (engine/cuda).
//
// Read Engine.Step first: the tokens of a step, top to bottom, with the flash reads in it. Then
// layer.go for the order of a layer's parts, backend.go for what these are, attention.go and
// ffn.go for how the CPU does them, and rows.go for where the feed-forward rows come from.
// Everything that decides (which rows stay in memory, which bytes are read) is in
// internal/decisions/policy and internal/decisions/layout and shared with the simulator.
//
// Exactness (design invariant 6): both kinds of rows feed the same code (processor.FFN), which adds
// rows in neuron order, so with true masks a flash-resident token has bit-equal logits to a dense
// one, for any number of threads, window, I/O engine and depth.
//
// Until predictors exist, a Flash engine takes its masks from a recorded trace of the same tokens
// ("oracle" masks).
package engine
