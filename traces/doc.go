// Package traces reads and writes the two kinds of files that all other parts exchange. An
// activation trace says which units of which layer each token needed. A Run says what a simulated
// or measured execution of a trace cost.
//
// A trace is a sequence of tokens. Each token has a mask of its active units for every layer
// (internal/mask). Three more columns are optional: masks of predicted units, the magnitude of
// every active unit as one byte (magnitude.go), and the feature that predictors learn from, in
// float16 numbers (feature.go). On disk a trace is an Arrow IPC file, NAME.trace.arrow, with one
// row per (token, layer). A manifest beside it, NAME.trace.json, holds its SHA-256. A Run is an
// Arrow IPC file, NAME.run.arrow, with one row per (token, layer, part), and its metadata,
// NAME.run.json. Any Arrow tool opens both.
//
// Reading guide: trace.go and run.go are the contracts. writer.go and reader.go write and read the
// trace file. schema.go has its columns and metadata, manifest.go the checksum beside it.
// hashed.go hashes a file while it is written. check.go scans an untrusted file, and guard.go does
// so in a child process. cat.go and runcat.go print rows. merge.go joins traces. runfile.go
// and totals.go write, read and sum Runs.
//
// Invariants of a trace file:
//
//  1. Tokens ascend strictly by (seq, pos); each has rows for the layers 0..Layers-1 in order.
//  2. A mask has no bit at or beyond Units.
//  3. The file under its final name is complete: it is written beside it and renamed after a sync
//     (package output). An interrupted recording is named NAME.partial.trace.arrow, and its
//     manifest says so.
//  4. A row of a trace with magnitudes has one magnitude for each active unit.
//  5. The same tokens, header and options give the same bytes.
//  6. A row of a trace with features has one feature of FeatureWidth float16 numbers.
//
// Open checks the file without reading the masks; the SHA-256 check reads all bytes once. Token
// checks the rest of 1, 2 and 4 for the rows that it reads.
package traces
