// Package flashio reads batches of a file from flash, through one interface over several engines.
//
// A Reader fills all buffers of a batch or fails as a whole. Its Mode reports how the reads are
// really done: the engine, direct or through the page cache, the file system, and every fall-back
// with its reason. Direct reads are decided by the file system and by the kernel's facts about the
// file (STATX_DIOALIGN), never by whether an open succeeded: tmpfs accepts O_DIRECT and has no
// flash to read from.
//
// Reading guide:
//
//   - flashio.go: Request, Reader, Mode, Options: the contract of all engines.
//   - engines.go: the engines; internal/ioengine has their names, defaults and limits.
//   - open.go: Open and the fall-backs; host.go: its view of the system, replaceable in tests.
//   - direct.go: FileInfo and the decision for direct reads, a pure function.
//   - pread.go, mmap.go, mem.go, uring.go: the engines; the io_uring itself is in the package
//     uring.
//   - timing.go: the times of single reads.
//   - faults.go, counter.go: Readers around Readers; readfull.go, buffer_unix.go, host_linux.go:
//     small helpers.
//
// Invariants, all tested by one conformance suite over every engine: the bytes equal the file's;
// the error is the first one in request order; nothing is in flight after ReadBatch returned; a
// batch allocates nothing in steady state.
package flashio
