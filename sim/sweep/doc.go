// Package sweep simulates many configurations on one trace: every combination of the lists of a
// scenario, in one pass over the trace.
//
// # Model
//
// It is the simulation of package sim, taken apart so that nothing is done twice:
//
//	decisions   once per (batch, masks, policy) and layout; all windows from one pass over the
//	            masks (window.go)
//	host        once per (decisions, device)
//	reads       once per configuration: looked up in a table (table.go), or as events
//
// A table holds what the event model of devicemodels/flash says of batches of n equal reads. A
// batch of unequal reads is timed as one of as many reads with as many bytes in all, which is right
// as long as sizes do not differ much. Whether they do is not guessed: for every configuration
// auditCells batches, spread over trace and layers, are timed as events too, and a configuration
// whose table is off by more than auditPercent on them is timed as events altogether. So is one
// whose device remembers earlier batches: a limit, heat, others' reads, a page cache.
//
// # Batches
//
// With B sequences in step, a token is a step, and its masks are the unions of the sequences': of a
// file, those of lanes cut from its generated tokens (traces/batch); of a synthetic trace, those of
// B sequences of it, which are made side by side (lanes.go). They are independent, but for the
// popularity of units, which belongs to the model. A step charges the keys and values of all
// sequences, all other compute once (see sim/answers), and counts as B tokens.
//
// # Reading guide
//
// scenario.go reads a file, axes.go its lists; trace.go and lanes.go are what is run on; sweep.go
// cuts the configurations into passes; pass.go is one pass, block of tokens by block, headroom.go
// another for the bound on misses; results.go is the file of results, export.go its tables.
//
// # Invariants
//
//  1. A configuration has the decisions of sim.Run exactly, and its times exactly where they are
//     events.
//  2. I/O time of a table is within auditPercent of sim.Run's, on the audited batches and as tested
//     on whole runs.
//  3. A result depends on its configuration and the trace alone: not on workers, shards,
//     interruptions, or the other configurations.
//  4. Memory does not depend on the length of the trace, but for 8 bytes per token of a file that
//     batches are cut from, and 8 per token, layer and policy for the headroom, if that is asked
//     for.
//  5. A batch has the decisions of sim.Run on batch.Stream.Union exactly, its times exactly where
//     they are events, and what package batching adds for keys and values.
package sweep
