// selftest.cc has kernels that do what no kernel may do, for the tests of the stand-in itself.
#define WINDROW_STANDIN
#include "port.h"

// Some threads of the block skip a barrier.
KERNEL(selftest_skips, int *out) {
	if (THREAD_X < WARP)
		BARRIER();
	out[THREAD_X] = 1;
}

// Half a warp takes part in a shuffle.
KERNEL(selftest_splits, float *out) {
	if (THREAD_X % 2 == 0)
		out[THREAD_X] = SHUFFLE_XOR(1.0f, 2);
}

// Each warp goes through another number of shuffles, which is allowed: out is number of the warp + 1 times 32.
KERNEL(selftest_uneven, float *out) {
	float total = 0;
	for (int i = 0; i <= THREAD_X / WARP; i++) {
		float v = 1;
		for (int k = WARP / 2; k > 0; k /= 2)
			v += SHUFFLE_XOR(v, k);
		total += v;
	}
	BARRIER();
	out[THREAD_X] = total;
}

// A pointer into nowhere.
KERNEL(selftest_wild, int *out) { out[THREAD_X] = *(volatile int *)(u64)(16 + THREAD_X); }

// The place behind the last.
KERNEL(selftest_beyond, int *out) {
	const volatile int *next = out + THREADS;
	out[THREAD_X] = *next;
}

// The place before the first.
KERNEL(selftest_before, int *out) { out[THREAD_X - 1] = 1; }
