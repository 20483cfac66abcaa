// Package standin is a Mac's GPU for tests on machines without one. It is an Objective-C runtime
// with Metal's objects, over which package metal's own driver runs. The host's C++ compiler
// compiles the text that Metal's would get. It is an emulation: its times count command buffers.
//
// objects_linux.go has objects and memory, gpu_linux.go the objects of Metal; library/metal_stdlib
// stands for the header of the language. Threads run as the fibers of kernels/cuda/standin. It
// needs Linux and a C++ compiler; the tests that need it are skipped elsewhere.
package standin

// Execution stands, in Fail and Calls of Runtime, for a message that fails late: the work of a
// command buffer.
const Execution = "execution"
