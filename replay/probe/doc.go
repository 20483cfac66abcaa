// Package probe measures the machine it runs on and describes it as a device for the simulator.
//
// The flash is measured as a grid of closed loops, chunk size by depth: each cell opens the file with that many threads
// (or that ring depth) and reads batches of random aligned chunks, ascending and within a stretch of the file, as the engine reads a layer. One reference
// cell is measured again and again between the others; its spread is the drift of the device during the probe. The cells go
// through devicemodels.FitFlash. The host is timed with the kernels the engine computes with.
//
// A number that the page cache or memory served is not a number about flash. The probe refuses with
// flashio.ErrEnvironment when reads are not direct or the file lives in memory, and taints a cell when the system counted
// fewer than 95 % of its bytes as fetched from storage (field reports of 44 GB/s from a 4 GB/s link are why).
//
// Reading guide:
//
//	probe.go    Config and Run: the whole probe, top to bottom
//	file.go     the file that is read: one made for the probe, or one that is only read
//	grid.go     which cells, in which order
//	cell.go     one cell: batches, rates, latencies, and whether storage served them
//	host.go     the host constants
//	workload.go what the host timings run
//	machine.go  everything the probe asks of the system, as one seam for the tests
//
// Invariants:
//
//  1. A given file is opened for reading only; a file that the probe made is gone when Run returns.
//  2. Measuring stops when the budget is used up, but for the batch in flight and one run of each host timing.
//  3. The same seed reads the same offsets in the same order.
package probe
