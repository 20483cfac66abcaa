// Package fio reads what fio measured and writes job files that measure what a device fit needs.
//
// The model. A File is one output of fio, an Entry what it says of one job in one direction, and a
// Cell one measured point that a fit can use: so many requests of one size in flight, so many bytes
// per second. What the file does not say is nil in an Entry and stays unknown: a latency that was
// not measured is never 0 ns. Where fio itself fills in a default for an option (iodepth, numjobs,
// bs, ioengine, direct), the Cell says so in its warnings.
//
// Versions differ in units. They are told apart by the keys that are there, not by the version that
// is printed: "clat" is in microseconds, "clat_ns" in nanoseconds, io_bytes is in KiB where there
// is no io_kbytes and latencies are in microseconds. Sizes in options are read by fio's rule, in
// which "4k" is 4096 bytes and "4kib" 4000 unless kb_base says otherwise (HOWTO, "kb_base"; checked
// with fio 3.33). Nowhere else in the program are they.
//
// Sizes of requests and numbers of requests in flight are checked by arithmetic where the file
// allows it: bytes / requests is the block size, and requests per second × mean latency is the
// number in flight (Little's law). An entry that contradicts its options is left out with the
// numbers that disagree.
//
// Reading guide:
//
//	entry.go    File, Entry, Latency, and whether an entry can be used
//	parse.go    bytes to a File: where the JSON is, what stood around it
//	decode.go   JSON types that take whatever fio writes
//	convert.go  one job of the JSON to its entries
//	options.go  job options, sizes by fio's rule
//	cells.go    entries to cells: jobs that ran together are added up
//	job.go      a Grid to a job file
//
// Invariants:
//
//  1. Parse never panics and gives the same File for the same bytes.
//  2. Counts, sizes, rates and latencies in an Entry are finite and not negative; latencies are
//     positive.
//  3. Cells puts every entry into one Cell or one line of what was left out, save those that repeat
//     the requests of another.
//  4. The JSON of a job file that WriteJob wrote gives the cells of its Grid, each once, and its
//     reference cell repeatedly.
package fio
