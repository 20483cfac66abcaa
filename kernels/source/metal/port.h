// port.h: the words of kernels/cuda/source/port.h in the Metal Shading Language, version 3. They are explained there; the kernels are the same text.
//
// A kernel's parameters become the members of a struct, and its body a member function of it: all of them, pointers as well, come as one block
// of constant memory, as CUDA's do. So an optional pointer can be null, and an address with an offset is an address: a buffer that is bound by itself
// has neither. It needs devices with argument buffers of tier 2, which all Apple silicon is.
//
// Threadgroup memory can be declared in an entry point only, and that is not where the body is: SHARED takes it from what the launch has reserved.
#pragma once
#include <metal_stdlib>
using namespace metal;

typedef ushort u16;
typedef uint u32;
typedef ulong u64;

// Where a thread is, and what of its threadgroup's memory has not been given away. Its number is made of those of its SIMD group and its place in that,
// as the language does not say that groups follow from the position.
struct Place {
	uint number;
	uint3 size, block, blocks;
	threadgroup char *room;

	threadgroup char *take(uint bytes) {
		threadgroup char *taken = room;
		room += (bytes + 15) / 16 * 16;
		return taken;
	}
};

// No launch has more threads in a group than KERNEL says, and the compiler may not make a kernel that so many are too much for.
#define KERNEL(name, ...) \
	struct name##_arguments { \
		MEMBERS(__VA_ARGS__) \
		void run(Place here); \
	}; \
	[[max_total_threads_per_threadgroup(512)]] kernel void name(constant name##_arguments &arguments [[buffer(0)]], threadgroup char *room [[threadgroup(0)]], \
	                 uint lane [[thread_index_in_simdgroup]], uint group [[simdgroup_index_in_threadgroup]], uint3 size [[threads_per_threadgroup]], \
	                 uint3 block [[threadgroup_position_in_grid]], uint3 blocks [[threadgroups_per_grid]]) { \
		name##_arguments own = arguments; \
		const Place here = {group * WARP + lane, size, block, blocks, room}; \
		own.run(here); \
	} \
	inline void name##_arguments::run(Place here)

// MEMBERS(a, b) is a; b; for up to 16 parameters.
#define MEMBERS(...) PICK(__VA_ARGS__, M16, M15, M14, M13, M12, M11, M10, M9, M8, M7, M6, M5, M4, M3, M2, M1, )(__VA_ARGS__)
#define PICK(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, picked, ...) picked
#define M1(a) a;
#define M2(a, ...) a; M1(__VA_ARGS__)
#define M3(a, ...) a; M2(__VA_ARGS__)
#define M4(a, ...) a; M3(__VA_ARGS__)
#define M5(a, ...) a; M4(__VA_ARGS__)
#define M6(a, ...) a; M5(__VA_ARGS__)
#define M7(a, ...) a; M6(__VA_ARGS__)
#define M8(a, ...) a; M7(__VA_ARGS__)
#define M9(a, ...) a; M8(__VA_ARGS__)
#define M10(a, ...) a; M9(__VA_ARGS__)
#define M11(a, ...) a; M10(__VA_ARGS__)
#define M12(a, ...) a; M11(__VA_ARGS__)
#define M13(a, ...) a; M12(__VA_ARGS__)
#define M14(a, ...) a; M13(__VA_ARGS__)
#define M15(a, ...) a; M14(__VA_ARGS__)
#define M16(a, ...) a; M15(__VA_ARGS__)

#define DEVICE static inline
#define GLOBAL device
#define OWN thread
#define COMMON threadgroup
#define PLACE Place here,
#define HERE here,
#define VALUE(type, name) type name
#define SHARED(type, name, n) threadgroup type *name = (threadgroup type *)here.take((n) * sizeof(type))
#define THREAD_X ((int)here.number)
#define THREADS ((int)here.size.x)
#define BLOCK_X ((int)here.block.x)
#define BLOCK_Y ((int)here.block.y)
#define BLOCK_Z ((int)here.block.z)
#define BLOCKS_Y ((int)here.blocks.y)
#define BARRIER() threadgroup_barrier(mem_flags::mem_threadgroup)
#define SHUFFLE_XOR(v, k) simd_shuffle_xor(v, (ushort)(k))
#define BALLOT(p) ((u32)(simd_vote::vote_t)simd_ballot(p))
#define WARP 32 // the driver refuses a device with others

// precise: the compiler may not trade digits for speed here.
#define expf(x) precise::exp(x)
#define sqrtf(x) precise::sqrt(x)
#define tanhf(x) precise::tanh(x)
#define fabsf(x) fabs(x)
#define erff(x) error_function(x)

// There is no error function here. This is Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26: off by 1.5e-7 at most, and by the
// roundings of float.
DEVICE float error_function(float x) {
	const float t = 1 / (1 + 0.3275911f * fabs(x));
	const float sum = t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
	const float y = 1 - sum * precise::exp(-x * x);
	return x < 0 ? -y : y;
}

DEVICE float half_to_float(u16 h) { return as_type<half>(h); }
DEVICE u16 float_to_half(float f) { return as_type<u16>((half)f); }
DEVICE float bits_to_float(u32 b) { return as_type<float>(b); }

// The kernels call some of their numbers half, which is a type here.
#define half half_count
