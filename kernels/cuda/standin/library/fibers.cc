// fibers.cc runs a grid: its blocks one after the other, the threads of a block as fibers.
//
// A warp's fibers are run in turn until each waits for its warp, waits for its block, or has ended. When all wait for the warp at the same line they go
// on. When all warps have come to the block's barrier, at the same line, they go on. Anything else would hang or be undefined on a
// device and is an error here.
#include "emulate.h"
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

namespace standin {

Place here;

namespace {

const int warpSize = 32, mostThreads = 1024;
// The tops of the stacks lie apartBytes apart, modulo spread. At distances of a power of two, all fibers of a warp would share one set of a cache.
const size_t stackBytes = 64 << 10, spread = 32 << 10, apartBytes = 4096 + 128;

enum State { ready, atWarp, atBlock, ended, wild };

// A Rest is a place to go on at. change stores the present one in from and goes on at to. start makes a Rest the beginning of live, on a stack of its own.
void live();

#ifdef __x86_64__

typedef void *Rest; // its stack, with the address on top

// change is in line and jumps. The fibers of a warp go on at one address, each after another's call from the same line, so that the processor predicts the
// jump and the returns behind it. With _setjmp and _longjmp, as below, the tests of engine/cuda take twice the time.
inline __attribute__((always_inline)) void change(Rest &from, Rest &to) {
	void *noted = &from, *next = to;
	asm volatile("leaq -128(%%rsp), %%rsp\n\t" // what a function may keep below its stack
	             "pushq %%rbp\n\t"
	             "leaq 1f(%%rip), %%rcx\n\t"
	             "pushq %%rcx\n\t"
	             "movq %%rsp, (%0)\n\t"
	             "movq %1, %%rsp\n\t"
	             "popq %%rcx\n\t"
	             "jmpq *%%rcx\n"
	             "1:\n\t"
	             "popq %%rbp\n\t"
	             "leaq 128(%%rsp), %%rsp"
	             : "+D"(noted), "+S"(next)
	             :
	             : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
	               "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc", "memory");
}

void start(Rest &rest, char *stack, size_t bytes) {
	void **top = (void **)(stack + bytes / 16 * 16);
	*--top = nullptr; // where live would return to
	*--top = (void *)live;
	rest = top;
}

inline void begun() {}

#else

typedef jmp_buf Rest;
Rest starter, *starting;

void change(Rest &from, Rest &to) {
	if (_setjmp(from) == 0)
		_longjmp(to, 1);
}

void start(Rest &rest, char *stack, size_t bytes) {
	starting = &rest;
	if (_setjmp(starter) != 0)
		return;
	ucontext_t first;
	getcontext(&first);
	first.uc_stack.ss_sp = stack, first.uc_stack.ss_size = bytes, first.uc_link = nullptr;
	makecontext(&first, live, 0);
	setcontext(&first);
	abort();
}

// begun is live's first act: it notes the beginning and goes back to start.
void begun() { change(*starting, starter); }

#endif

struct Fiber {
	Rest rest;
	char *stack = nullptr;
	bool started = false;
	State state = ended;
	int line = 0, exchanges = 0;
};

Fiber fibers[mostThreads];
Fiber *current;
Rest home;
int warpEnd; // of the warp that runs now
unsigned words[mostThreads / warpSize][2][warpSize]; // by warp, by parity of the exchange
const std::function<void()> *job;

// next makes the next fiber of the warp that is ready the current one and says where it goes on; when there is none, where runWarp does.
Rest &next(int thread) {
	for (; thread < warpEnd; thread++) {
		Fiber *f = &fibers[thread];
		if (f->state != ready)
			continue;
		current = f, here.thread = thread;
		if (f->stack == nullptr)
			f->stack = (char *)mmap(nullptr, stackBytes + spread, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (!f->started)
			start(f->rest, f->stack, stackBytes + thread * apartBytes % spread);
		f->started = true;
		return f->rest;
	}
	return home;
}

inline __attribute__((always_inline)) void leave(State state, int line) {
	Fiber *f = current;
	f->state = state, f->line = line;
	change(f->rest, next(state == wild ? warpEnd : here.thread + 1));
}

// Segments is in force while a grid runs: a fiber that uses an address which the process does not have is left where it is, and its state says so. Faults of
// other threads go to whoever handled them before, which is Go.
class Segments {
	struct sigaction before;
	static Segments *now;
	pthread_t runner = pthread_self();

	static void handle(int number, siginfo_t *info, void *context) {
		if (pthread_equal(pthread_self(), now->runner))
			leave(wild, 0);
		now->before.sa_sigaction(number, info, context);
	}

public:
	Segments() {
		struct sigaction ours = {};
		ours.sa_sigaction = handle, ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
		now = this;
		sigaction(SIGSEGV, &ours, &before);
	}
	~Segments() { sigaction(SIGSEGV, &before, nullptr); }
};
Segments *Segments::now;

// A fiber lives on from block to block, which is cheaper than making it anew.
void live() {
	begun();
	for (;;) {
		(*job)();
		leave(ended, 0);
	}
}

// together says whether all fibers from lo to hi are in one state at one line.
bool together(int lo, int hi, State state) {
	for (int i = lo; i < hi; i++)
		if (fibers[i].state != state || fibers[i].line != fibers[lo].line)
			return false;
	return true;
}

void release(int lo, int hi) {
	for (int i = lo; i < hi; i++)
		fibers[i].state = ready;
}

std::string apart(const char *who, int lo, int hi) {
	std::string text = std::string("threads of one ") + who + " wait at different places: lines";
	int last = -1;
	for (int i = lo; i < hi; i++)
		if (fibers[i].line != last)
			last = fibers[i].line, text += " " + (fibers[i].state == ended ? "(ended)" : std::to_string(last));
	return text;
}

std::string runWarp(int lo, int hi) {
	for (;;) {
		warpEnd = hi;
		change(home, next(lo));
		if (current->state == wild)
			return "thread " + std::to_string(here.thread) + " used an address that there is not";
		if (together(lo, hi, ended) || together(lo, hi, atBlock))
			return "";
		if (hi - lo < warpSize || !together(lo, hi, atWarp))
			return apart("warp", lo, hi);
		release(lo, hi);
	}
}

std::string runBlock(int threads) {
	for (int i = 0; i < threads; i++)
		fibers[i].state = ready, fibers[i].exchanges = 0;
	for (;;) {
		for (int lo = 0; lo < threads; lo += warpSize) {
			const std::string error = runWarp(lo, lo + warpSize < threads ? lo + warpSize : threads);
			if (error != "")
				return error;
		}
		if (together(0, threads, ended))
			return "";
		if (!together(0, threads, atBlock))
			return apart("block", 0, threads);
		release(0, threads);
	}
}

} // namespace

void barrier(int line) { leave(atBlock, line); }

const unsigned *exchange(unsigned word, int line) {
	unsigned *place = words[here.thread / warpSize][current->exchanges++ % 2];
	place[here.thread % warpSize] = word;
	leave(atWarp, line);
	return place;
}

std::string run(const int grid[3], int threads, const std::function<void()> &kernel) {
	const Segments segments;
	job = &kernel, here.threads = threads;
	memcpy(here.blocks, grid, sizeof here.blocks);
	for (int z = 0; z < grid[2]; z++)
		for (int y = 0; y < grid[1]; y++)
			for (int x = 0; x < grid[0]; x++) {
				here.block[0] = x, here.block[1] = y, here.block[2] = z;
				const std::string error = runBlock(threads);
				if (error == "")
					continue;
				for (int i = 0; i < threads; i++)
					fibers[i].started = fibers[i].state == ended && fibers[i].started; // who is in the middle of a kernel cannot live on
				return error;
			}
	return "";
}

} // namespace standin
