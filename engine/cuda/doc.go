// Package cuda runs the engine's arithmetic on a device of kernels/cuda, which is NVIDIA's or with
// the driver of kernels/metal Apple's: the resident weights, keys and values, activations and
// feed-forward rows lie in its memory, and the host decides and reads.
//
// The model: a Backend holds one model on one device and serves one engine at a time. Parts are
// launched on one stream (compute) without waiting; the host waits for logits, and for what
// predictors and observers ask for. Rows on flash are read into pinned memory (Staging), from where
// a kernel on another stream (moves) fetches them to their places in the row buffers of their
// layer. Which units these are is decided by internal/decisions/policy and policy.Slots, as on the
// CPU, so that hits, misses and moves are the same.
//
// The tests run on the stand-ins for both kinds of device (drivers_test.go), or on a real one.
//
// Reading order: parts.go (the parts of a layer), backend.go (what they need on the device),
// store.go (rows that come from flash), memory.go.
//
// Invariants:
//
//  1. A layer's feed-forward part begins after its rows have arrived, and its rows change after
//     that part has ended: two events for each layer say so.
//  2. Flash-resident logits with true masks have the bits of dense ones (kernels/cuda, invariant
//     2). Those of the CPU differ by rounding.
//  3. Nothing is launched after an error until Reset; an error names the driver's call and its
//     code.
//  4. Close gives back everything, also after an error and on a lost device.
package cuda
