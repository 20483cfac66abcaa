// Package checkpoint reads and writes model weights on disk: single safetensors files and Hugging Face folders of
// them. It knows files and tensors, not models.
//
// A safetensors file is an 8-byte little-endian header length, a JSON header that names every tensor with its dtype,
// shape and place, and the data, which the tensors cover without holes and without overlap:
//
//	| n uint64 | header, n bytes of JSON, padded with spaces | tensor 0 | tensor 1 | ... |
//
// Files come from strangers, so everything a header says is checked when the file is opened, before anything is
// allocated by it: a File that Open returns can be read to its last byte. Names are compared exactly and a name that
// occurs twice is an error, because readers that keep the first and readers that keep the last would see two
// different models in one file.
//
// Start with Open and File (file.go), then parseHeader (header.go) for the checks, Writer (writer.go) for how an
// output becomes visible whole or not at all, and OpenFolder (folder.go) for shards and their index.
//
// Invariants:
//
//  1. Tensors of an open File are in range, ordered, contiguous and as long as dtype and shape say.
//  2. A file under its final name was written completely and synced; everything else ends in ".partial".
//  3. The same tensors, bytes and metadata give the same file, byte for byte.
package checkpoint

import "errors"

// The kinds of errors, to be tested with errors.Is. Errors of the operating system keep their own kind (fs.ErrNotExist
// and so on).
var (
	// ErrFormat says that a file is broken: not what its name promises, truncated, or contradicting itself.
	ErrFormat = errors.New("bad format")
	// ErrUnsupported says that a file may be whole but holds something this program does not handle.
	ErrUnsupported = errors.New("not supported")
)
