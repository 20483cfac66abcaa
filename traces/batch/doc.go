// Package batch forms batches of sequences from a trace and presents each step of a batch as one
// token.
//
// # Model
//
// A batch of B sequences computes one token of each in every step. The step needs the union of the
// B masks of a layer: the units that at least one of the sequences needs. A batch may also read
// only the units that at least M sequences need, at a loss.
//
// A trace rarely holds B sequences of one length, so lanes stand for the entries of a batch. The
// generated tokens of the trace, in order, are cut into equal pieces, the lanes. Step t of the
// batch is token t of every lane. If the trace holds exactly B sequences of equal length, the lanes
// are these sequences. With more sequences than lanes, a lane passes through several sequences,
// like a server that refills a batch entry. With fewer, lanes are evenly spaced pieces of the same
// sequences. Such lanes share topics that independent sequences would not, so that their unions are
// too small. Lanes.Formed says which case it is. Prompt tokens are left out unless the trace holds
// nothing else.
//
// # Reading guide
//
// lanes.go assigns tokens to steps. source.go presents unions as a traces.Source. counts.go counts
// the masks that need each unit.
//
// # Invariants
//
//  1. Every token is in at most one lane. Fewer tokens than there are lanes are left out, at the
//     end of the trace.
//  2. A batch of one with M = 1 is the trace's generated tokens.
//  3. A step's mask contains the mask of the same step for a larger M.
package batch
