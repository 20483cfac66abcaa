// matvec.h: dense matrix times vector, the kernel of projections, predictors and the output head.
#pragma once
#include "rows.h"

// y[t][r] = W[r]·x[t] + bias[r], through max(·, 0) where relu is set. One warp per row; grid (⌈rows/warps⌉, tokens). bias may be null.
template <class W>
DEVICE void mat_vec(PLACE GLOBAL float *y, GLOBAL const W *w, GLOBAL const float *x, GLOBAL const float *bias, int rows, int cols, int relu) {
	const int row = BLOCK_X * (THREADS / WARP) + THREAD_X / WARP;
	if (row >= rows) // the whole warp
		return;
	float v = dot_row(HERE row_at(w, row, cols), x + (u64)BLOCK_Y * cols, cols);
	if (bias)
		v += bias[row];
	if (relu && v < 0)
		v = 0;
	if (THREAD_X % WARP == 0)
		y[(u64)BLOCK_Y * rows + row] = v;
}

#define MAT_VEC(name, W) \
	KERNEL(name, GLOBAL float *y, GLOBAL const W *w, GLOBAL const float *x, GLOBAL const float *bias, VALUE(int, rows), VALUE(int, cols), VALUE(int, relu)) { \
		mat_vec(HERE y, w, x, bias, rows, cols, relu); \
	}
MAT_VEC(matvec_f16, f16)
MAT_VEC(matvec_bf16, bf16)
MAT_VEC(matvec_f32, float)
MAT_VEC(matvec_q8, q8)
MAT_VEC(matvec_q4, q4)
