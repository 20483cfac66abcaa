// Package memory accounts for the memory of a run, part by part: weights, rows, keys and values,
// activations, buffers and bookkeeping. The engine, replay and every study of the simulator use
// this one account, so that `plan --dram` and `replay --dram` mean the same bytes. It takes plain
// numbers and masks, and stands on internal/decisions/policy and internal/decisions/layout.
//
// Start with Account. Need is what a trace asks of a policy, and Windows what it asks of every
// window, from which Largest picks the longest one that a budget has room for. RoomForRows answers
// the same question where nothing is known about the masks.
//
// The account is of what the engine allocates on the CPU. These rules hold for every caller:
//
//  1. A KV cache has room for Positions positions of every sequence. Unless a caller asks for more,
//     that is one more than the highest position of the tokens that run.
//  2. Keys and values take KVElement bytes each: KVElement (float32) unless a caller says
//     otherwise.
//  3. A row cache has room for the fullest moment of its layer: what the policy keeps and what the
//     token loads. Each row also keeps the bias of its up projection.
//  4. The staging buffer holds the largest read of one layer, gaps and alignment included. A
//     schedule that prefetches has a second buffer, of its own limit or of the same size.
//  5. A dense prefix keeps its layers as stored, with the padding of the records.
//  6. Bookkeeping is masks, policies, slots and lists. It grows with the units of a layer.
//
// Not in the account are the program itself (its code, the Go runtime, stacks, the tokenizer), the
// pages of a mapped trace, and the rows of a Run that replay measures.
package memory
