// Package cpu is kernels/ref made fast: the same functions with AVX2, FMA and F16C instructions where the processor has them,
// and a portable version everywhere else, plus the worker pool that spreads them over cores.
//
// The model: a mat-vec reads each weight once, so it can be no faster than memory delivers weights (StreamRead measures that).
// The kernels widen float16 in registers, keep 8 independent float32 sums and stay out of memory's way; for rows that lie
// scattered, DotNext and AxpyNext fetch the next row while they work on this one.
//
// Invariants:
//
//  1. Dot, DotF32 and StreamRead depend only on the values and the length, not on addresses or on what else is computed.
//  2. MatVec equals Dot on each row bit for bit, DotNext equals Dot, AxpyNext equals Axpy, and Pool.MatVec equals MatVec for every
//     number of workers.
//  3. Axpy and AxpyF32 work element by element: cut into pieces they give the same bits.
//  4. NaN and Inf come out where they do in kernels/ref.
//  5. Nothing allocates, and slices are never kept.
//
// Bits may differ between processors with and without AVX2: Features tells them apart. Shapes, aliasing and short slices are as
// in kernels/ref.
//
// Start with kernels.go (contracts and dispatch) and kernels_generic.go (what runs without assembly). kernels_amd64.s is generated
// by tools/avo. The build tag purego leaves the assembly out. pool.go is independent of the rest.
package cpu
