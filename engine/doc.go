// Package engine runs a language model, one token or a few at a time, with its feed-forward rows
// either all in memory (Resident) or on flash (Flash). It computes on the CPU, or on the device of
// a Backend (engine/cuda).
//
// Read Engine.Step first: the tokens of a step, top to bottom, with the flash reads in it. layer.go
// has the order of a layer's operations, backend.go their contract, attention.go and ffn.go the
// CPU's versions. rows.go defines how a layer gets its feed-forward rows, flash.go reads them from
// flash, need.go decides which rows a token needs. The residency policy and the layout of requests
// are in internal/decisions, shared with the simulator.
//
// Exactness (design invariant 6): the same code (processor.FFN) computes both kinds of rows and
// adds them in neuron order. So with true masks a flash-resident token has bit-equal logits to a
// dense token, for any number of threads, any window, I/O engine and depth.
//
// The masks come from predictors (Config.Predictors), or without predictors from a recorded trace
// of the same tokens (Token.Masks).
package engine
