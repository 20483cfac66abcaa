// Package metal runs the kernels of kernels/cuda on the GPU of a Mac with Apple silicon: it is the
// driver beneath cuda.Device and cuda.Kernels there, so that whoever uses those uses either kind of
// device. There is no cgo: the Objective-C runtime is called through purego, and the kernels are
// compiled when a program starts, from text that the program carries.
//
// The model is that of kernels/cuda, with one memory: what Alloc and HostAlloc reserve is a shared
// buffer, which the host and the device use at one place. Rows that are read from flash into pinned
// memory are at once where the device finds them; only their scatter to the row buffers is a copy.
// Memory of Go is copied to a buffer once, by the host, while the stream rests. A Stream is a
// command queue with a command buffer that is being filled. It is handed to the device when
// somebody waits for it, when an Event is recorded, and when it is long.
//
// Reading order: source/port.h (what the words of the kernels mean here), arguments.go (how a
// launch hands over its arguments), then driver.go, memory.go and streams.go. objects.go says how
// Objective-C is spoken, and objc_darwin.go speaks it.
//
// What is emulated: all but objc_darwin.go runs in the tests on Linux, over package standin, which
// has an Objective-C runtime with Metal's objects and compiles source.Metal for the host. It is
// strict about what Metal's documentation forbids, about what is released, and about order. That
// shows wrong arithmetic, shapes, order and leaks. It does not show what Metal's compiler thinks of
// the text, for which TestSource and TestAddressSpaces look as far as they can, and nothing about
// time or about the real objects. go test ./kernels/metal ./engine/cuda shows that, on a Mac.
//
// Invariants:
//
//  1. Those of kernels/cuda: a fixed order of summation, no atomic operations, FFN sums in order of
//     units.
//  2. The text of a kernel is the same for both kinds of device. What differs is in port.h, and
//     there is no other device code here.
//  3. Gelu's error function, which the language has not, is within 1e-6 of the exact one.
//  4. An error names the message that failed, with the text that the system gives. Once a command
//     buffer has failed, all calls but those that give something back return its error.
//  5. What a driver has made is released with it, once.
package metal
