// Package arrowfile writes and reads Arrow IPC files: tables of columns without nulls, of fixed
// width or (Binary) of bytes. This is all that a trace or a Run needs. The format is so small that
// the reader checks every offset before it uses it.
//
// The writer is the Arrow library's. The reader is not: the library (v15) copies every body to the
// heap. On a damaged file it panics or asks for more memory than there is, which recover cannot
// stop. The reader here returns slices of the mapped file. It allocates no memory whose size the
// file sets, unless the file is as large. A test compares it with the library's reader.
//
// Positions come from the footer alone. The layout of a file is
//
//	ARROW1 00 00 | schema message | batch message, body | … |
//	| footer (flatbuffer) | length u32 | ARROW1
//
// Invariants of a File that Parse and Bind have accepted:
//
//  1. Blocks lie between the leading magic and the footer, in ascending order, without overlap. A
//     small footer cannot claim more rows than the file has bytes for.
//  2. Every bound column has the type asked for, is no dictionary and holds no null, although its
//     field may be nullable: what pandas, Polars and DuckDB write always is.
//  3. Every column buffer of an uncompressed batch is inside the file, 8-aligned, and at least rows
//     × width long. Value checks the offsets of a Binary column.
//
// Start with file.go (Parse, Bind, Load). flat.go is the checked access to flatbuffers below it.
// write.go is the writer.
package arrowfile

import "github.com/windrow-sim/windrow/internal/refusal"

// Kinds of errors. Every error of a File wraps one of them.
var (
	ErrFormat      = refusal.Kind(refusal.ErrInput, "bad file format")
	ErrUnsupported = refusal.Kind(refusal.ErrInput, "unsupported file")
)
