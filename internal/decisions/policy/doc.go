// Package policy decides which units (neurons, experts) are in memory. Its policies are pure state
// machines without clock or I/O. The engine and the simulator use the same ones, so that a
// simulation can only be wrong about time. It is a leaf.
//
// A Policy decides once per token and layer. All units that the token needs must be in memory at
// once while the layer computes, so its whole mask is one request. Step returns the units that are
// in memory (hits), the units to read (Load), and the units that leave after the layer has computed
// (Evict). The rest stays for the next token.
//
// Start with Policy and Window. Spec and Kinds name the others, one file each: sequential (naive,
// hybrid, whole tensors, and a dense pass through a page cache), window, bounded (a window with a
// capacity), delta (NeuroPrefetcher), pages (a page cache), lru, lfu, hot (a pinned set and lru),
// belady (the bound; Bound counts its loads alone). Slots and SlotMap map units to rows of the row
// cache. testdata/*.txt shows every policy step by step in words. CONTRIBUTING.md says how to add a
// policy.
//
// Controller and Elastic (controller.go) are a window whose length follows the available memory.
// Elastic spans all layers, because they share one budget. Its length may change before a token. If
// a token does not fit, the length also shrinks while the token computes; the units that leave then
// leave before any read. With a constant length each layer decides exactly as Window does.
// Controller chooses the length: it shrinks at once, and grows by one token after several tokens in
// a row with room. testdata/controller/controller.txt shows it in words.
//
// Invariants, for every policy and every step. "Memory" is the set of units kept from earlier
// steps.
//
//  1. Load and memory have no unit in common.
//  2. Hits + len(Load) − Ahead is the number of needed units. The sequential policies (all, hybrid,
//     tensors, cyclic) count as if every token needed all units. Ahead is 0 except for pages, which
//     reads neighbours of needed units.
//  3. Evict holds only units of memory or of Load.
//  4. Load and Evict are ascending, without repeats.
//  5. After the step at most Spec.Kept units are in memory. While the layer computes, the units
//     from before and those of Load are in memory, and a row cache must have room for both. A cache
//     may first free the rows of those Evict units that the token neither needs nor loads. It then
//     needs Spec.Kept rows and one for each other unit of Evict.
//  6. Overflow is the number of units in both Load and Evict for policies with a capacity, and 0
//     for all, hybrid, tensors, none and windows without one.
//  7. Decisions depend only on the masks since the last Reset. Belady's also depend on the future
//     and on the number of steps.
//  8. Belady loads no more than any policy that keeps as many units. A longer window never loads
//     more than a shorter one, and a larger lru never more than a smaller one. A policy with
//     read-ahead may have fewer misses than Belady among the needed units, but never fewer loads.
//
// Capacities are in units, because all units of a layer have one size. Units and ParseBudget
// convert budgets in bytes.
package policy
