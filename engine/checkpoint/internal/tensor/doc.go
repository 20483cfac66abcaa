// Package tensor is the common part of the checkpoint formats: the description of a tensor, the
// kinds of errors, the file, and a reader that decodes on the way. It is a leaf; package checkpoint
// re-exports its names.
//
// Start with Info and DType (tensor.go), then Raw (raw.go) and Blocks (blocks.go).
//
// Invariants:
//
//  1. In any format, a reader of a tensor gives its elements in row-major order, little-endian, of
//     type Info.DType, Info.Size bytes.
//  2. Reading a piece needs memory for that piece at most, never for the tensor.
package tensor
