// Package cuda runs the engine's arithmetic on a device of kernels/cuda: NVIDIA's, or Apple's with
// the driver of kernels/metal. The resident weights, keys and values, activations and feed-forward
// rows lie in device memory; the host decides and reads.
//
// The model: a Backend holds one model on one device and serves one engine at a time. Operations
// are launched on one stream (compute) without waiting. The host waits for logits, and for results
// that predictors and observers need. Rows on flash are read into pinned memory (Staging). A kernel
// on another stream (moves) scatters them to their slots in the row buffers of the layer.
// internal/decisions/policy decides which units are resident and policy.Slots where they lie, as on
// the CPU, so that hits, misses and moves are the same.
//
// The tests run on the stand-ins for both kinds of device (drivers_test.go), or on a real one.
//
// Reading order: parts.go (the operations of a layer), backend.go (their device memory), store.go
// (rows from flash), memory.go.
//
// Invariants:
//
//  1. A layer's feed-forward part begins after its rows are in their slots, and the slots change
//     after that part has ended: two events per layer order this.
//  2. Flash-resident logits with true masks have the bits of dense ones (kernels/cuda, invariant
//     2). They differ from the CPU's by rounding.
//  3. Nothing is launched after an error until Reset; an error names the driver's call and its
//     code.
//  4. Close frees everything, also after an error and on a lost device.
package cuda
