// Package placement makes flash layouts an axis of the simulation: it learns where to put units
// from one part of a trace and judges what that is worth by the other part.
//
// # Layouts
//
//	split       the rows of a unit lie apart, as in a checkpoint: P reads of a P-th of the record
//	bundled     all rows of a unit together (LLM in a flash, 3.2): one read. What everything is
//	            compared with
//	hot first   bundles by how often the policy reads them
//	linear      bundles in chains of units that are read together (Ripple, arXiv 2410.19274), each
//	            unit once
//	friends     every bundle is followed by copies of its closest friends' (LLM in a flash,
//	            appendix D): one read brings them all
//
// Each is read unit by unit, with neighbours joined, and with gaps: up to g records between two
// wanted ones are read and discarded. A gap pays while reading it takes less than another request;
// which g is best is found by simulating each, and stands beside the closed form.
//
// # Learning and judging
//
// The first half of the tokens is learned from and the second judged, cut where a sequence starts
// if one does near the middle. Hotness and linear placement learn from what the policy reads (with
// a window, units that are always needed are seldom read), friends from what tokens need, as in the
// paper. "In hindsight" is the linear placement learned from the judged half itself: what a
// placement that knows the future gains, and by how much more than the learned one, says how much
// of a gain carries over.
//
// # Reading guide
//
// placement.go: Run, what is asked and what comes out. part.go and sets.go: what is learned from.
// pairs.go: who is read with whom, in bounded memory. orders.go: hot first and linear. judge.go:
// orders by sim.Run, and the gap. friends.go: bundles with copies, which the planner of package
// layout does not know.
//
// # Invariants
//
//  1. Every layout but friends asks for its bytes through layout.Planner, and its times are
//     sim.Run's; friends of nobody take the same time as bundles.
//  2. Bytes = needed + wasted, in every layout; of friends, records brought = needed + repeated +
//     not needed.
//  3. An order is a permutation. Reads without a gap = units − pairs that lie next to each other
//     and are read together.
//  4. A wider gap never makes more reads.
//  5. Same input, same result, for any number of workers.
package placement
