// Package probe measures the machine it runs on and describes it as a device for the simulator.
//
// The flash is measured as closed loops, of one chunk size and one depth each: a cell opens the
// file with that many threads (or that ring depth) and reads batches of random aligned chunks,
// ascending and within a stretch of the file, as the engine reads a layer, until they are steady.
// Which cells is either told, or found: the search fits what it has, and measures next where fit
// and neighbours disagree most. One reference cell is measured again and again between the others;
// its spread is the drift of the device during the probe. The cells of all engines go through
// devicemodels.FitFlash together, with what is known besides: the processor time of a read, the
// distribution of a lone read's latency, a limit on the rate, the effect of spread addresses. The
// host is timed with the kernels the engine computes with.
//
// A number that the page cache or memory served is not a number about flash. The probe refuses with
// flashio.ErrEnvironment when reads are not direct or the file lives in memory, and taints a cell
// when the system counted fewer than 95 % of its bytes as fetched from storage (field reports of 44
// GB/s from a 4 GB/s link are why).
//
// Behind a token bucket (a cloud volume, a control group) most loops are as fast as the bucket. The
// device behind it shows in the reads that found credit; a loop without such reads is left out of
// the fit, and one that would take longer than its time is not measured. A bucket that is larger
// than what the search reads, or never empty under its loops, is not found.
//
// The path of mapped files is measured on request, with the engine's own reader for it, when all
// else is: what a fault in a file that is not in memory fetches and takes, by the system's count of
// bytes, and the copying of what is in memory.
//
// Reading guide:
//
//	probe.go    Config and Run: the whole probe, top to bottom
//	file.go     the file that is read: one made for the probe, or one that is only read
//	inspect.go  what is refused before anything is measured
//	grid.go     the order of things, and the exact grid
//	adapt.go    the search for the cell to measure next
//	cell.go     one cell: batches, rates, latencies, and whether storage served them; places.go:
//	            where it reads
//	steady.go   when a cell is steady, and its confidence interval
//	limit.go    the search for a limit; span.go: the effect of spread addresses
//	mapped.go   the path of mapped files; mappedfit.go: what it says; memory.go: how much the page
//	            cache may use
//	samples.go  every batch as it was measured, and going on after an interruption
//	device.go   from the cells to the device, and its warnings
//	host.go     the host constants
//	workload.go what the host timings run
//	machine.go  everything the probe asks of the system, as one seam for the tests
//
// Invariants:
//
//  1. A given file is opened for reading only; a file that the probe made is gone when Run returns;
//     no existing file is written to but samples that are gone on with.
//  2. Measuring stops when the budget is used up, but for the batch in flight, one run of each host
//     timing, and whole intervals of a limit.
//  3. The same seed reads the same offsets in the same order, and the same measurements lead to the
//     same cells.
//  4. A cell that was not steady says so.
package probe
