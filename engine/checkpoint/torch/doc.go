// Package torch reads the tensors of a file of torch.save, such as pytorch_model.bin or a
// predictor, without Python and without running any code of the file.
//
// Such a file is a zip archive of uncompressed entries under one folder: data.pkl, a pickle of
// protocol 2 that builds a dictionary of names and tensors, and data/0, data/1, …, the bytes of the
// storages that the tensors are views of:
//
//	NAME/data.pkl | NAME/byteorder | NAME/data/0 | NAME/data/1 | … | zip directory
//
// A pickle is a program. The machine here (pickle.go) knows the opcodes that torch.save emits for
// dictionaries of tensors and the few names that they call (names.go); each of these builds a
// description. Every other name is an ErrUnsupported that quotes it, so nothing is ever imported or
// called. Opcodes, stack, memo and memory are bounded.
//
// Opening a file reads only the pickle. Tensors are read in pieces from the entries of their
// storages, which several tensors may share (tied weights). Views with strides and big-endian files
// are put in order while they are read (view.go).
//
// Start with Open and File (file.go), then archive (archive.go) and machine (pickle.go).
//
// Sources: the Python documentation of pickletools for the opcodes, torch/serialization.py and
// torch/_utils.py of PyTorch 2.5 for the persistent ids and the arguments of _rebuild_tensor_v2.
//
// Invariants:
//
//  1. Every element of every tensor of an open File lies inside its storage, every storage inside
//     the file.
//  2. A tensor has no more elements than its storage: a small file cannot promise a large tensor.
//  3. Opening allocates at most four times the size of the file, or 128 KiB for a small one,
//     whatever its directory and its pickle say: their values are charged to a budget (budget.go).
//
// Checksums of the entries are not verified: that would read every byte.
package torch

import "github.com/windrow-sim/windrow/engine/checkpoint/internal/tensor"

// The kinds of errors; package checkpoint has them under the same names.
var (
	errFormat      = tensor.ErrFormat
	errUnsupported = tensor.ErrUnsupported
)
