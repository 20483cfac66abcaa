// Package cuda runs the arithmetic of kernels/ref on an NVIDIA device: its kernels, the calls of
// the CUDA driver that it needs, and typed launches with checked shapes.
//
// The model: weights lie on the device in any ref.Format, activations and sums are float32.
// Feed-forward rows lie in row buffers, one each for gate, up and down rows, at places ("slots")
// that the caller assigns. Rows that are read from flash arrive in pinned host memory, and one
// kernel fetches them from there to their places. A Stream does its work in order; Events order
// streams among each other.
//
// Reading order: driver.go (what is asked of the driver), kernels.go (a launch from Go to the
// device), then source/port.h, source/rows.h and source/ffn.h. native.go calls libcuda.so.1 without
// cgo and without a CUDA toolkit: a program that links this package starts on any machine, and
// OpenDriver says what is missing. gorgonia.go is the same over gorgonia.org/cu, behind the build
// tag cuda. kernels.ptx is made of source/ by tools/cuda/ptx.sh and committed; the driver compiles
// it for the device at hand.
//
// What is emulated: package standin builds a library with the driver's symbols that runs the same
// kernel text on the CPU, threads as fibers. All tests here run on it; those that compare kernels
// with plain Go are package suite, which kernels/metal runs as well. The stand-in shows wrong
// arithmetic, shapes, addresses, lost order between streams, leaks and unhandled errors; it shows
// nothing about time, about caches, or about races between the threads of a block that do not cross
// a barrier.
//
// Invariants:
//
//  1. Nothing is summed in an order that depends on timing: there are no atomic operations. The
//     same input gives the same bits on one device.
//  2. FFN sums down rows in order of units, in parts that are shares of all units: rows that are
//     absent or zero change no bit, so that a flash-resident layer equals a dense one.
//  3. Results agree with kernels/ref within the rounding of another order of summation: 1e-3
//     relative with float16 weights and float32 sums.
//  4. An error names the driver's call and its code. After ErrLost only Close is of use, and Close
//     frees everything it still can.
//  5. A call that fails leaves nothing allocated.
package cuda
