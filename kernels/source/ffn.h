// ffn.h: the feed-forward rows. Row i of a step is unit units[i] (ascending) and lies at place slots[i] of the row buffers; without lists it is i.
//
//   ffn_values   what each row's down row is multiplied with: a gate and an up dot product, and the activation function
//   ffn_down     out = bias + Σ value·down row, in order of units
//   ffn_join     adds up the parts that ffn_down has left
#pragma once
#include "rows.h"

// Activation functions, numbered as in kernels.go.
enum { RELU, RELU2, FATRELU, DRELU, SILU, GELU, GELU_NEW };

DEVICE float activate(int f, float threshold, float x) {
	switch (f) {
	case RELU2:
		x = x > 0 ? x : 0;
		return x * x;
	case FATRELU:
		return x > threshold ? x : 0;
	case SILU:
		return x / (1 + expf(-x));
	case GELU:
		return x * 0.5f * (1 + erff(x * 0.70710678f)); // 1/√2
	case GELU_NEW:
		return 0.5f * x * (1 + tanhf(0.79788456f * (x + 0.044715f * x * x * x))); // √(2/π)
	}
	return x > 0 ? x : 0;
}

// act[t][i] is row i's value for token t: without a gate f(up·x + bias), with one f(gate·x + bias)·(up·x + bias). It is zero where the token's
// mask (wanted, 64-bit words, by unit; null = all) has not the unit, and where its magnitude is not above cut (0 = none). With every set the up row
// is read even where the gate is zero: what a mask costs then does not depend on the weights. One warp per row; grid (⌈n/warps⌉, tokens).
template <class W>
DEVICE void ffn_values(PLACE GLOBAL float *act, GLOBAL const W *gate, GLOBAL const W *up, GLOBAL const int *slots, GLOBAL const int *units,
                       GLOBAL const u64 *wanted, GLOBAL const float *gate_bias, GLOBAL const float *up_bias, GLOBAL const float *x, int n,
                       int dim, int words, int f, float threshold, float cut, int every) {
	const int i = BLOCK_X * (THREADS / WARP) + THREAD_X / WARP;
	if (i >= n)
		return;
	const int unit = units ? units[i] : i;
	const int place = slots ? slots[i] : i;
	x += (u64)BLOCK_Y * dim;
	float v = 0;
	if (!wanted || wanted[(u64)BLOCK_Y * words + unit / 64] >> (unit % 64) & 1) {
		float g = 1;
		if (gate) {
			g = dot_row(HERE row_at(gate, place, dim), x, dim);
			g = activate(f, threshold, gate_bias ? g + gate_bias[unit] : g);
		}
		if (g != 0 || every) {
			v = dot_row(HERE row_at(up, place, dim), x, dim);
			if (up_bias)
				v += up_bias[unit];
			if (!gate)
				v = activate(f, threshold, v);
			else if (f == DRELU && v < 0)
				v = 0;
			v *= g;
		}
		if (cut > 0 && !(fabsf(v) > cut))
			v = 0;
	}
	if (THREAD_X % WARP == 0)
		act[(u64)BLOCK_Y * n + i] = v;
}

#define FFN_VALUES(name, W) \
	KERNEL(name, GLOBAL float *act, GLOBAL const W *gate, GLOBAL const W *up, GLOBAL const int *slots, GLOBAL const int *units, \
	       GLOBAL const u64 *wanted, GLOBAL const float *gate_bias, GLOBAL const float *up_bias, GLOBAL const float *x, VALUE(int, n), VALUE(int, dim), \
	       VALUE(int, words), VALUE(int, f), VALUE(float, threshold), VALUE(float, cut), VALUE(int, every)) { \
		ffn_values(HERE act, gate, up, slots, units, wanted, gate_bias, up_bias, x, n, dim, words, f, threshold, cut, every); \
	}
FFN_VALUES(ffn_values_f16, f16)
FFN_VALUES(ffn_values_bf16, bf16)
FFN_VALUES(ffn_values_f32, float)
FFN_VALUES(ffn_values_q8, q8)
FFN_VALUES(ffn_values_q4, q4)

// first_at is the number of rows whose unit is below the given one.
DEVICE int first_at(GLOBAL const int *units, int n, int unit) {
	if (!units)
		return unit < n ? unit : n;
	int low = 0, high = n;
	while (low < high) {
		const int middle = (low + high) / 2;
		if (units[middle] < unit)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

// add_row adds v·(a piece of a row) to sum. columns is how much of the piece there is, and whole says that it can be read in one.
template <class W> DEVICE void add_row(OWN float *sum, float v, GLOBAL const W *row, int piece, int columns, bool whole) {
	const int count = Row<W>::count;
	float w[count];
	if (whole)
		Row<W>::decode(w, row, piece);
	else
		for (int c = 0; c < count; c++)
			w[c] = c < columns ? Row<W>::element(row, piece * count + c) : 0;
	for (int c = 0; c < count; c++)
		sum[c] += v * w[c];
}

// parts[t][p] is the sum of value·down row over the rows of part p, in order; bias (may be null) is the first term of part 0. A part is an equal
// share of all units, not of the rows at hand: so rows that are absent or zero change no bit of the sum, and a flash-resident layer equals a
// dense one. Rows of value zero are left out unless every is set, which is faster where most rows have an effect: it waits for no value before
// it asks for a row. Each thread sums a piece of the columns; grid (⌈pieces/threads⌉, parts, tokens).
template <class W>
DEVICE void ffn_down(PLACE GLOBAL float *parts, GLOBAL const W *down, GLOBAL const float *act, GLOBAL const int *slots, GLOBAL const int *units,
                     GLOBAL const float *bias, int n, int dim, int total, int every) {
	const int count = Row<W>::count, part = BLOCK_Y, piece = BLOCK_X * THREADS + THREAD_X;
	if (piece * count >= dim)
		return;
	const int columns = dim - piece * count < count ? dim - piece * count : count;
	const bool whole = columns == count && dim % count == 0 && Row<W>::whole(down);
	const int first = first_at(units, n, (int)((u64)total * part / BLOCKS_Y));
	const int last = first_at(units, n, (int)((u64)total * (part + 1) / BLOCKS_Y));
	act += (u64)BLOCK_Z * n;
	float sum[count];
	for (int c = 0; c < count; c++)
		sum[c] = bias && part == 0 && c < columns ? bias[Row<W>::column(piece, c)] : 0;
	if (every) {
#pragma unroll 4
		for (int i = first; i < last; i++)
			add_row(sum, act[i], row_at(down, slots ? slots[i] : i, dim), piece, columns, whole);
	} else {
#pragma unroll 1
		for (int i = first; i < last; i++)
			if (act[i] != 0)
				add_row(sum, act[i], row_at(down, slots ? slots[i] : i, dim), piece, columns, whole);
	}
	GLOBAL float *to = parts + ((u64)BLOCK_Z * BLOCKS_Y + part) * dim;
	for (int c = 0; c < columns; c++)
		to[Row<W>::column(piece, c)] = sum[c];
}

#define FFN_DOWN(name, W) \
	KERNEL(name, GLOBAL float *parts, GLOBAL const W *down, GLOBAL const float *act, GLOBAL const int *slots, GLOBAL const int *units, \
	       GLOBAL const float *bias, VALUE(int, n), VALUE(int, dim), VALUE(int, total), VALUE(int, every)) { \
		ffn_down(HERE parts, down, act, slots, units, bias, n, dim, total, every); \
	}
FFN_DOWN(ffn_down_f16, f16)
FFN_DOWN(ffn_down_bf16, bf16)
FFN_DOWN(ffn_down_f32, float)
FFN_DOWN(ffn_down_q8, q8)
FFN_DOWN(ffn_down_q4, q4)

// out[t] = Σ parts[t][p], in order of p. One thread per column; grid (⌈dim/threads⌉, tokens).
KERNEL(ffn_join, GLOBAL float *out, GLOBAL const float *parts, VALUE(int, dim), VALUE(int, count)) {
	const int column = BLOCK_X * THREADS + THREAD_X;
	if (column >= dim)
		return;
	parts += (u64)BLOCK_Y * count * dim + column;
	float sum = parts[0];
	for (int p = 1; p < count; p++)
		sum += parts[(u64)p * dim];
	out[(u64)BLOCK_Y * dim + column] = sum;
}
