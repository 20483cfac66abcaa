// Package policy decides which units (neurons, experts) are in memory: pure state machines without clock or I/O, a leaf,
// used unchanged by the engine and by the simulator, so that a simulation can only be wrong about time.
//
// A Policy is asked once per token and layer. All units that the token needs must be in memory at once while the layer computes, so
// its whole mask is one request: Step says which of them are there (hits), which are read (Load), and what leaves once the layer has
// computed (Evict). What is left is what the policy keeps for the next token.
//
// Start with Policy and Window; Spec and Kinds name the others, one file each: sequential (naive and hybrid), window, bounded (a
// window with a capacity), delta (NeuroPrefetcher), lru, lfu, hot (a pinned set and lru), belady (the bound). Slots and SlotMap keep track of which
// row of the row cache holds which unit. testdata/*.txt shows every policy step by step in words. A new policy is a file, a line in Kinds
// and in New, and a text.
//
// Invariants, for every policy and every step; "memory" is what it kept from the steps before:
//
//  1. Load and memory have no unit in common.
//  2. Hits + len(Load) is the number of needed units. The sequential policies count as if every token needed all units.
//  3. Evict holds only units of memory or of Load.
//  4. Load and Evict are ascending, without repetition.
//  5. After the step at most Spec.Kept units are in memory. While the layer computes, those of before and those of Load are: a row
//     cache must have room for both. One that frees the rows of Evict which the token does not need before it reads gets by with
//     Spec.Kept rows and those of Evict which the token does need.
//  6. Overflow is the number of units in both Load and Evict for policies with a capacity, and 0 for all, hybrid, none and windows without one.
//  7. Decisions depend on nothing but the masks since the last Reset (and, for Belady, on the future and on how many steps there were).
//  8. Belady loads no more than any policy that keeps as many units; a longer window never loads more than a shorter one, nor a larger lru more
//     than a smaller one.
//
// Capacities are in units, because all units of a layer have one size; Units converts a budget in bytes.
package policy
