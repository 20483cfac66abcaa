// Package arrowfile writes and reads Arrow IPC files that are tables of columns without nulls, of
// fixed width or (Binary) of bytes: all that a trace or a Run needs, and little enough that the
// reading half can check every offset before it uses it.
//
// The writing half is the Arrow library. The reading half is not: the library (v15) copies every
// body to the heap, and on a damaged file it panics or asks for more memory than there is, which
// recover cannot stop. The block reader here gives slices of the mapped file, allocates nothing
// whose size a file decides without the file being as large, and is compared with the library's
// reader by test.
//
// Only the footer is trusted to say where things are; the shape of the file is
//
//	ARROW1 00 00 | schema message | batch message, body | … |
//	| footer (flatbuffer) | length u32 | ARROW1
//
// Invariants of a File that Parse and Bind have accepted:
//
//  1. Blocks lie between the leading magic and the footer, in ascending order, without overlap: a
//     small footer cannot stand for more rows than the file has bytes for.
//  2. Every bound column has the type asked for, is not nullable, not a dictionary, and holds no
//     null.
//  3. Every column buffer of an uncompressed batch is inside the file, 8-aligned, and at least rows
//     × width long. The offsets of a Binary column are checked when a value is asked for (Value).
//
// Start with file.go (Parse, Bind, Load); flat.go is the checked flatbuffer access below it;
// write.go is the writer.
package arrowfile

import "github.com/windrow-sim/windrow/internal/refusal"

// Kinds of errors. Everything the reading half returns wraps one of them.
var (
	ErrFormat      = refusal.Kind(refusal.ErrInput, "bad file format")
	ErrUnsupported = refusal.Kind(refusal.ErrInput, "unsupported file")
)
