// Package metal runs the kernels of kernels/cuda on the GPU of a Mac with Apple silicon. It is a
// cuda.Driver, so that cuda.Device and cuda.Kernels work on both kinds of device. There is no cgo:
// the Objective-C runtime is called through purego, and the kernels are compiled when a program
// starts, from embedded text.
//
// The model is that of kernels/cuda, with one memory: Alloc and HostAlloc both make shared buffers,
// at one place for host and device. Rows that are read from flash into pinned memory need no copy
// to the device; only their scatter to the row buffers is a copy. The host copies Go memory to a
// buffer once, while the stream rests. A Stream is a command queue with an open command buffer. The
// buffer is committed by a wait, by recording an Event, and when it is long.
//
// Reading order: port.h in kernels/source (the vocabulary of the kernels), arguments.go (how a
// launch passes its arguments), then driver.go, memory.go and streams.go. objects.go is the
// interface to Objective-C, objc_darwin.go its implementation.
//
// What is emulated: all files but objc_darwin.go run in the tests on Linux, over package standin.
// Package standin has an Objective-C runtime with Metal's objects, and compiles source.Metal for
// the host. It fails on everything that Metal's documentation forbids, on released objects, and on
// missing order. The tests thus find wrong arithmetic, shapes, order and leaks. They do not find
// what Metal's compiler refuses (TestSource and TestAddressSpaces check what they can), and nothing
// about time or about the real objects. On a Mac, go test ./kernels/metal ./engine/cuda does.
//
// Invariants:
//
//  1. The invariants of kernels/cuda: a fixed order of summation, no atomic operations, FFN sums in
//     order of units.
//  2. The text of a kernel is the same for both kinds of device. The differences are in port.h;
//     there is no other device code here.
//  3. Metal has no error function. The one for Gelu is within 1e-6 of the exact one.
//  4. An error names the message that failed, with the system's text. Once a command buffer has
//     failed, all calls but those that free something return its error.
//  5. Everything that a driver has made is released with it, once.
package metal
