// Package placement compares flash layouts. It learns where to place units from one split of a
// trace and measures the gain on the other.
//
// # Layouts
//
//	split       the rows of a unit lie apart, as in a checkpoint: P reads of a P-th of the record
//	bundled     all rows of a unit lie together (LLM in a flash, 3.2): one read. The baseline
//	hot first   bundles in order of how often the policy reads them
//	linear      bundles in chains of units that are read together (Ripple, arXiv 2410.19274); each
//	            unit once
//	friends     copies of the closest friends' records follow every bundle (LLM in a flash,
//	            appendix D): one read fetches them all
//
// Each is read unit by unit, with neighbours joined, and with gaps: up to g records between two
// wanted ones are read and discarded. A gap pays if its bytes take less time than another request.
// The best g is found by simulation. The closed form is shown beside it.
//
// # Training and test split
//
// The first half of the tokens is the training split, the second the test split. The boundary is
// the start of a sequence if one is near the middle. Hot first and linear learn from the reads of
// the policy: with a window, units that are always needed are seldom read. Friends learn from the
// needs of tokens, as in the paper. The oracle is the linear placement of the test split itself. It
// bounds the gain of a placement. Its distance to the learned placement shows how much of the gain
// carries over.
//
// # Reading guide
//
// placement.go has Run, its configuration and its result. part.go and sets.go read the splits.
// pairs.go counts units that are read together, in bounded memory. orders.go has hot first and
// linear. evaluate.go simulates orders with sim.Run, and finds the gap. friends.go has bundles with
// copies, which the planner of package layout does not know. document.go describes the result for a
// reader.
//
// # Invariants
//
//  1. Every layout but friends requests its bytes through layout.Planner, and its times are those
//     of sim.Run. With no friends, friends takes the same time as bundled.
//  2. Bytes = needed + wasted, in every layout. Of friends, records fetched = needed + repeated +
//     not needed.
//  3. An order is a permutation. Reads without a gap = units − pairs of neighbours that are read
//     together.
//  4. A wider gap never makes more reads.
//  5. Same input, same result, for any number of workers.
package placement
