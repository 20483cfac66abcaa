// Package uring reads batches of one file through Linux's io_uring.
//
// A Ring is a goroutine with its own locked OS thread that owns one kernel ring: the registered
// ring descriptor and the single-issuer mode of the kernel belong to a thread. At most depth reads
// are in flight; completions make room for the next requests of the batch, and short or interrupted
// reads are put back until they are complete.
//
// Start with loop.go, which holds the whole logic over a five-method kernel interface and is tested
// against a fake kernel on every system; ring.go adds the thread; kernel_giouring.go is the adapter
// to github.com/pawelgaczynski/giouring and exists only behind the build tag "giouring" on Linux.
// Without it Open and Probe return ErrNotBuilt.
package uring
