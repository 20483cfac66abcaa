// Package uring reads batches of one file through Linux's io_uring.
//
// A Ring is a goroutine with its own locked OS thread that owns one kernel ring: the registered
// ring descriptor and the single-issuer mode of the kernel belong to a thread. At most depth reads
// are in flight. Completions make room for the next requests of the batch; short or interrupted
// reads are queued again until they are complete.
//
// Start with loop.go: it has all the logic, over a five-method Kernel interface, and is tested with
// a fake kernel on every system. ring.go adds the thread. kernel_giouring.go adapts
// github.com/pawelgaczynski/giouring and exists only behind the build tag "giouring" on Linux.
// Without it Open and Probe return ErrNotBuilt.
package uring
