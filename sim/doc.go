// Package sim predicts how long a trace takes on a device: it replays the activation masks of a trace through the same
// residency policy and the same flash layout as the engine, and charges time from a device model.
//
// Decisions (hits, misses, evictions, requests, bytes, row moves) come from engine/policy and engine/layout and are therefore the
// engine's own; only time is modelled. For each token and layer, in this order:
//
//	attention   resident mat-vecs and reading keys and values
//	predict     mask, policy and layout decisions
//	io          the layer's read requests through the flash station, as discrete events (devicemodels/flash)
//	memory      row-cache copies: rows evicted after the previous token are overwritten, new rows appended
//	ffn         dot products and updates over the rows of the active units
//
// and once per token "other": final norm and output head. The embedding, a thousandth of a layer, is in the first layer's
// attention; sampling is not part of a Run.
//
// Layer and Cache (decide.go) are the decisions, Host (host.go) the times of the host, Config.NewStation the flash: package sweep puts the same three
// together for many configurations at once.
//
// Reading guide: Run in sim.go, decide.go, host.go, then Station in devicemodels/flash; prediction.go says how far a result can be
// trusted. Invariants tested here: same decisions as the engine (1, in package replay), conservation and drained at the end (2), Little's
// law (3), monotone (4), determinism (5).
package sim
