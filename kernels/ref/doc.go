// Package ref specifies the arithmetic kernels: plain loops that kernels/cpu and every other fast
// backend must agree with.
//
// The model: weights are IEEE 754 binary16 ("float16") kept as []uint16 bit patterns; activations
// and sums are float32. A kernel here accumulates from left to right with one rounding for each
// product and one for each sum. A fast version may sum in another order and may fuse multiply and
// add. It must agree within the rounding error of doing so, and exactly on NaN and Inf. Where the
// two disagree beyond that, this package is right.
//
// Shapes: matrices are row-major and dense, rows × cols. Slices must have the stated lengths; a
// slice that is too short panics as indexing does, because kernels run inside the innermost loops
// and shapes are checked once, when a model is loaded. Input and output slices must not overlap.
// Nothing here allocates or keeps a slice.
//
// Start with kernels.go; half.go holds the float16 conversions. It is a leaf.
package ref
