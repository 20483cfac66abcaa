// masks.h: from scores to masks and lists. A low-rank predictor is two matvecs, the first with relu set, and mask_at_least.
#pragma once
#include "rows.h"

// Bit i of mask[t] says that scores[t][i] is at least the threshold, or with nonzero set, that it is not zero. Bits beyond n are zero. A mask is words
// of 32 bits, an even number of them, so that the host can read 64-bit words. One warp per 32 scores; grid (⌈words/warps⌉, tokens).
KERNEL(mask_at_least, GLOBAL u32 *mask, GLOBAL const float *scores, VALUE(int, n), VALUE(int, words), VALUE(float, threshold), VALUE(int, nonzero)) {
	const int word = BLOCK_X * (THREADS / WARP) + THREAD_X / WARP;
	if (word >= words)
		return;
	const int i = word * WARP + THREAD_X % WARP;
	const float score = i < n ? scores[(u64)BLOCK_Y * n + i] : 0;
	const u32 bits = BALLOT(i < n && (nonzero ? score != 0 : score >= threshold));
	if (THREAD_X % WARP == 0)
		mask[(u64)BLOCK_Y * words + word] = bits;
}

// Threads of the one block of mask_list.
#define LIST_THREADS 256

// list gets the numbers of the bits of a mask in ascending order and count how many there are. One block.
KERNEL(mask_list, GLOBAL int *list, GLOBAL int *count, GLOBAL const u32 *mask, VALUE(int, words)) {
	SHARED(int, before, LIST_THREADS);
	const int share = (words + LIST_THREADS - 1) / LIST_THREADS;
	const int first = THREAD_X * share < words ? THREAD_X * share : words;
	const int last = first + share < words ? first + share : words;
	int own = 0;
	for (int i = first; i < last; i++)
		for (u32 bits = mask[i]; bits != 0; bits &= bits - 1)
			own++;
	before[THREAD_X] = own;
	BARRIER();
	// After the round of step s, before[i] is the sum over the 2·s threads up to and with i.
	for (int s = 1; s < LIST_THREADS; s *= 2) {
		const int more = THREAD_X >= s ? before[THREAD_X - s] : 0;
		BARRIER();
		before[THREAD_X] += more;
		BARRIER();
	}
	int at = before[THREAD_X] - own;
	for (int i = first; i < last; i++)
		for (int b = 0; b < 32; b++)
			if (mask[i] >> b & 1)
				list[at++] = i * 32 + b;
	if (THREAD_X == LIST_THREADS - 1)
		*count = before[THREAD_X];
}
