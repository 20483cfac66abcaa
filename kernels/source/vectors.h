// vectors.h: norms, sums and embeddings: what is done to whole activations between the matrices.
#pragma once
#include "rows.h"

// y[r] = (x[r] − mean)/√(variance + ε)·w + b. Rows are tokens, or the heads of all tokens. y may be x. One block per row; grid (rows).
KERNEL(layer_norm, GLOBAL float *y, GLOBAL const float *x, GLOBAL const float *w, GLOBAL const float *b, VALUE(int, dim), VALUE(float, epsilon)) {
	SHARED(float, room, MOST_WARPS);
	x += (u64)BLOCK_X * dim, y += (u64)BLOCK_X * dim;
	float sum = 0, square = 0;
	for (int i = THREAD_X; i < dim; i += THREADS)
		sum += x[i];
	const float mean = block_sum(HERE sum, room) / dim;
	for (int i = THREAD_X; i < dim; i += THREADS)
		square += (x[i] - mean) * (x[i] - mean);
	const float scale = 1 / sqrtf(block_sum(HERE square, room) / dim + epsilon);
	for (int i = THREAD_X; i < dim; i += THREADS)
		y[i] = (x[i] - mean) * scale * w[i] + b[i];
}

// y[r] = x[r]/√(mean of squares + ε)·w. y may be x. One block per row; grid (rows).
KERNEL(rms_norm, GLOBAL float *y, GLOBAL const float *x, GLOBAL const float *w, VALUE(int, dim), VALUE(float, epsilon)) {
	SHARED(float, room, MOST_WARPS);
	x += (u64)BLOCK_X * dim, y += (u64)BLOCK_X * dim;
	float square = 0;
	for (int i = THREAD_X; i < dim; i += THREADS)
		square += x[i] * x[i];
	const float scale = 1 / sqrtf(block_sum(HERE square, room) / dim + epsilon);
	for (int i = THREAD_X; i < dim; i += THREADS)
		y[i] = x[i] * scale * w[i];
}

// y += x. Grid (⌈n/threads⌉).
KERNEL(add, GLOBAL float *y, GLOBAL const float *x, VALUE(int, n)) {
	const int i = BLOCK_X * THREADS + THREAD_X;
	if (i < n)
		y[i] += x[i];
}

// Bounds numbers softly: x = cap·tanh(x/cap). Grid (⌈n/threads⌉).
KERNEL(soft_cap, GLOBAL float *x, VALUE(float, cap), VALUE(int, n)) {
	const int i = BLOCK_X * THREADS + THREAD_X;
	if (i < n)
		x[i] = cap * tanhf(x[i] / cap);
}

// x[t] = row ids[t] + offset of the table, times scale, added to x[t] where onto is set. Grid (⌈dim/threads⌉, tokens).
template <class W>
DEVICE void embed(PLACE GLOBAL float *x, GLOBAL const W *table, GLOBAL const int *ids, int offset, int dim, int onto, float scale) {
	const int i = BLOCK_X * THREADS + THREAD_X;
	if (i >= dim)
		return;
	const float v = Row<W>::element(row_at(table, ids[BLOCK_Y] + offset, dim), i) * scale;
	GLOBAL float *to = x + (u64)BLOCK_Y * dim + i;
	*to = onto ? *to + v : v;
}

#define EMBED(name, W) \
	KERNEL(name, GLOBAL float *x, GLOBAL const W *table, GLOBAL const int *ids, VALUE(int, offset), VALUE(int, dim), VALUE(int, onto), \
	       VALUE(float, scale)) { \
		embed(HERE x, table, ids, offset, dim, onto, scale); \
	}
EMBED(embed_f16, f16)
EMBED(embed_bf16, bf16)
EMBED(embed_f32, float)
EMBED(embed_q8, q8)
EMBED(embed_q4, q4)
