// Package tensor holds what the formats of checkpoints have in common: the description of a tensor,
// the kinds of errors, the file below, and a reader that decodes on the way. It is a leaf;
// checkpoint shows its names to everyone else.
//
// Start with Info and DType (tensor.go), then Raw (raw.go) and Blocks (blocks.go).
//
// Invariants:
//
//  1. Whatever the format, the bytes that a reader of a tensor gives are its elements in row-major
//     order, little-endian, as Info.DType says, Info.Size of them.
//  2. Reading a piece needs memory for that piece at most, never for the tensor.
package tensor
