// emulate.h: port.h's words on the host. A block's threads are fibers that run one after the other and change only at barriers, shuffles and
// ballots, so that a kernel is compiled from the very text that the device gets.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) uint4 { unsigned x, y, z, w; };

namespace standin {

struct Place { int thread, block[3], threads, blocks[3]; };
extern Place here; // of the fiber that runs now

// Both return when all threads of the block, or of the warp, have come to the same line. exchange gives the 32 words that the warp's threads
// brought, valid until the thread's second next exchange.
void barrier(int line);
const unsigned *exchange(unsigned word, int line);

// run executes a grid. It returns what a thread did that a device cannot do, or "" when all went well.
std::string run(const int grid[3], int threads, const std::function<void()> &kernel);

// A call of a kernel with its arguments, and those of them that are pointers.
struct Bound {
	std::function<void()> call;
	std::vector<const void *> pointers;
};

template <class A> void note(Bound &bound, A value) {
	if constexpr (std::is_pointer_v<A>)
		bound.pointers.push_back((const void *)value);
}

// bind takes the arguments from where the driver's launch call has them, as it does: each as many bytes as its type has.
template <class... A> Bound bind(void (*kernel)(A...), void **arguments) {
	std::tuple<A...> values;
	int i = 0;
	std::apply([&](auto &...value) { (memcpy(&value, arguments[i++], sizeof value), ...); }, values);
	Bound bound;
	std::apply([&](auto... value) { (note(bound, value), ...); }, values);
	bound.call = [=] { std::apply(kernel, values); };
	return bound;
}

using Binder = std::function<Bound(void **)>;
struct Registered {
	Registered(const char *name, Binder binder);
};

inline float shuffle_xor(float v, int k, int line) {
	unsigned word;
	memcpy(&word, &v, 4);
	const unsigned other = exchange(word, line)[here.thread % 32 ^ k];
	memcpy(&v, &other, 4);
	return v;
}

inline unsigned ballot(bool p, int line) {
	const unsigned *all = exchange(p, line);
	unsigned bits = 0;
	for (int i = 0; i < 32; i++)
		bits |= all[i] << i;
	return bits;
}

} // namespace standin

#define KERNEL(name, ...) \
	static void name(__VA_ARGS__); \
	static standin::Registered registered_##name(#name, [](void **arguments) { return standin::bind(&name, arguments); }); \
	static void name(__VA_ARGS__)
#define DEVICE static inline
#define GLOBAL
#define OWN
#define COMMON
#define PLACE
#define HERE
#define VALUE(type, name) type name
#define SHARED(type, name, n) static type name[n] // one block runs at a time
#define THREAD_X (standin::here.thread)
#define THREADS (standin::here.threads)
#define BLOCK_X (standin::here.block[0])
#define BLOCK_Y (standin::here.block[1])
#define BLOCK_Z (standin::here.block[2])
#define BLOCKS_Y (standin::here.blocks[1])
#define BARRIER() standin::barrier(__LINE__)
#define SHUFFLE_XOR(v, k) standin::shuffle_xor(v, k, __LINE__)
#define BALLOT(p) standin::ballot(p, __LINE__)

DEVICE float bits_to_float(unsigned b) {
	float f;
	memcpy(&f, &b, 4);
	return f;
}

DEVICE unsigned float_to_bits(float f) {
	unsigned b;
	memcpy(&b, &f, 4);
	return b;
}

// As in kernels/ref.
DEVICE float half_to_float(unsigned short h) {
	const unsigned sign = (unsigned)(h & 0x8000) << 16, magnitude = (unsigned)(h & 0x7fff) << 13;
	if ((h & 0x7c00) == 0x7c00)
		return bits_to_float(sign | magnitude | 0x7f800000 | (h & 0x3ff ? 0x400000 : 0));
	return bits_to_float(sign | magnitude) * 0x1p112f;
}

DEVICE unsigned short float_to_half(float f) {
	unsigned b = float_to_bits(f);
	const unsigned short sign = b >> 16 & 0x8000;
	b &= 0x7fffffff;
	if (b > 0x7f800000)
		return sign | 0x7e00;
	if (b >= 0x47800000)
		return sign | 0x7c00;
	if (b >= 0x38800000) {
		b -= (127 - 15) << 23;
		b += (1 << 12) - 1 + (b >> 13 & 1);
		return sign | b >> 13;
	}
	return sign | (unsigned short)float_to_bits(bits_to_float(b) + 0.5f);
}
