// Package adaptive simulates a window that follows a budget of memory which changes while tokens
// are made, as an operating system under pressure would change it.
//
// # Model
//
// Of the budget, all that is not a row of the FFN comes first: weights that stay, predictor,
// staging, bookkeeping and the keys and values of the context so far (answers.Model.Account). What
// is left is room for rows, in all layers together. Before each token a strategy chooses the
// window, policy.Elastic carries it out: where the window shrinks, rows leave before anything is
// read, and where a token needs more than there is room for, the window shrinks while the token
// computes. So no token is ever above its budget, whatever the strategy. A budget below the floor
// (the rows of the shortest allowed window at the fullest moment of every layer, and the rest) is
// refused.
//
// The strategies:
//
//	adaptive   policy.Controller: shrinks at once, grows by one token after some tokens in a row
//	           with room
//	fraction   the longest window whose rows, with the last token, would have taken a fixed share
//	           of the room; no hysteresis
//	static     the longest window that always fits, the room for every layer's fullest moment
//	           reserved, under the smallest budget
//	oracle     for every budget the longest window that no token in force of it exceeds, known
//	           only afterwards
//
// Times are the simulator's: a constant window gives the times of sim.Run. A budget is the one in
// force when a token begins; one that falls while a token computes is kept to from the next token
// on.
//
// # Reading guide
//
// schedule.go: budgets over time. adaptive.go: Config, Run and the strategies. runner.go: one
// token. outcome.go: what a strategy is judged by. export.go: the window over time as a file.
//
// # Invariants
//
//  1. No token uses more than its budget.
//  2. A budget by tokens that is never smaller never loads more, for adaptive.
//  3. Under a constant budget with room to spare, adaptive is the static window of its upper bound,
//     and sim.Run's.
package adaptive
