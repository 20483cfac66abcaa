// shim.cc makes the kernels of Metal known to the stand-in for a CUDA device, whose driver then launches them, and to shim_run. ROOM is the size of a
// threadgroup's memory.
#include "kernels.metal"
#undef kernel
#undef thread
#include <map>

namespace {

alignas(16) char room[ROOM + 16]; // one block runs at a time; behind ROOM is a fence
const char fence = 0x55;

template <class A> using Entry = void (*)(const A &, char *, uint, uint, uint3, uint3, uint3);

// A Packer takes arguments as a kernel's struct has them, and gives what each thread does. There is nothing to do for a struct of another size.
using Packer = std::function<std::function<void()>(const void *, size_t)>;

std::map<std::string, Packer> &kernels() {
	static std::map<std::string, Packer> all;
	return all;
}

template <class A> Packer packer(Entry<A> entry) {
	return [=](const void *bytes, size_t size) -> std::function<void()> {
		A arguments;
		if (size != sizeof arguments)
			return nullptr;
		memcpy(&arguments, bytes, size);
		return [=] {
			const standin::Place p = standin::here;
			memset(room + ROOM, fence, sizeof room - ROOM);
			// SIMD groups are counted from behind, for who takes them to follow from the position.
			entry(arguments, room, p.thread % 32, (p.threads - 1 - p.thread) / 32, {(uint)p.threads, 1, 1},
			      {(uint)p.block[0], (uint)p.block[1], (uint)p.block[2]}, {(uint)p.blocks[0], (uint)p.blocks[1], (uint)p.blocks[2]});
			for (size_t i = ROOM; i < sizeof room; i++)
				if (room[i] != fence)
					abort(); // more than ROOM is in use
		};
	};
}

// binder packs the arguments of a launch by CUDA's driver. sizes are theirs in bytes.
standin::Binder binder(const char *name, std::vector<size_t> sizes) {
	return [=](void **arguments) {
		std::vector<char> bytes;
		for (size_t i = 0; i < sizes.size(); i++) {
			bytes.resize((bytes.size() + sizes[i] - 1) / sizes[i] * sizes[i]);
			bytes.insert(bytes.end(), (char *)arguments[i], (char *)arguments[i] + sizes[i]);
		}
		bytes.resize((bytes.size() + 7) / 8 * 8);
		standin::Bound bound;
		bound.call = kernels()[name](bytes.data(), bytes.size());
		if (!bound.call)
			abort(); // the language lays out the struct in another way
		return bound;
	};
}

struct Registered {
	standin::Registered with_cuda;
	template <class A>
	Registered(const char *name, Entry<A> entry, std::vector<size_t> sizes) : with_cuda(name, binder(name, sizes)) { kernels()[name] = packer(entry); }
};

} // namespace

#define REGISTER(name, ...) static Registered registered_##name(#name, &name, {__VA_ARGS__});
#include "registered.h"

// shim_run runs a kernel whose arguments are packed already. What it did wrong is in trouble, a text of at most size bytes.
extern "C" __attribute__((visibility("default"))) void shim_run(const char *name, const void *arguments, int bytes, const int *grid, int threads, char *trouble, int size) {
	std::string text = "there is no such kernel";
	const auto it = kernels().find(name);
	if (it != kernels().end()) {
		const std::function<void()> call = it->second(arguments, bytes);
		text = call ? standin::run(grid, threads, call) : "its arguments have another size";
	}
	strncpy(trouble, text.c_str(), size - 1);
}
