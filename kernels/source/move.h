// move.h: rows that arrive and rows that make room.
#pragma once
#include "port.h"

// copy_row copies size bytes with all threads of a block, in words of 16 bytes where everything is so aligned.
DEVICE void copy_row(PLACE GLOBAL char *to, GLOBAL const char *from, int size) {
	if ((((u64)to | (u64)from | (u64)size) & 15) == 0) {
		for (int i = THREAD_X; i < size / 16; i += THREADS)
			((GLOBAL uint4 *)to)[i] = ((GLOBAL const uint4 *)from)[i];
		return;
	}
	for (int i = THREAD_X; i < size; i += THREADS)
		to[i] = from[i];
}

// Takes records apart: the one at byte offsets[i] of staging is (gate,) up and down row, size bytes each, which go to place slots[i] of the
// three row buffers. gate is null where there is none. staging may be pinned host memory: then the device fetches the rows itself, without a copy
// between. Grid (n, rows of a record).
KERNEL(scatter, GLOBAL char *gate, GLOBAL char *up, GLOBAL char *down, GLOBAL const char *staging, GLOBAL const u64 *offsets,
       GLOBAL const int *slots, VALUE(int, size)) {
	const int part = gate ? BLOCK_Y : BLOCK_Y + 1;
	GLOBAL char *to = part == 0 ? gate : part == 1 ? up : down;
	copy_row(HERE to + (u64)slots[BLOCK_X] * size, staging + offsets[BLOCK_X] + (u64)BLOCK_Y * size, size);
}

// Moves rows within the row buffers: place from[i] to place to[i], for all i at once, so that no place may be in both lists. Grid (n, 2 or 3).
KERNEL(row_move, GLOBAL char *gate, GLOBAL char *up, GLOBAL char *down, GLOBAL const int *from, GLOBAL const int *to, VALUE(int, size)) {
	const int part = gate ? BLOCK_Y : BLOCK_Y + 1;
	GLOBAL char *rows = part == 0 ? gate : part == 1 ? up : down;
	copy_row(HERE rows + (u64)to[BLOCK_X] * size, rows + (u64)from[BLOCK_X] * size, size);
}
