// Package gguf reads GGUF files, the model format of llama.cpp: metadata, tensors, and the
// vocabulary of the tokenizer.
//
// A GGUF file (versions 2 and 3, little-endian) is a header, metadata as keys with typed values, a
// list of tensors, and their data:
//
//	| "GGUF" version | counts | key type value … | name dimensions type offset … |
//	| padding | tensor 0 | padding | tensor 1 | …
//
// The file has the innermost dimension first; Shape here has the outermost first, as everywhere
// else. Tensors of types F32, F16 and BF16 are read unchanged. Quantised ones are decoded to F32
// while they are read: small blocks (Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, IQ4_NL, MXFP4: blocks.go) and
// large ones (Q2_K to Q6_K, IQ4_XS: superblocks.go). The bits are those of llama.cpp.
//
// A model may be in several files, of which any one finds the others (parts.go).
//
// Names and orders of rows are those of llama.cpp. NewOriginal (original.go) shows a file of a
// known architecture (architectures.go) with the names and the order of rows (rows.go) of its
// Hugging Face original.
//
// Files are untrusted: every count is checked against the file's size before anything is allocated
// by it.
//
// Start with Open and File (file.go), then parser (parse.go), encoding.go, blocks.go and
// original.go.
//
// Sources: docs/gguf.md of ggml-org/ggml for the file; ggml-common.h and ggml-quants.c there
// (block_*, dequantize_row_*) for the blocks; gguf-py/gguf/constants.py, the classes LlamaModel,
// FalconModel, Phi2Model and Qwen2Model of the converter and src/models of ggml-org/llama.cpp for
// names, order and defaults.
//
// Invariants:
//
//  1. Tensors of an open File are in range, aligned, do not overlap and have no holes between them.
//  2. Every dimension is at least 1, and rows of quantised tensors are whole blocks.
//  3. Opening allocates at most four times the size of the file, whatever its header says, and
//     reads at most maxHeader bytes. With several files, that is of each of them.
package gguf

import "github.com/windrow-sim/windrow/engine/checkpoint/internal/tensor"

// The kinds of errors; package checkpoint has them under the same names.
var (
	errFormat      = tensor.ErrFormat
	errUnsupported = tensor.ErrUnsupported
)
