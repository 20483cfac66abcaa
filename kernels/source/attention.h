// attention.h: rotary positions, the cache of keys and values, and attention for decoding.
//
// Keys and values of a layer are (sequence, position, kv_head, dim) with a stride between sequences; position and sequence of each token of a
// step are in arrays on the device.
#pragma once
#include "rows.h"

// Turns the first 2·half elements of each head of x (token, head, dim): element i and i + half are a point that is turned by the angle of
// position and i, whose cosine and sine are turns[position][i]. Grid (⌈heads·half/threads⌉, tokens).
KERNEL(rotary, GLOBAL float *x, GLOBAL const float2 *turns, GLOBAL const int *positions, VALUE(int, heads), VALUE(int, dim), VALUE(int, half)) {
	const int pair = BLOCK_X * THREADS + THREAD_X;
	if (pair >= heads * half)
		return;
	const int i = pair % half;
	const float2 turn = turns[(u64)positions[BLOCK_Y] * half + i];
	GLOBAL float *head = x + ((u64)BLOCK_Y * heads + pair / half) * dim;
	const float a = head[i], b = head[i + half];
	head[i] = a * turn.x - b * turn.y;
	head[i + half] = b * turn.x + a * turn.y;
}

// Stores the keys and values of each token (token, width) at its position of its sequence. Grid (⌈width/threads⌉, tokens).
template <class K>
DEVICE void kv_store(PLACE GLOBAL K *keys, GLOBAL K *vals, GLOBAL const float *k, GLOBAL const float *v, GLOBAL const int *sequences,
                     GLOBAL const int *positions, int width, u64 stride) {
	const int i = BLOCK_X * THREADS + THREAD_X;
	if (i >= width)
		return;
	const u64 from = (u64)BLOCK_Y * width + i, to = sequences[BLOCK_Y] * stride + (u64)positions[BLOCK_Y] * width + i;
	narrow(keys + to, k[from]);
	narrow(vals + to, v[from]);
}

#define KV_STORE(name, K) \
	KERNEL(name, GLOBAL K *keys, GLOBAL K *vals, GLOBAL const float *k, GLOBAL const float *v, GLOBAL const int *sequences, \
	       GLOBAL const int *positions, VALUE(int, width), VALUE(u64, stride)) { \
		kv_store(HERE keys, vals, k, v, sequences, positions, width, stride); \
	}
KV_STORE(kv_store_f16, f16)
KV_STORE(kv_store_f32, float)

// A block looks at this many positions, so that one token's attention over a long context is spread over the device.
#define SPAN 128

// What a block has found: the largest score, the sum of exp(score − largest), and the values weighted so, dim of them.
#define FOUND 2

// Scores are bounded softly by cap (0 = not).
//
// found[t][head][part] covers positions first + part·SPAN … of the token's own position and those before it, where first leaves window positions
// (0 = all). Heads of queries share the kv_heads evenly. A part beyond the last position is left with sum zero. Grid (heads, parts, tokens).
template <class K>
DEVICE void attend(PLACE GLOBAL float *found, GLOBAL const float *q, GLOBAL const K *keys, GLOBAL const K *vals, GLOBAL const int *sequences,
                   GLOBAL const int *positions, int heads, int kv_heads, int dim, u64 stride, int window, float scale, float cap, COMMON float *scores,
                   COMMON float *room) {
	const int head = BLOCK_X, part = BLOCK_Y, token = BLOCK_Z, warp = THREAD_X / WARP, warps = THREADS / WARP;
	const int position = positions[token];
	const int first = (window > 0 && position >= window ? position - window + 1 : 0) + part * SPAN;
	const int count = position + 1 - first < SPAN ? position + 1 - first : SPAN;
	found += (((u64)token * heads + head) * BLOCKS_Y + part) * (dim + FOUND);
	if (count <= 0) { // the whole block
		if (THREAD_X == 0)
			found[0] = 0, found[1] = 0;
		return;
	}
	const int width = kv_heads * dim;
	const u64 base = sequences[token] * stride + (u64)first * width + head / (heads / kv_heads) * dim;
	q += ((u64)token * heads + head) * dim;

	for (int p = warp; p < count; p += warps) {
		float score = dot_row(HERE keys + base + (u64)p * width, q, dim) * scale;
		if (cap > 0)
			score = cap * tanhf(score / cap);
		if (THREAD_X % WARP == 0)
			scores[p] = score;
	}
	BARRIER();
	float top = scores[0];
	for (int p = 1; p < count; p++)
		top = scores[p] > top ? scores[p] : top;
	BARRIER();
	float sum = 0;
	for (int p = THREAD_X; p < count; p += THREADS)
		sum += scores[p] = expf(scores[p] - top);
	sum = block_sum(HERE sum, room);

	for (int c = THREAD_X; c < dim; c += THREADS) {
		GLOBAL const K *v = vals + base + c;
		float value = 0;
#pragma unroll 8
		for (int p = 0; p < count; p++)
			value += scores[p] * widen(v[(u64)p * width]);
		found[FOUND + c] = value;
	}
	if (THREAD_X == 0)
		found[0] = top, found[1] = sum;
}

#define ATTEND(name, K) \
	KERNEL(name, GLOBAL float *found, GLOBAL const float *q, GLOBAL const K *keys, GLOBAL const K *vals, GLOBAL const int *sequences, \
	       GLOBAL const int *positions, VALUE(int, heads), VALUE(int, kv_heads), VALUE(int, dim), VALUE(u64, stride), VALUE(int, window), VALUE(float, scale), \
	       VALUE(float, cap)) { \
		SHARED(float, scores, SPAN); \
		SHARED(float, room, MOST_WARPS); \
		attend(HERE found, q, keys, vals, sequences, positions, heads, kv_heads, dim, stride, window, scale, cap, scores, room); \
	}
ATTEND(attend_f16, f16)
ATTEND(attend_f32, float)

// out[t][head] is the softmax-weighted mean of the values: what the parts found, each corrected to the largest score of all. Grid (heads, tokens).
KERNEL(attend_join, GLOBAL float *out, GLOBAL const float *found, VALUE(int, heads), VALUE(int, dim), VALUE(int, parts)) {
	const int size = dim + FOUND;
	const u64 row = (u64)BLOCK_Y * heads + BLOCK_X;
	found += row * parts * size;
	float top = found[0];
	for (int p = 1; p < parts; p++)
		if (found[p * size + 1] > 0 && found[p * size] > top)
			top = found[p * size];
	float total = 0;
	for (int p = 0; p < parts; p++)
		if (found[p * size + 1] > 0)
			total += found[p * size + 1] * expf(found[p * size] - top);
	for (int c = THREAD_X; c < dim; c += THREADS) {
		float value = 0;
		for (int p = 0; p < parts; p++)
			if (found[p * size + 1] > 0)
				value += found[p * size + FOUND + c] * expf(found[p * size] - top);
		out[row * dim + c] = value / total;
	}
}
