// rows.h: what the kernels do with a row of weights, whatever its format, and sums over a warp and over a block.
//
// A warp takes one row at a time and reads it in pieces of 16 bytes per thread where row and vector are so aligned: that is what keeps enough
// bytes on their way to saturate memory. Everything is summed in a fixed order: the same input gives the same bits.
#pragma once
#include "port.h"

// Weights, as kernels/ref lays them out. A brain float is the upper half of a float. The quantised ones come in groups of 32 with a scale:
// q8 as signed bytes, q4 with weight i in the lower half of byte i and weight i + 16 in the upper one, 8 above its value. They are read by 16 bits, which is
// all that their places in a row are aligned to.
struct f16 { u16 bits; };
struct bf16 { u16 bits; };
struct q8 { u16 scale, pairs[16]; };
struct q4 { u16 scale, pairs[8]; };

DEVICE float widen(f16 w) { return half_to_float(w.bits); }
DEVICE float widen(bf16 w) { return bits_to_float((u32)w.bits << 16); }
DEVICE float widen(float w) { return w; }

DEVICE void narrow(GLOBAL f16 *to, float v) { to->bits = float_to_half(v); }
DEVICE void narrow(GLOBAL float *to, float v) { *to = v; }

template <class P> DEVICE bool aligned16(GLOBAL const P *p) { return ((u64)p & 15) == 0; }

// Row<W> says how a row of a format is read. A thread takes a piece of it at a time: count weights, which are 16 bytes or a quarter of a group. decode
// gives those of a piece, column(piece, c) where in the row the c-th is; element is any weight by itself.
template <class W> struct Row { // 16-bit formats
	enum { group = 1, count = 8 };
	DEVICE int column(int piece, int c) { return piece * count + c; }
	DEVICE bool whole(GLOBAL const W *row) { return aligned16(row); }
	DEVICE float element(GLOBAL const W *row, int i) { return widen(row[i]); }
	DEVICE void decode(OWN float *to, GLOBAL const W *row, int piece) {
		const uint4 word = ((GLOBAL const uint4 *)row)[piece];
		const u32 pairs[4] = {word.x, word.y, word.z, word.w};
		for (int i = 0; i < 4; i++) {
			W low, high;
			low.bits = (u16)pairs[i], high.bits = (u16)(pairs[i] >> 16);
			to[2 * i] = widen(low), to[2 * i + 1] = widen(high);
		}
	}
};

template <> struct Row<float> {
	enum { group = 1, count = 4 };
	DEVICE int column(int piece, int c) { return piece * count + c; }
	DEVICE bool whole(GLOBAL const float *row) { return aligned16(row); }
	DEVICE float element(GLOBAL const float *row, int i) { return row[i]; }
	DEVICE void decode(OWN float *to, GLOBAL const float *row, int piece) {
		const float4 word = ((GLOBAL const float4 *)row)[piece];
		to[0] = word.x, to[1] = word.y, to[2] = word.z, to[3] = word.w;
	}
};

template <> struct Row<q8> {
	enum { group = 32, count = 8 };
	DEVICE int column(int piece, int c) { return piece * count + c; }
	DEVICE bool whole(GLOBAL const q8 *) { return true; }
	DEVICE float element(GLOBAL const q8 *row, int i) {
		GLOBAL const q8 *g = row + i / group;
		return half_to_float(g->scale) * (float)(signed char)(g->pairs[i % group / 2] >> i % 2 * 8);
	}
	DEVICE void decode(OWN float *to, GLOBAL const q8 *row, int piece) {
		GLOBAL const q8 *g = row + piece / 4;
		const float scale = half_to_float(g->scale);
		for (int i = 0; i < 4; i++) {
			const u16 pair = g->pairs[piece % 4 * 4 + i];
			to[2 * i] = scale * (float)(signed char)pair, to[2 * i + 1] = scale * (float)(signed char)(pair >> 8);
		}
	}
};

template <> struct Row<q4> {
	enum { group = 32, count = 8 };
	// Four bytes of a group hold 4 weights of its first half and 4 of its second.
	DEVICE int column(int piece, int c) { return piece / 4 * group + piece % 4 * 4 + c % 4 + c / 4 * 16; }
	DEVICE bool whole(GLOBAL const q4 *) { return true; }
	DEVICE float element(GLOBAL const q4 *row, int i) {
		GLOBAL const q4 *g = row + i / group;
		const int byte = i % 16, half = i % group / 16;
		return half_to_float(g->scale) * (float)((g->pairs[byte / 2] >> (byte % 2 * 8 + half * 4) & 15) - 8);
	}
	DEVICE void decode(OWN float *to, GLOBAL const q4 *row, int piece) {
		GLOBAL const q4 *g = row + piece / 4;
		const float scale = half_to_float(g->scale);
		for (int i = 0; i < 4; i++) {
			const int byte = g->pairs[piece % 4 * 2 + i / 2] >> i % 2 * 8 & 255;
			to[i] = scale * (float)((byte & 15) - 8), to[i + 4] = scale * (float)((byte >> 4) - 8);
		}
	}
};

// row_at is row r of a matrix with cols columns.
template <class W> DEVICE GLOBAL const W *row_at(GLOBAL const W *w, int r, int cols) { return w + (u64)r * (cols / Row<W>::group); }

// warp_sum is the sum of v over the warp, the same bits in every thread.
DEVICE float warp_sum(float v) {
	for (int k = WARP / 2; k > 0; k /= 2)
		v += SHUFFLE_XOR(v, k);
	return v;
}

DEVICE float warp_max(float v) {
	for (int k = WARP / 2; k > 0; k /= 2) {
		const float other = SHUFFLE_XOR(v, k);
		v = v > other ? v : other;
	}
	return v;
}

// dot_row is the dot product of n weights with x, computed by the 32 threads of a warp and known to all of them.
template <class W> DEVICE float dot_row(PLACE GLOBAL const W *row, GLOBAL const float *x, int n) {
	const int lane = THREAD_X % WARP, count = Row<W>::count;
	float sum = 0;
	int done = 0;
	if (Row<W>::whole(row) && aligned16(x)) {
		const int pieces = n / count;
#pragma unroll 4
		for (int piece = lane; piece < pieces; piece += WARP) {
			float w[count];
			Row<W>::decode(w, row, piece);
			for (int c = 0; c < count; c += 4) {
				const float4 v = *(GLOBAL const float4 *)(x + Row<W>::column(piece, c));
				sum += w[c] * v.x + w[c + 1] * v.y + w[c + 2] * v.z + w[c + 3] * v.w;
			}
		}
		done = pieces * count;
	}
#pragma unroll 1
	for (int i = done + lane; i < n; i += WARP)
		sum += Row<W>::element(row, i) * x[i];
	return warp_sum(sum);
}

// Blocks have at most 32 warps, so that one warp can add up what the warps have found.
#define MOST_WARPS 32

// block_sum is the sum of v over the block, the same bits in every thread. room has MOST_WARPS places and is free again at once.
DEVICE float block_sum(PLACE float v, COMMON float *room) {
	const int lane = THREAD_X % WARP, warp = THREAD_X / WARP, warps = THREADS / WARP;
	v = warp_sum(v);
	if (lane == 0)
		room[warp] = v;
	BARRIER();
	v = warp_sum(lane < warps ? room[lane] : 0);
	BARRIER();
	return v;
}
