// Package cpu has the functions of kernels/ref in fast versions: with AVX2, FMA and F16C
// instructions where the processor has them, and portable ones elsewhere. Its worker pool spreads
// them over cores.
//
// The model: a mat-vec reads each weight once, so memory bandwidth bounds its speed (StreamRead
// measures the bandwidth). The kernels widen weights in registers and keep several independent
// float32 sums. DotNext, AxpyNext and the like for other formats prefetch the next row while they
// work on the present one, because scattered rows defeat the hardware's prefetcher. Activations are
// float32. Quantised weights multiply them directly; the scale multiplies each group's sum.
//
// Invariants:
//
//  1. Dot, DotF32 and StreamRead depend only on the values and the length, not on addresses or on
//     other work.
//  2. MatVec equals Dot on each row bit for bit, DotNext equals Dot, AxpyNext equals Axpy, and
//     Pool.MatVec equals MatVec for every number of workers. MatVecFormat equals DotFormat,
//     whatever the next row.
//  3. Axpy, AxpyF32 and AxpyFormat work element by element: on parts of a row (whole groups) they
//     give the same bits. AxpyFormat gives the bits of AxpyF32 on the decoded weights.
//  4. NaN and Inf appear where they do in kernels/ref.
//  5. Nothing allocates or keeps a slice.
//
// Bits may differ between processors with and without AVX2: Features tells them apart. Shapes,
// aliasing and short slices are as in kernels/ref.
//
// Start with kernels.go and format.go (contracts and dispatch), then kernels_generic.go and
// format_generic.go (the versions without assembly). tools/avo generates kernels_amd64.s. The build
// tag purego leaves the assembly out. pool.go is independent of the rest.
package cpu
