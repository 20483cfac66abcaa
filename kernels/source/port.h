// port.h: the words that the kernels are written in, for each machine that runs them. A kernel uses these and plain C++ only, so that the
// same text is compiled by NVRTC for NVIDIA devices and by the host's compiler for the stand-in of the tests (../standin).
//
//   KERNEL(name, ...)        an entry point: each thread of each block runs it once
//   DEVICE                   a function that kernels call
//   GLOBAL                   the address space of a pointer into device memory
//   OWN, COMMON              the same of a pointer into a thread's own memory, or its block's
//   VALUE(type, name)        a parameter of a kernel that is not a pointer
//   SHARED(type, name, n)    an array that the threads of a block share
//   THREAD_X, THREADS        number of this thread in its block, threads per block
//   BLOCK_X, BLOCK_Y, BLOCK_Z, BLOCKS_Y   number of this block in the grid, and the grid's height
//   BARRIER()                no thread of a block goes on before all have come here
//   SHUFFLE_XOR(v, k)        the v of the thread of this warp whose number differs in the bits of k; all 32 threads must come here
//   BALLOT(p)                bit i is the truth of p in thread i of this warp; all 32 threads must come here
//   PLACE, HERE              the first parameter of a function that asks for the numbers above, and what is passed for it: nothing where these are
//                            known everywhere. No comma follows
//   half_to_float, float_to_half, bits_to_float
#pragma once

#if defined(WINDROW_STANDIN)

#include "emulate.h"

#else // CUDA

#define KERNEL(name, ...) extern "C" __global__ void name(__VA_ARGS__)
#define DEVICE static __device__ __forceinline__
#define GLOBAL
#define OWN
#define COMMON
#define PLACE
#define HERE
#define VALUE(type, name) type name
#define SHARED(type, name, n) __shared__ type name[n]
#define THREAD_X ((int)threadIdx.x)
#define THREADS ((int)blockDim.x)
#define BLOCK_X ((int)blockIdx.x)
#define BLOCK_Y ((int)blockIdx.y)
#define BLOCK_Z ((int)blockIdx.z)
#define BLOCKS_Y ((int)gridDim.y)
#define BARRIER() __syncthreads()
#define SHUFFLE_XOR(v, k) __shfl_xor_sync(0xffffffffu, v, k)
#define BALLOT(p) __ballot_sync(0xffffffffu, p)

// The header cuda_fp16.h says the same, but the compiler's wheel comes without it.
DEVICE float half_to_float(unsigned short h) {
	float f;
	asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
	return f;
}

DEVICE unsigned short float_to_half(float f) {
	unsigned short h;
	asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
	return h;
}

DEVICE float bits_to_float(unsigned b) { return __uint_as_float(b); }

#endif

#define WARP 32

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
