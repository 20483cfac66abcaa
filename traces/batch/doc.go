// Package batch forms batches of sequences out of a trace and presents what each of their steps
// needs as one token.
//
// # Model
//
// A batch of B sequences computes one token of each in every step. What the step needs of a layer
// is the union of the B masks: the units that at least one of the sequences needs (or, to save
// reads at a loss, those that at least M of them need).
//
// A trace rarely holds B sequences of one length, so lanes take their place: the generated tokens
// of the trace, in its order, are cut into equal pieces, and step t of the batch is token t of
// every piece. When the trace holds just so many sequences of equal length, lanes are these
// sequences. With more sequences than lanes a lane goes through several, as a server does that
// fills the place of a finished one. With fewer, lanes are evenly spaced places of the same
// sequences: they then share topics that independent sequences would not, and their unions come out
// too small. Lanes.Formed says which it is. Tokens of prompts are left out, unless the trace holds
// nothing else.
//
// # Reading guide
//
// lanes.go: which token is in which step. source.go: the unions as a traces.Source, for everything
// that reads traces. Counts in counts.go say how many of the masks a unit is in.
//
// # Invariants
//
//  1. Every token is in one lane at most; fewer tokens than there are lanes are left out, at the
//     end.
//  2. A batch of one with M = 1 is the trace's own generated tokens.
//  3. A step's mask contains that of the same step of a larger M.
package batch
