// Package sweep simulates many configurations on one trace: all combinations of the lists of a
// scenario, in one pass over the trace.
//
// # Model
//
// The simulation is that of package sim, divided so that no part of it is done twice:
//
//	decisions   once per (batch, masks, policy) and layout; all windows in one pass over the masks
//	            (window.go)
//	host        once per (decisions, device)
//	reads       once per configuration: looked up in a table (table.go), or as events by
//	            sim.Machine
//
// A table holds the times that the event model of devicemodels/flash gives for batches of n equal
// reads. A batch of unequal reads takes the time of a batch with the same number of reads and the
// same number of bytes. That holds while the sizes differ little. An audit checks it: auditCells
// batches of every configuration, spread over trace and layers, are timed as events too. If the
// table is off by more than auditPercent on them, the whole configuration is timed as events. So is
// a configuration whose device remembers earlier batches: by a limit, heat, other readers or a page
// cache.
//
// # Batches
//
// With B sequences per step, a token is a step, and its masks are the unions of the masks of the
// sequences. The sequences of a file are cut from its generated tokens (traces/batch). The
// sequences of a synthetic trace are generated side by side (entries.go). They are independent,
// except for the popularity of units, which is a property of the model. A step charges the keys and
// values of all sequences. It charges all other compute once (package answers, Batches). It counts
// as B tokens.
//
// # Reading guide
//
// scenario.go reads a file, axes.go its lists. trace.go and entries.go make the trace. sweep.go
// divides the configurations into passes. pass.go is one pass, block of tokens by block.
// headroom.go is one more pass for the bound on misses. results.go is the file of results,
// export.go its tables, document.go the fastest configurations for a reader.
//
// # Invariants
//
//  1. A configuration has the decisions of sim.Run exactly, and its times exactly if they are
//     events.
//  2. The I/O time of a table is within auditPercent of sim.Run's, on the audited batches and in
//     tests of whole runs.
//  3. A result depends on its configuration and the trace alone: not on workers, shards,
//     interruptions, or other configurations.
//  4. Memory does not depend on the length of the trace. Two exceptions: 8 bytes per token of a
//     file that batches are cut from, and 8 bytes per token, layer and policy for the headroom.
//  5. A batch has the decisions of sim.Run on batch.Stream.Union exactly. It has its times exactly
//     if they are events, plus the keys and values of answers.SimulateBatches.
package sweep
