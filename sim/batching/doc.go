// Package batching predicts what a token costs when B sequences are computed together, and at which
// B reading only the needed units from flash stops paying.
//
// # Model
//
// A step of the batch is simulated as one token whose masks are the unions of its sequences
// (traces/batch), by the simulator itself (sim.Run): the same policy, layout and flash. Its time,
// divided by B, is the time of a token:
//
//	flash    (decisions + reads of the missing units + row copies + compute) / B
//	hybrid   (sequential read of all FFN units that are not in memory + compute) / B
//
// Hybrid is the baseline of LLM in a flash (section 4): what does not fit is read whole, in large
// requests, for every step, and serves all B sequences. It is charged the same compute as the step
// on flash, so that the two differ only in how weights get into memory, and no copies, since it
// reads into place. Two of it are given: one that keeps nothing of the FFN in memory, and one that
// keeps as many units as the window does. Where the flash is known only roughly, the difference of
// the two is as rough.
//
// Compute is charged once per step, as if all sequences used the weights while they pass: a lower
// bound for a processor that arithmetic limits, where it may be up to B times as much. Keys and
// values are charged for every sequence. None of it moves the B at which flash stops paying, since
// both sides have it.
//
// With a window, the first steps fill an empty memory. Means are over the steps that have a full
// window before them.
//
// # Reading guide
//
// batching.go: Run and the row of one B. hybrid.go: the baseline's read.
package batching
