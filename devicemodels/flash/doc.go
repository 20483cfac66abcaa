// Package flash is one model of a flash device in two forms: a Spec gives the numbers, a Station
// runs it as discrete events, and a Loop is its closed form. The simulator samples from the one,
// the fit computes with the other, and a test holds them together.
//
// A read goes through stages in series, first come, first served in each:
//
//	host: submit ─▶ limit ─▶ queue ─▶ request limit ─▶ k servers ─▶ host: complete
//	                                                  (LTFB + bytes/rate)
//	                                                    shared link: bytes/rate ────┘
//
// The link moves bytes while a server produces them. Which server a read waits for is Placement:
// the first to be free, or the one that holds its address, as the dies of a drive do. The optional
// parts are a token bucket in front (Limit), a queue depth, whole pages (Page), splitting of large
// reads (MaxTransfer), the effect of spread addresses (Spans), heat (Sustained), other readers
// (Background) and the page cache of mapped files (PageCache).
//
// Batch is one group of reads from start to end. Submit, Next and Take let several groups be under
// way: free slots take reads of Demand before those of Speculative, and in order within a class;
// the engine's Batch cost delays each group.
//
// A mapped file is read through the page cache of Linux: a fault fetches what memory lacks of a
// window around it and waits for all of it, and pages go by the two lists that Linux keeps.
//
// Not modelled: writes and the garbage collection that follows them; the competition of several
// issuing cores for one queue of a UFS device (up to 40 % in PowerInfer-2, section 2). Of mapped
// files: reading ahead while the copying goes on, so that reads longer than half a window are
// predicted too slow; the time to free memory, which a fault pays when the cache is full; the
// mapping of pages that are in memory already, 16 at once (a few µs each time); end of reading
// ahead after many misses; other kernels' ways to choose what goes (the multi-generational lists of
// Linux, macOS), and windows that are a large part of the capacity, where Linux keeps more than the
// two lists.
//
// Reading guide: spec.go for what a device file says, closed.go for Throughput, station.go for the
// events (groups.go for how reads get in and out, parts.go and pagecache.go for what is plugged
// in), histogram.go for distributions.
//
// Invariants:
//
//  1. Throughput · Latency = depth requests, and Sojourn of every batch, or of all groups, is the
//     area under the number in flight (Little's law).
//  2. Bytes asked = bytes moved at the end of every batch and group, and when all are taken nothing
//     is in flight.
//  3. Throughput never falls when a rate, the number of servers or the depth grows, or a latency
//     shrinks.
//  4. Throughput is within 2 % of Measure, in 97 of 100 devices and loops chosen at random and
//     always where the closed form is exact; for reads that are split it is an upper bound.
//  5. The same Spec, Config and batches give the same times.
package flash
