// Package answers asks the simulator the inverse questions: not "how fast is this", but "what do I
// need", "what should I change" and "does it run at all".
//
//	AssessFeasibility              which classes of runtimes can run a model in a memory, from
//	                               sizes
//	                               alone
//	Model.Account, LargestWindow   the memory that a window takes, part by part; the longest
//	                               window
//	                               for a budget
//	FindBreakEven                  the active share, and the batch, above which selective reads
//	                               lose
//	                               to hybrid reads
//	MakePlan                       the best configuration for a budget and a target, what the
//	                               target needs, what to change first
//	SimulateBatches                the time of a token when B sequences are computed together, and
//	                               the B at which selective reads stop paying
//
// # Method
//
// Every answer is a search over sim.Run or over the closed form of the flash. It inherits their
// assumptions. Assumptions of its own are stated below or where they are made. Simulated speed is
// monotone in each parameter of a device (invariant 4 of package sim). Bisection therefore finds
// the least value that is enough. Reads under a window are not monotone in the active share or in
// the batch: a window that holds everything reads nothing. For these a grid is searched for the
// first crossing.
//
// # Feasibility
//
// The classes of runtimes are those of NeuroPrefetcher's study of twenty systems (published.csv).
// A class is defined by its demand for memory:
//
//	resident  all weights, allocated before the first token
//	offload   all weights, divided between the memory of an accelerator and that of the host
//	mapped    a mapped file: pages are read on a fault and dropped when memory is short
//	          (llama.cpp, Ollama)
//	placed    every tensor on the accelerator, in host memory or on disk (FlexGen)
//	flash     all but the FFN, and the FFN rows that a token needs; the others are read from flash
//	          row by row (NeuroPrefetcher, LLM in a flash)
//
// The study's fourth group has no build for the machine. No size can tell that.
//
// Memory is the memory that the operating system leaves to the process. The program itself and the
// activations of a token are not counted.
//
//	weights   parameters × bytes per weight: 2 (f16), 34/32 (q8_0) or 18/32 (q4_0; blocks of 32
//	          weights with a 16-bit scale, ggml-common.h)
//	KV cache  2 · kv_heads · head_dim numbers per layer and position, of 4 bytes as in windrow's
//	          engine unless Machine.KVElement says otherwise; the study's systems keep 2
//	reserve   1 GiB of unified memory must stay free, or contiguous allocations fail (the study).
//	          Mapped pages need no contiguous memory.
//
// Unified memory is one pool. Moving weights from the accelerator to the host frees nothing there.
//
// A token takes at least the time of its reads from flash, and at least the time of reading its
// weights from memory. The rate is a bound: dependent reads, copies, page faults on the host and
// arithmetic add to it. The reads of a mapped file lie between two cases. The best replacement
// policy under cyclic access keeps all that fits. Least recently used keeps nothing.
//
// # Batches
//
// A step of a batch is simulated as one token whose masks are the unions of the masks of its
// sequences (traces/batch). sim.Run simulates it with the same policy, layout and flash. The time
// of a token is that of the step divided by B:
//
//	flash    (decisions + reads of the missing units + row copies + compute) / B
//	hybrid   (sequential read of all FFN units that are not in memory + compute) / B
//
// Hybrid is the baseline of LLM in a flash (section 4). It reads the part that does not fit as a
// whole, in large requests, once per step for all B sequences. It is charged the same compute as
// the step on flash, and no copies, because it reads into place. There are two hybrid baselines.
// One keeps no FFN unit in memory. The other keeps as many units as the window does. Their
// difference is no better known than the flash.
//
// Compute is charged once per step, as if all sequences shared each read of the weights. That is a
// lower bound: a processor limited by arithmetic takes up to B times as long. Keys and values are
// charged for every sequence. Both sides have the same compute, so that it does not move the B at
// which flash stops paying.
//
// The first steps of a window fill an empty memory. Means are over the steps that have a full
// window before them.
//
// # Reading guide
//
// Memory: memory.go and rows.go. Break-even: breakeven.go has the question and its closed form,
// breakeven_sim.go the simulation. Plan: plan.go has the grid, needs.go needed values and
// elasticities, levers.go the parameters of a device that can change. Batches: batch.go, and
// hybrid.go for the read of the baseline. Feasibility: feasible.go, then runtimes.go with one
// function per class, footprint.go for sizes and published.go for the study. search.go has the
// searches. batch_study.go joins measures of batches and their simulation. Files named
// *_document.go describe the results for a reader.
//
// # Invariants
//
//  1. The parts of a Memory sum up to its total. The row cache holds the most rows that the policy
//     holds at once, never less.
//  2. Selective reads at a closed-form break-even share take as long as the hybrid reads.
//  3. A needed value is enough. One step of the search less is not.
//  4. Same input, same result. Nothing depends on the clock or on the order of a map.
//  5. The published verdicts of the study follow. More memory never makes a verdict worse and never
//     lowers a bound.
package answers
