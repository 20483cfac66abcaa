// Package policy decides which units (neurons, experts) are in memory: pure state machines without
// clock or I/O, a leaf, used unchanged by the engine and by the simulator, so that a simulation can
// only be wrong about time.
//
// A Policy is asked once per token and layer. All units that the token needs must be in memory at
// once while the layer computes, so its whole mask is one request: Step says which of them are
// there (hits), which are read (Load), and what leaves once the layer has computed (Evict). What is
// left is what the policy keeps for the next token.
//
// Start with Policy and Window; Spec and Kinds name the others, one file each: sequential (naive,
// hybrid, whole tensors, and a dense pass through a page cache), window, bounded (a window with a
// capacity), delta (NeuroPrefetcher), pages (a page cache), lru, lfu, hot (a pinned set and lru),
// belady (the bound; Bound counts its loads alone). Slots and SlotMap keep track of which row of
// the row cache holds which unit. testdata/*.txt shows every policy step by step in words.
// CONTRIBUTING.md says how to add a policy.
//
// Controller and Elastic (controller.go) are a window whose length follows the memory that there
// is. Elastic spans all layers, because they share one budget: before a token its length may
// change, and where a token would not fit it shrinks while the token computes; what leaves then
// leaves before anything is read. With a constant length each layer decides exactly as Window does.
// Controller chooses the length: down at once, up by one token after some tokens in a row with
// room. testdata/controller/controller.txt shows it in words.
//
// Invariants, for every policy and every step; "memory" is what it kept from the steps before:
//
//  1. Load and memory have no unit in common.
//  2. Hits + len(Load) − Ahead is the number of needed units. The sequential policies (all, hybrid,
//     tensors, cyclic) count as if every token needed all units. Ahead is 0 for all but pages,
//     which reads neighbours along with what is needed.
//  3. Evict holds only units of memory or of Load.
//  4. Load and Evict are ascending, without repetition.
//  5. After the step at most Spec.Kept units are in memory. While the layer computes, those of
//     before and those of Load are: a row cache must have room for both. One that frees the rows of
//     Evict which the token neither needs nor loads before it reads gets by with Spec.Kept rows and
//     the other ones of Evict.
//  6. Overflow is the number of units in both Load and Evict for policies with a capacity, and 0
//     for all, hybrid, tensors, none and windows without one.
//  7. Decisions depend on nothing but the masks since the last Reset (and, for Belady, on the
//     future and on how many steps there were).
//  8. Belady loads no more than any policy that keeps as many units; a longer window never loads
//     more than a shorter one, nor a larger lru more than a smaller one. A policy with read-ahead
//     may have fewer misses than Belady among the needed units, never fewer loads.
//
// Capacities are in units, because all units of a layer have one size; Units and ParseBudget
// convert budgets in bytes.
package policy
