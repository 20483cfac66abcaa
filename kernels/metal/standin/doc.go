// Package standin is a Mac's GPU for tests on machines that have none: an Objective-C runtime that
// has Metal's objects, over which package metal's own driver runs, and kernels that the host's C++
// compiler has made of the text that Metal's would get. It is an emulation: the times that it gives
// count command buffers.
//
// objects_linux.go has objects and memory, gpu_linux.go what Metal's do; library/metal_stdlib
// stands for the header of the language. Threads run as the fibers of kernels/cuda/standin. It is
// for Linux, where a C++ compiler is; tests that need it are skipped elsewhere.
package standin

// Execution stands, in Fail and Calls of Runtime, for a message that fails late: the work of a
// command buffer.
const Execution = "execution"
