// Package adaptive simulates a sliding window whose memory budget changes while tokens are made. An
// operating system under memory pressure changes a budget in this way.
//
// # Model
//
// The budget pays first for everything that is not a row of the FFN: resident weights, predictor,
// staging, bookkeeping, and the keys and values of the context so far (answers.Model.Account). The
// rest is room for rows, of all layers together. A strategy chooses the window before each token.
// policy.Elastic carries it out. If the window shrinks, rows are evicted before the first read. If
// a token needs more rows than there is room for, the window shrinks while the token computes. No
// strategy therefore exceeds its budget. The floor is the memory of the shortest allowed window at
// the largest row cache of every layer. A budget below the floor is refused.
//
// The strategies:
//
//	adaptive   policy.Controller: shrinks at once, and grows by one token after some tokens in a
//	           row with room
//	fraction   the longest window whose rows would have taken a fixed share of the room with the
//	           previous token; no hysteresis
//	static     the longest window that fits the smallest budget, with room reserved for the
//	           largest
//	           row cache of every layer
//	oracle     for every budget, the longest window that no token under it exceeds; known only
//	           afterwards
//
// Times are the simulator's: with a constant window they are those of sim.Run. A token runs under
// the budget that is in force when it begins. A budget that falls while a token computes holds from
// the next token on.
//
// # Reading guide
//
// schedule.go has budgets over time, adaptive.go Config, Run and the strategies, runner.go one
// token, outcome.go the figures of a strategy, export.go the file of the window over time,
// document.go the description for a reader.
//
// # Invariants
//
//  1. No token uses more than its budget.
//  2. With a budget that is larger at every token, adaptive never loads more.
//  3. Under a constant budget with room to spare, adaptive equals the static window of its upper
//     bound, and sim.Run.
package adaptive
