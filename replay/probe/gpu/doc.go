// Package gpu measures a GPU for the simulator: how fast the kernels of kernels/cuda are on it, and
// what it costs the host to ask for them.
//
// The model: what a call takes on the device is a fixed time and its bytes over a rate; a line is
// fitted over several sizes of each kind of call, with the shapes of OPT-6.7B and Mistral-7B. Calls
// are timed by the device's own events, many in a row, behind copies that hold the stream until all
// of them have been asked for: else a fast device would wait for the host and the time would be the
// host's. Weights come from different places of a pool that no cache holds. What a launch and a
// wait cost is the host's time, by its clock. Each time is the median of several runs; their spread
// is kept with it.
//
// Reading order: gpu.go (Measure and Check), lab.go (how a call is timed), calls.go (which calls),
// fit.go (from times to numbers).
//
// Invariants:
//
//  1. Without a device's clock nothing is returned: Measure refuses with ErrNoClock, and Check
//     returns no number.
//  2. A time is taken only while the stream was held until everything was asked for.
//  3. All that was made on the device is the caller's to give back, with Device.Close.
package gpu
