// Package replay drives the real engine from a trace and measures it: the masks of the trace decide
// which rows are needed, the same policy and layout decide what is read, and reads, row-cache
// copies, mat-vecs and attention really happen. The result is a traces.Run like a simulation's.
//
// Reading guide: Run in replay.go, drift.go for the reference reads between slices, calibrate.go
// for the host constants of a device model. Subpackages: probe measures a device, emulated is a
// device of known specification, throttle slows a real one down, validate checks the simulator
// against replay.
package replay
