// Package world holds a test: a simulated world in which the real engine runs. The engine's step,
// its row cache, prefetcher and worker pool, and flashio's pool of reading threads and its ring are
// the real ones. The file below them, and time, are simulated, in a bubble of testing/synctest.
// There is nothing to import here; `make vopr` runs it.
//
// A seed draws a Case: the model, what its tokens need, policy, schedule, layout, device, costs of
// the host, and faults. The same case always takes the same course:
//
//   - The disk (disk_test.go) is one goroutine. It acts when every other goroutine waits, takes
//     the calls of an instant in the order of their offsets, and ends them one by one in the order
//     of (time, id).
//   - Its times are those of the simulator's station (devicemodels/flash), so the engine's virtual
//     time must equal the simulator's to the nanosecond.
//   - No lock may be held across a wait: such a goroutine does not count as waiting, and virtual
//     time would stand still.
//
// Reading guide: case_test.go has what a seed draws; script_test.go the tokens, and what a dense
// engine makes of them; disk_test.go the file with its faults; ring_test.go the kernel below the
// ring; reader_test.go the witness between engine and reader; run_test.go one run with everything
// that is checked; world_test.go the seeds; planted_test.go the faults that it must find.
// testdata/cases holds each case that ever found a fault, by name.
package world
