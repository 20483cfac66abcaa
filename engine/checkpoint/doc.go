// Package checkpoint reads model weights on disk, in any of three formats, and writes safetensors:
// single files, and Hugging Face folders of one or more. It knows files and tensors, not models.
//
// A checkpoint of any format is a Tensors: names, types and shapes, and for each tensor a reader of
// its elements in row-major order, little-endian. Reading a range needs the memory of that range. A
// Model adds the configuration and the names of the Hugging Face original. The formats:
//
//	safetensors   here; with an index, several files
//	PyTorch       package torch: pytorch_model.bin and its shards, read without running anything
//	GGUF          package gguf: the files of llama.cpp; quantised tensors are read as F32
//
// A safetensors file is an 8-byte little-endian header length, a JSON header with the dtype, shape
// and place of every tensor, and the data, which the tensors cover without holes and without
// overlap:
//
//	| n uint64 | header, n bytes of JSON, padded with spaces | tensor 0 | tensor 1 | ... |
//
// Files are untrusted. Everything in a header is checked when the file is opened, before anything
// is allocated by it: a File that Open returns can be read to its last byte. Names are compared
// exactly, and a name that occurs twice is an error: some readers keep the first and some the last,
// so they would see two different models in one file.
//
// Start with Tensors, OpenAny and OpenModel (any.go), then Open and File (file.go), parseHeader
// (header.go) for the checks, Writer (writer.go) for atomic output, and OpenFolder (folder.go) for
// shards and their index.
//
// Invariants:
//
//  1. Tensors of an open File are in range, ordered, contiguous and as long as dtype and shape say.
//  2. A file under its final name was written completely and synced; every other file ends in
//     ".partial".
//  3. Opening a safetensors file allocates at most four times its size, whatever its header says.
//  4. The same tensors, bytes and metadata give the same file, byte for byte.
package checkpoint

import "github.com/windrow-sim/windrow/engine/checkpoint/internal/tensor"

// The kinds of errors, to be tested with errors.Is. Errors of the operating system keep their own
// kind (fs.ErrNotExist and so on).
var (
	// ErrFormat: a file is broken: of another kind, truncated, or contradictory.
	ErrFormat = tensor.ErrFormat
	// ErrUnsupported: a file may be whole but has content that this program does not handle.
	ErrUnsupported = tensor.ErrUnsupported
)
