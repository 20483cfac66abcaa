// Package engine runs a language model on the CPU, one token at a time, with its feed-forward rows either all in memory
// (Resident) or on flash (Flash).
//
// Read Engine.Forward first: one token, top to bottom, with the flash reads in it. Then attention.go, and rows.go for where
// the feed-forward rows come from. Everything that decides (which rows stay in memory, which bytes are read) is in
// engine/policy and engine/layout and shared with the simulator.
//
// Exactness (design invariant 6): both kinds of rows feed the same code (Engine.ffn), which adds rows in neuron order, so with true
// masks a flash-resident token has bit-equal logits to a dense one, for any number of threads, window, I/O engine and depth.
//
// Until predictors exist, a Flash engine takes its masks from a recorded trace of the same tokens ("oracle" masks).
package engine
