// Package sweep simulates many configurations on one trace: every combination of the lists of a scenario, in one pass over the trace.
//
// # Model
//
// It is the simulation of package sim, taken apart so that nothing is done twice:
//
//	decisions   once per (masks, policy) and layout; all windows from one pass over the masks (window.go)
//	host        once per (decisions, device)
//	reads       once per configuration: looked up in a table (table.go), or as events
//
// A table holds what the event model of devicemodels/flash says of batches of n equal reads. A batch of unequal reads is timed as one of as
// many reads with as many bytes in all, which is right as long as sizes do not differ much. Whether they do is not guessed: for every
// configuration auditCells batches, spread over trace and layers, are timed as events too, and a configuration whose table is off by more than
// auditPercent on them is timed as events altogether. So is one whose device remembers earlier batches: a limit, heat, others' reads, a
// page cache.
//
// # Reading guide
//
// scenario.go reads a file, axes.go its lists; sweep.go cuts the configurations into passes; pass.go is one pass, block of tokens by block;
// results.go is the file of results.
//
// # Invariants
//
//  1. A configuration has the decisions of sim.Run exactly, and its times exactly where they are events.
//  2. I/O time of a table is within auditPercent of sim.Run's, on the audited batches and as tested on whole runs.
//  3. A result depends on its configuration and the trace alone: not on workers, shards, interruptions, or the other configurations.
//  4. Memory does not depend on the length of the trace.
package sweep
