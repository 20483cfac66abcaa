// Package cuda runs the arithmetic of kernels/ref on an NVIDIA device. It has the kernels, the
// needed calls of the CUDA driver, and typed launches with checked shapes.
//
// The model: weights lie on the device in any ref.Format; activations and sums are float32.
// Feed-forward rows lie in row buffers, one each for gate, up and down rows, in slots that the
// caller assigns. Rows that are read from flash lie in pinned host memory first; one kernel copies
// them to their slots. A Stream runs its work in order; Events order streams among each other.
//
// Reading order: driver.go (the interface to the driver), kernels.go (a launch from Go to the
// device), then port.h, rows.h and ffn.h in kernels/source. native.go calls libcuda.so.1 without
// cgo and without a CUDA toolkit: a program that links this package starts on any machine, and
// OpenDriver says what is missing. gorgonia.go does the same over gorgonia.org/cu, behind the build
// tag cuda. tools/cuda/ptx.sh compiles kernels/source into kernels.ptx, which is committed; the
// driver compiles it for the device at hand.
//
// What is emulated: package standin builds a library with the driver's symbols that runs the same
// kernel text on the CPU, with threads as fibers. All tests here run on it. The tests that compare
// kernels with plain Go are in package suite; kernels/metal runs them too. The stand-in finds wrong
// arithmetic, shapes and addresses, wrong order between streams, leaks and unhandled errors. It
// finds nothing about time, caches, or races between the threads of a block that do not cross a
// barrier.
//
// Invariants:
//
//  1. No order of summation depends on timing: there are no atomic operations. The same input gives
//     the same bits on one device.
//  2. FFN sums down rows in order of units, in parts that are shares of all units. Absent rows and
//     rows of value zero change no bit, so a flash-resident layer equals a dense one.
//  3. Results agree with kernels/ref within the rounding of another order of summation: 1e-3
//     relative with float16 weights and float32 sums.
//  4. An error names the driver's call and its code. After ErrLost only Close is of use, and Close
//     frees everything it still can.
//  5. A call that fails leaves nothing allocated.
package cuda
