// Package fio reads outputs of fio and writes job files for the measurements of a device fit. It
// also reads results of elbencho, KDiskMark and CrystalDiskMark, as entries of the same kind, and
// refuses other storage tests by their names.
//
// The model. A File is one output of fio. An Entry is one direction of one job. A Cell is one
// measured point for a fit: requests of one size, their number in flight, and bytes per second. A
// value that the file lacks is nil in an Entry and stays unknown: an unmeasured latency is never 0
// ns. A Cell warns about every default of fio that it relies on (iodepth, numjobs, bs, ioengine,
// direct).
//
// Versions differ in units. The keys decide the unit, not the printed version: "clat" is in
// microseconds, "clat_ns" in nanoseconds, and io_bytes is in KiB where there is no io_kbytes and
// latencies are in microseconds, unless the number of requests shows another unit. Sizes in options
// follow fio's rule: "4k" is 4096 bytes and "4kib" 4000 unless kb_base says otherwise (HOWTO,
// "kb_base"; checked with fio 3.33). The rest of the program does not use this rule.
//
// Where the file allows it, arithmetic checks the options: bytes / requests is the block size, and
// requests per second × mean latency is the number in flight (Little's law). An entry that
// contradicts its options is left out, with the contradicting numbers.
//
// Reading guide:
//
//	entry.go    File, Entry, Latency, and whether an entry can be used
//	parse.go    bytes to a File: the JSON and the text around it
//	decode.go   JSON types that accept any value
//	convert.go  one job of the JSON to its entries
//	options.go  job options, and sizes by fio's rule
//	doubts.go   options under which a job is not what a fit assumes
//	clients.go  the last report of every job of a client
//	together.go jobs that ran together, and those that did not
//	cells.go    entries to cells: the sums of simultaneous jobs
//	log.go      a bandwidth log to plateaus
//	elbencho.go, diskmark.go, foreign.go
//	            results of other tools, and tools that are not read
//	job.go      a Grid to a job file
//
// Invariants:
//
//  1. Parse never panics and gives the same File for the same bytes.
//  2. Counts, sizes, rates and latencies in an Entry are finite and not negative; latencies are
//     positive.
//  3. Cells puts every entry into one Cell or into one LeftOut, except entries that repeat the
//     requests of another.
//  4. The output of a job file by WriteJob gives the cells of its Grid, each once, and its
//     reference cell several times.
package fio
