// Package traces holds the two kinds of files that everything else exchanges: activation traces
// (which units of which layer each token needed) and Runs (what a simulated or measured execution
// of a trace cost), with their readers and writers.
//
// A trace is a sequence of tokens, each with one bitset of active units per layer, when a predictor
// ran one of predicted units, and optionally the magnitude of every active unit as one byte
// (magnitude.go) and the feature that predictors learn from, float16 numbers (feature.go). On disk
// it is an Arrow IPC file NAME.trace.arrow with one row per (token, layer), beside a manifest
// NAME.trace.json that holds its SHA-256. A Run is NAME.run.arrow with one row per (token, layer,
// part of the time), beside NAME.run.json. Any Arrow tool opens both.
//
// Reading guide: trace.go and run.go are the contracts. writer.go and reader.go are the trace file,
// schema.go its columns and metadata, manifest.go the checksum beside it, partial.go how a file
// appears whole or not at all. check.go scans a file that nobody vouches for and guard.go does so
// in a child process. cat.go and runcat.go print rows, merge.go joins traces, runfile.go and
// totals.go are the Run side.
//
// Invariants of a trace file:
//
//  1. Tokens ascend strictly by (seq, pos); each has rows for the layers 0..Layers-1 in order.
//  2. A mask has no bit at or beyond Units.
//  3. The file under its final name is whole: it is written as NAME.trace.arrow.partial and renamed
//     after a sync. An interrupted recording gets another name, NAME.partial.trace.arrow, and a
//     manifest that says so.
//  4. The magnitudes of a row, if the trace has any, are as many as its active units.
//  5. The same tokens, header and options give the same bytes.
//  6. The feature of a row, if the trace has any, is FeatureWidth numbers of two bytes.
//
// Open checks what it can without reading the masks (and the SHA-256, which reads all of it once);
// the rest of 1, 2 and 4 is checked for every token as it is read.
package traces
