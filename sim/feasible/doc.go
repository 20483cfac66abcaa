// Package feasible says of each class of runtimes whether it can run a model in a given memory at
// all, why, and how fast at most: before any simulation, from sizes alone.
//
// The classes are those of NeuroPrefetcher's study of twenty systems (published.csv), each by what
// it asks of memory:
//
//	resident  all weights, allocated before the first token
//	offload   all weights, shared out between the memory of an accelerator and that of the host
//	mapped    a mapped file: pages come when they are touched and go when memory is short
//	          (llama.cpp, Ollama)
//	placed    every tensor on the accelerator, in host memory or on disk (FlexGen)
//	flash     all but the FFN, and of the FFN what a token needs; the rest comes from flash row by
//	          row (NeuroPrefetcher, LLM in a flash)
//
// The study's fourth group has no build for the machine, which no size tells.
//
// # Memory
//
//	weights   parameters × bytes per weight: 2 (f16), 34/32 (q8_0) or 18/32 (q4_0; blocks of 32
//	          weights with a 16-bit scale, ggml-common.h)
//	KV cache  2 · kv_heads · head_dim · 2 bytes per layer and position (16-bit floating point)
//	reserve   of unified memory 1 GiB must stay free, or contiguous allocations fail (the study).
//	          Mapped pages need no contiguous memory.
//
// Unified memory is one pool, so that moving weights from the accelerator to the host frees
// nothing. Memory is what the operating system leaves to the process; the program itself and the
// activations of a token are not counted.
//
// # Rates
//
// A token takes at least as long as its reads from flash, and as reading the weights that it uses
// from memory, whichever is longer. The result is a bound: dependent reads, copies, faults of the
// host and arithmetic come on top. What a mapped file reads is between the least that any
// replacement can do with a cyclic access, which keeps what fits, and least recently used, which
// keeps nothing.
//
// # Reading guide
//
// Assess in feasible.go, then classes.go, one function each. model.go sizes a model, published.go
// holds the study.
//
// Invariants tested here: the study's verdicts; more memory never turns a verdict into a worse one,
// nor lowers a bound.
package feasible
