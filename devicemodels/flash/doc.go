// Package flash models a flash device in two forms with the same numbers, a Spec. A Station runs
// the Spec as discrete events, for the simulator. A Loop is its closed form, for the fit. A test
// compares the two.
//
// A read passes stages in series. Each stage is first come, first served:
//
//	host: submit ─▶ limit ─▶ queue ─▶ request limit ─▶ k servers ─▶ host: complete
//	                                                  (LTFB + bytes/rate)
//	                                                    shared link: bytes/rate ────┘
//
// The link moves bytes while a server produces them. Placement says which server a read waits for:
// the first to be free, or the one that holds its address, like the dies of a drive. The optional
// parts are a token bucket in front (Limit), a queue depth, whole pages (Page), splitting of large
// reads (MaxTransfer), the effect of spread addresses (Spans), heat (Sustained), other readers
// (Background) and the page cache of mapped files (PageCache).
//
// Batch runs one group of reads to its end. Submit, Next and Take run several groups at once. Free
// slots take reads of class Demand before those of class Speculative, and in order within a class.
// The engine's Batch cost delays each group.
//
// A mapped file is read through the page cache of Linux. A fault fetches the missing pages of a
// window around it and waits for all of them; other threads that touch these pages wait, too. Pages
// are evicted by the two lists of Linux, or in the order of their fetches with an advice.
//
// Not modelled are writes and their garbage collection, and the competition of several issuing
// cores for one queue of a UFS device (up to 40 % in PowerInfer-2, section 2). Of mapped files
// these are not modelled:
//
//   - prefetch during copying, which Linux begins in the last quarter of a window: reads longer
//     than half a window are predicted too slow, and runs of pages of that length fetch up to 2.2
//     times as much as predicted;
//   - other eviction (the multi-generational lists of Linux, macOS);
//   - windows that are a large part of the capacity, where Linux keeps more than the two lists.
//
// Reading guide: spec.go for the fields of a device file, closed.go for Throughput, station.go for
// the events, groups.go for submission and completion of reads, parts.go and pagecache.go for the
// optional parts, histogram.go for distributions.
//
// Invariants:
//
//  1. Throughput · Latency = depth requests, and Sojourn of every batch, or of all groups, is the
//     area under the number in flight (Little's law).
//  2. Bytes asked = bytes moved at the end of every batch and group, and when all are taken nothing
//     is in flight.
//  3. Throughput never falls when a rate, the number of servers or the depth grows, or when a
//     latency shrinks.
//  4. Throughput is within 2 % of Measure for 97 of 100 random devices and loops, and always where
//     the closed form is exact. For split reads it is an upper bound.
//  5. The same Spec, Config and batches give the same times.
package flash
