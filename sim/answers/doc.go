// Package answers turns the simulator round: not "how fast is this", but "what do I need".
//
//	Model.Account, LargestWindow   what memory a window takes, part by part; the longest window
//	                               for a budget
//	FindBreakEven                  the active share, and the batch, from which on selective reads
//	                               lose to hybrid
//	MakePlan                       the best configuration for a budget and a target, what the
//	                               target needs, what to change first
//
// # Method
//
// Every answer is a search over sim.Run or over the closed form of the flash, so that it inherits
// their assumptions and adds its own, which are stated where they are made. Simulated speed is
// monotone in each parameter of a device (invariant 4 of package sim), so that bisection finds the
// least of it that is enough. Reads under a window are not monotone in the active share or in the
// batch (a window that holds everything reads nothing): there the first crossing is searched on a
// grid.
//
// # Reading guide
//
// memory.go and rows.go: memory. breakeven.go: the question and its closed form; breakeven_sim.go:
// the same by simulation. plan.go: the grid; needs.go: needed values and elasticities; levers.go:
// what can be changed of a device. search.go: the two searches.
//
// # Invariants
//
//  1. The parts of a Memory sum up to its total; the row cache holds what the policy holds at its
//     fullest, never less.
//  2. Selective reads at a closed break-even share take as long as the hybrid ones.
//  3. A needed value is enough, and one step of the search less is not.
//  4. Same input, same result; nothing depends on the clock or on the order of a map.
package answers
