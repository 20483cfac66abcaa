// Package flashio reads batches of a file from flash, through one interface with several engines
// behind it.
//
// A Reader fills all buffers of a batch or fails as a whole, and its Mode tells how the reads are
// really done: which engine, direct or through the page cache, on which file system, and what had
// to be given up and why. Whether reads are direct is decided from the file system and from what
// the kernel says about the file (STATX_DIOALIGN), never from whether an open succeeded: tmpfs
// accepts O_DIRECT and has no flash to read from.
//
// Reading guide:
//
//   - flashio.go: Request, Reader, Mode, Options: the contract of all engines.
//   - engines.go: the engines; their names, defaults and limits are the table of
//     internal/ioengine.
//   - open.go: Open and the fall-backs; host.go: what it asks of the system, replaceable in tests.
//   - direct.go: FileInfo and the decision for direct reads, a pure function.
//   - pread.go, mmap.go, mem.go, uring.go: the engines; the io_uring itself is in the package
//     uring.
//   - timing.go: how long single reads take, where somebody asks.
//   - faults.go, counter.go: Readers around Readers; readfull.go, buffer_unix.go, cache_linux.go:
//     small helpers.
//
// Invariants, all tested by one conformance suite over every engine: the bytes equal the file's;
// the error is the first one in request order; nothing is in flight after ReadBatch returned; a
// batch allocates nothing in steady state.
package flashio
