// driver.cc: the symbols of libcuda.so.1 that package cuda uses, over the host's memory and standin::run. It is an emulation for tests: its
// device says so, and it has no times.
//
// Work of a stream is done as late as the rules allow: when somebody waits for it. A copy or kernel that needs another stream's result and does
// not wait for it therefore gets old data here, every time. Fresh memory and the guards around it are 0xff, which is NaN in every format. A changed
// guard, a kernel's pointer or access to where there is nothing, and threads that diverge at a barrier are an illegal address at the next
// synchronisation and lose the device, as on a real one.
#include "emulate.h"
#include <cstdio>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

using standin::Binder;
using standin::Bound;

namespace {

enum Code {
	success = 0, invalidValue = 1, outOfMemory = 2, notInitialized = 3, invalidDevice = 101, invalidImage = 200, invalidContext = 201,
	invalidPTX = 218, invalidHandle = 400, notFound = 500, notReady = 600, illegalAddress = 700, alreadyRegistered = 712, notRegistered = 713, notSupported = 801,
};

// Stream is a queue of work. An Occurrence is one recording of an event.
struct Stream;
struct Occurrence {
	Stream *stream;
	bool done = false;
};
struct Stream {
	std::deque<std::function<void()>> work;
	int id;
};
struct Event {
	bool timed;
	std::shared_ptr<Occurrence> last;
};
struct Module {
	std::string ptx;
};

enum Kind { device, pinned, registered };
struct Range {
	size_t size;
	Kind kind;
	char *block; // its pages; null where the memory is not ours
	size_t whole;
};

struct Fault {
	int nth, code;
	bool lose;
};

const size_t guard = 256, page = sysconf(_SC_PAGESIZE); // bytes

struct World {
	std::mutex mutex;
	bool initialized = false;
	int contexts = 0, lost = 0;
	size_t used = 0, limit = (size_t)1 << 30;
	std::map<char *, Range> ranges; // by start
	std::list<Stream> streams;      // oldest first
	std::list<Event> events;
	std::list<Module> modules;
	Stream null{{}, 0};
	int made = 0;
	std::map<std::string, int> calls;
	std::map<std::string, Fault> faults;
	std::string trouble; // what the last kernel did wrong
};

World &world() {
	static World w;
	return w;
}

std::map<std::string, Binder> &kernels() {
	static std::map<std::string, Binder> all;
	return all;
}

thread_local bool bound; // the context is this thread's

// enter counts a call and gives the code that it must fail with, if any.
int enter(const char *name, bool needsContext) {
	World &w = world();
	const int n = ++w.calls[name];
	const auto fault = w.faults.find(name);
	if (fault != w.faults.end() && n == fault->second.nth) {
		if (fault->second.lose)
			w.lost = fault->second.code;
		return fault->second.code;
	}
	if (w.lost)
		return w.lost;
	if (!w.initialized && strcmp(name, "cuInit") != 0 && strcmp(name, "cuDriverGetVersion") != 0)
		return notInitialized;
	return needsContext && !(bound && w.contexts > 0) ? invalidContext : success;
}

#define ENTER(needsContext) \
	std::lock_guard<std::mutex> lock(world().mutex); \
	[[maybe_unused]] World &w = world(); \
	if (const int code = enter(__func__, needsContext)) \
	return code

// What frees takes effect on a lost device too: the code says that the device is lost, not that memory is.
#define ENTER_FREE() \
	std::lock_guard<std::mutex> lock(world().mutex); \
	World &w = world(); \
	const int code = enter(__func__, true); \
	if (code && !w.lost) \
	return code

// find gives the range that holds size bytes at p. The device can use these and no others.
Range *find(const void *p, size_t size) {
	World &w = world();
	auto it = w.ranges.upper_bound((char *)p);
	if (it == w.ranges.begin())
		return nullptr;
	--it;
	return (char *)p + size <= it->first + it->second.size ? &it->second : nullptr;
}

void lose(const std::string &why) {
	World &w = world();
	w.trouble = why;
	if (!w.lost)
		w.lost = illegalAddress;
}

// intact says whether the guard before a range and what is left of its pages behind it are as they were.
bool intact(char *start, const Range &r) {
	if (r.block == nullptr)
		return true;
	for (char *p = start - guard; p < r.block + r.whole; p++)
		if (p == start)
			p += r.size - 1;
		else if (*p != (char)0xff)
			return false;
	return true;
}

void checkGuards(const std::string &who) {
	for (auto &entry : world().ranges)
		if (!intact(entry.first, entry.second))
			lose(who + " wrote beyond an allocation of " + std::to_string(entry.second.size) + " bytes");
}

void step(Stream *s) {
	auto work = std::move(s->work.front());
	s->work.pop_front();
	if (!world().lost)
		work();
}

void drain(Stream *s) {
	while (!s->work.empty())
		step(s);
}

// await does a stream's work up to the occurrence of an event.
void await(const std::shared_ptr<Occurrence> &o) {
	while (!o->done && !o->stream->work.empty())
		step(o->stream);
}

void drainAll() {
	World &w = world();
	for (auto s = w.streams.rbegin(); s != w.streams.rend(); ++s) // newest first: whoever relies on age must say so
		drain(&*s);
	drain(&w.null);
}

Stream *stream(void *handle) {
	World &w = world();
	if (handle == nullptr)
		return &w.null;
	for (auto &s : w.streams)
		if (&s == handle)
			return &s;
	return nullptr;
}

Event *event(void *handle) {
	for (auto &e : world().events)
		if (&e == handle)
			return &e;
	return nullptr;
}

// reserve makes a range of pages of its own. It ends where the process has no memory, so that reading beyond it is seen, but for what alignment to
// 16 bytes leaves; the driver's alignment of 256 would leave more.
int reserve(void **out, size_t size, Kind kind) {
	World &w = world();
	if (size == 0)
		return invalidValue;
	if (size > w.limit || (kind == device && w.used + size > w.limit))
		return outOfMemory;
	const size_t padded = (size + 15) / 16 * 16, whole = (guard + padded + page - 1) / page * page;
	char *block = (char *)mmap(nullptr, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (block == MAP_FAILED)
		return outOfMemory;
	mprotect(block + whole, page, PROT_NONE);
	memset(block, 0xff, whole);
	char *start = block + whole - padded;
	w.ranges[start] = Range{size, kind, block, whole};
	if (kind == device)
		w.used += size;
	*out = start;
	return success;
}

void release(const Range &r) {
	if (r.block != nullptr)
		munmap(r.block, r.whole + page);
}

int unreserve(void *p, Kind kind) {
	World &w = world();
	const auto it = w.ranges.find((char *)p);
	if (it == w.ranges.end() || it->second.kind != kind)
		return kind == registered ? notRegistered : invalidValue;
	drainAll();
	if (!intact(it->first, it->second))
		lose("something wrote beyond an allocation that was freed");
	if (kind == device)
		w.used -= it->second.size;
	release(it->second);
	w.ranges.erase(it);
	return w.lost;
}

} // namespace

standin::Registered::Registered(const char *name, Binder binder) { kernels()[name] = binder; }

#pragma GCC visibility push(default)
extern "C" {

int cuInit(unsigned) {
	ENTER(false);
	w.initialized = true;
	return success;
}

int cuDriverGetVersion(int *version) {
	ENTER(false);
	*version = 12000;
	return success;
}

int cuDeviceGetCount(int *count) {
	ENTER(false);
	*count = 1;
	return success;
}

int cuDeviceGet(int *dev, int ordinal) {
	ENTER(false);
	*dev = ordinal;
	return ordinal == 0 ? success : invalidDevice;
}

int cuDeviceGetName(char *name, int size, int dev) {
	ENTER(false);
	snprintf(name, size, "emulated device (CPU stand-in, no times)");
	return dev == 0 ? success : invalidDevice;
}

int cuDeviceTotalMem_v2(size_t *bytes, int dev) {
	ENTER(false);
	*bytes = w.limit;
	return dev == 0 ? success : invalidDevice;
}

// Numbers as in cuda.h's CUdevice_attribute.
int cuDeviceGetAttribute(int *value, int attribute, int dev) {
	ENTER(false);
	static const std::map<int, int> values = {{1, 1024}, {10, 32}, {16, 4}, {18, 0}, {19, 1}, {40, 1}, {41, 1}, {75, 7}, {76, 0}};
	const auto it = values.find(attribute);
	if (dev != 0 || it == values.end())
		return invalidValue;
	*value = it->second;
	return success;
}

int cuDevicePrimaryCtxRetain(void **context, int dev) {
	ENTER(false);
	if (dev != 0)
		return invalidDevice;
	w.contexts++;
	*context = &w;
	return success;
}

int cuDevicePrimaryCtxRelease_v2(int) {
	std::lock_guard<std::mutex> lock(world().mutex);
	World &w = world();
	const int code = enter(__func__, false);
	if (code && !w.lost)
		return code;
	if (w.contexts == 0)
		return invalidContext;
	w.contexts--;
	return code;
}

int cuCtxSetCurrent(void *context) {
	std::lock_guard<std::mutex> lock(world().mutex);
	World &w = world();
	const int code = enter(__func__, false);
	bound = context == &w && w.contexts > 0;
	return code ? code : bound ? success : invalidContext;
}

int cuCtxSynchronize() {
	ENTER(true);
	drainAll();
	return w.lost;
}

// PTX is taken for granted but for its head: the kernels are already here. A module has those that its text has.
int cuModuleLoadDataEx(void **module, const char *image, unsigned, const int *, void **) {
	ENTER(true);
	const std::string ptx = image;
	if (ptx.find(".version") == std::string::npos || ptx.find(".target") == std::string::npos)
		return invalidPTX;
	w.modules.push_back({ptx});
	*module = &w.modules.back();
	return success;
}

int cuModuleUnload(void *module) {
	ENTER_FREE();
	for (auto it = w.modules.begin(); it != w.modules.end(); ++it)
		if (&*it == module) {
			w.modules.erase(it);
			return code;
		}
	return invalidHandle;
}

int cuModuleGetFunction(void **function, void *module, const char *name) {
	ENTER(true);
	for (auto &m : w.modules)
		if (&m == module) {
			const auto it = kernels().find(name);
			if (it == kernels().end() || m.ptx.find(".entry " + std::string(name) + "(") == std::string::npos)
				return notFound;
			*function = (void *)&*it;
			return success;
		}
	return invalidHandle;
}

int cuMemGetInfo_v2(size_t *free, size_t *total) {
	ENTER(true);
	*free = w.limit - w.used, *total = w.limit;
	return success;
}

int cuMemAlloc_v2(void **p, size_t size) {
	ENTER(true);
	return reserve(p, size, device);
}

int cuMemFree_v2(void *p) {
	ENTER_FREE();
	return unreserve(p, device);
}

int cuMemHostAlloc(void **p, size_t size, unsigned) {
	ENTER(true);
	return reserve(p, size, pinned);
}

int cuMemFreeHost(void *p) {
	ENTER_FREE();
	return unreserve(p, pinned);
}

int cuMemHostRegister_v2(void *p, size_t size, unsigned) {
	ENTER(true);
	if (p == nullptr || size == 0)
		return invalidValue;
	if (find(p, 1))
		return alreadyRegistered;
	w.ranges[(char *)p] = Range{size, registered, nullptr, 0};
	return success;
}

int cuMemHostUnregister(void *p) {
	ENTER_FREE();
	return unreserve(p, registered);
}

int cuMemHostGetDevicePointer_v2(void **out, void *p, unsigned) {
	ENTER(true);
	const Range *r = find(p, 1);
	if (r == nullptr || r->kind == device)
		return invalidValue;
	*out = p;
	return success;
}

// Memory that is not pinned is read before the call returns, and written before it returns: so the real driver does it.
int cuMemcpyHtoDAsync_v2(void *to, const void *from, size_t size, void *handle) {
	ENTER(true);
	Stream *s = stream(handle);
	if (s == nullptr)
		return invalidHandle;
	if (size == 0)
		return success;
	if (!find(to, size))
		return invalidValue;
	if (find(from, size)) {
		s->work.push_back([=] { memcpy(to, from, size); });
		return success;
	}
	const std::string copy((const char *)from, size);
	s->work.push_back([=] { memcpy(to, copy.data(), size); });
	return success;
}

int cuMemcpyDtoHAsync_v2(void *to, const void *from, size_t size, void *handle) {
	ENTER(true);
	Stream *s = stream(handle);
	if (s == nullptr)
		return invalidHandle;
	if (size == 0)
		return success;
	if (!find(from, size))
		return invalidValue;
	s->work.push_back([=] { memcpy(to, from, size); });
	if (!find(to, size))
		drain(s);
	return w.lost;
}

int cuMemcpyDtoDAsync_v2(void *to, const void *from, size_t size, void *handle) {
	ENTER(true);
	Stream *s = stream(handle);
	if (s == nullptr)
		return invalidHandle;
	if (size == 0)
		return success;
	if (!find(to, size) || !find(from, size))
		return invalidValue;
	s->work.push_back([=] { memcpy(to, from, size); });
	return success;
}

int cuMemsetD8Async(void *to, unsigned char value, size_t size, void *handle) {
	ENTER(true);
	Stream *s = stream(handle);
	if (s == nullptr)
		return invalidHandle;
	if (size == 0)
		return success;
	if (!find(to, size))
		return invalidValue;
	s->work.push_back([=] { memset(to, value, size); });
	return success;
}

int cuStreamCreate(void **out, unsigned) {
	ENTER(true);
	w.streams.push_back(Stream{{}, ++w.made});
	*out = &w.streams.back();
	return success;
}

int cuStreamDestroy_v2(void *handle) {
	ENTER_FREE();
	for (auto it = w.streams.begin(); it != w.streams.end(); ++it)
		if (&*it == handle) {
			drain(&*it);
			for (auto &e : w.events)
				if (e.last && e.last->stream == handle)
					e.last->done = true;
			w.streams.erase(it);
			return code;
		}
	return invalidHandle;
}

int cuStreamSynchronize(void *handle) {
	ENTER(true);
	Stream *s = stream(handle);
	if (s == nullptr)
		return invalidHandle;
	drain(s);
	return w.lost;
}

int cuStreamWaitEvent(void *handle, void *what, unsigned) {
	ENTER(true);
	Stream *s = stream(handle);
	Event *e = event(what);
	if (s == nullptr || e == nullptr)
		return invalidHandle;
	if (const auto last = e->last)
		s->work.push_back([=] { await(last); });
	return success;
}

int cuEventCreate(void **out, unsigned flags) {
	ENTER(true);
	w.events.push_back(Event{(flags & 2) == 0, nullptr});
	*out = &w.events.back();
	return success;
}

int cuEventDestroy_v2(void *what) {
	ENTER_FREE();
	for (auto it = w.events.begin(); it != w.events.end(); ++it)
		if (&*it == what) {
			w.events.erase(it);
			return code;
		}
	return invalidHandle;
}

int cuEventRecord(void *what, void *handle) {
	ENTER(true);
	Stream *s = stream(handle);
	Event *e = event(what);
	if (s == nullptr || e == nullptr)
		return invalidHandle;
	const auto now = e->last = std::make_shared<Occurrence>(Occurrence{s});
	s->work.push_back([=] { now->done = true; });
	return success;
}

int cuEventSynchronize(void *what) {
	ENTER(true);
	Event *e = event(what);
	if (e == nullptr)
		return invalidHandle;
	if (e->last)
		await(e->last);
	return w.lost;
}

// There is nothing to measure here, and a number would be taken for a measurement.
int cuEventElapsedTime(float *, void *from, void *to) {
	ENTER(true);
	return event(from) && event(to) ? notSupported : invalidHandle;
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *handle,
                   void **arguments, void **extra) {
	ENTER(true);
	Stream *s = stream(handle);
	if (s == nullptr || function == nullptr)
		return invalidHandle;
	if (gx == 0 || gx > 0x7fffffff || gy == 0 || gy > 65535 || gz == 0 || gz > 65535 || bx == 0 || bx > 1024 || by != 1 || bz != 1 || shared != 0 || extra)
		return invalidValue;
	const auto *entry = (const std::pair<const std::string, Binder> *)function;
	const std::string name = entry->first;
	const Bound bound = entry->second(arguments);
	const int grid[3] = {(int)gx, (int)gy, (int)gz};
	s->work.push_back([=] {
		for (const void *p : bound.pointers)
			if (p != nullptr && !find(p, 1))
				return lose(name + " got a pointer to memory that the device does not have");
		const std::string error = standin::run(grid, bx, bound.call);
		if (error != "")
			return lose(name + ": " + error);
		checkGuards(name);
	});
	return success;
}

// What follows is for tests, not in the real library.

// standin_fail makes the nth next call of a function fail with a code, and with lose every call after it.
void standin_fail(const char *name, int nth, int code, int lose) {
	std::lock_guard<std::mutex> lock(world().mutex);
	World &w = world();
	w.faults[name] = Fault{w.calls[name] + nth, code, lose != 0};
}

// standin_live counts what has been made and not destroyed: 0 device memory, 1 pinned, 2 registered, 3 streams, 4 events, 5 modules, 6 contexts.
int standin_live(int kind) {
	std::lock_guard<std::mutex> lock(world().mutex);
	World &w = world();
	int n = 0;
	for (const auto &r : w.ranges)
		n += r.second.kind == kind;
	return kind < 3 ? n : kind == 3 ? (int)w.streams.size() : kind == 4 ? (int)w.events.size() : kind == 5 ? (int)w.modules.size() : w.contexts;
}

int standin_calls(const char *name) {
	std::lock_guard<std::mutex> lock(world().mutex);
	return world().calls[name];
}

// standin_limit sets the memory of the device.
void standin_limit(size_t bytes) {
	std::lock_guard<std::mutex> lock(world().mutex);
	world().limit = bytes;
}

// standin_trouble copies what the last kernel did wrong.
void standin_trouble(char *text, int size) {
	std::lock_guard<std::mutex> lock(world().mutex);
	snprintf(text, size, "%s", world().trouble.c_str());
}

// standin_reset makes a new device, with nothing on it.
void standin_reset() {
	std::lock_guard<std::mutex> lock(world().mutex);
	World &w = world();
	for (auto &r : w.ranges)
		release(r.second);
	w.ranges.clear(), w.streams.clear(), w.events.clear(), w.modules.clear(), w.calls.clear(), w.faults.clear();
	w.null.work.clear();
	w.trouble = "", w.lost = w.contexts = w.made = 0, w.used = 0, w.limit = (size_t)1 << 30, w.initialized = false;
}

} // extern "C"
#pragma GCC visibility pop
