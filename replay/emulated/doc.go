// Package emulated is a flash device of known specification that really takes its time, over bytes
// that are already in memory. It exists to check the simulator where no steady device is at hand:
// the replay on it runs the whole engine in real time, and the simulation of the same specification
// must agree. A Run measured on it says "emulated".
//
// It shares no code with the simulator's station, so that agreement means something: from package
// flash it takes what a device file says (Spec with Within, Limit, the quantiles of a Histogram),
// and decides all the rest anew.
//
// A read passes the parts of the specification in this order:
//
//	split (MaxTransfer) ─▶ Limit ─▶ QueueDepth ─▶ MaxIOPS
//	─▶ server (LTFB + pages/ServerRate) ─▶ done
//	                                                         link (bytes/LinkRate) ─┘
//
// Emulated are Servers, Placement and Stripe, LTFB and LTFBShape, ServerRate, LinkRate, MaxIOPS,
// QueueDepth, Align, Page, MaxTransfer, Limit, and Spans for a stretch that is given. New refuses
// Sustained, Background and PageCache. The host costs of Spec.Engines are left to the real host.
//
// Every part works in the device's own time, and readers wait until the clock has come there. A
// wake-up that is late does not make the device slower: a thread that ought to have been ready at
// 10 ms asks at 10 ms, even when it is 11 ms, so that only the last wake-up of a batch shows.
// Threads that wake late may overtake each other; with latencies above a millisecond that changes
// who waits for whom, and hardly how long all of them take.
//
// Reading guide: drive.go for the device in its own time, limit.go for its token bucket;
// emulated.go for the readers that wait: threads, a ring, and single reads of a file server;
// clock.go for who wakes them.
//
// Invariants:
//
//  1. No read ends before the device's own time for it has passed.
//  2. One thread at a time in the same order gives the same times of the device, whatever the clock
//     did.
//  3. Latencies are drawn in the order in which requests are taken, which is the order of a batch:
//     its request i gets the same latency however threads meet.
package emulated
