// Package energy computes the joules per token of a Run from its bytes and times, by part, with the
// interval of the published constants.
//
// The model is one product per part:
//
//	flash read  flash bytes × 8 × pJ/bit of the flash
//	DRAM        DRAM bytes × 8 × pJ/bit of the memory
//	compute     time the host computes × its power meanwhile
//	drive idle  time the drive does not read × its idle power
//	host idle   time the host does not compute × its power meanwhile
//
// The parts do not overlap, because the constants do not. The whole-drive constants of flash
// include the drive's power during reads, so idle power is charged for the remaining time only. The
// host's two powers are those of the processor without its memory, since DRAM is a part of its own.
// DRAM bytes are counted as if no processor cache kept weights between tokens.
//
// Neither paper gives an energy. LLM in a flash (section 5.3) says that the sparse model draws less
// power and takes more energy than the dense one, without a number. The constants therefore come
// from other sources, in energy.csv: every row is one published value with its source. No published
// value was found for the power of a processor that computes or waits. (The power limit of a
// graphics card is that of a whole board with its memory, and no measured draw.) The caller gives
// these two, or they are unknown. Unknown constants are never guessed: the total is then marked as
// a lower bound.
//
// Intervals. A constant with several published values spans the least to the greatest, with the
// median in the middle. A single value is taken as correct within a factor of two either way: a
// convention of this package, not a measurement. The correlation of the errors of two constants is
// unknown. The ends of the total are therefore the sums of the ends, the widest interval.
//
// The whole-drive constants are power over rate at full sequential speed. A drive that reads more
// slowly, in small requests, may draw almost the same power and so take more energy per bit. The
// upper end is then the rated power over the whole I/O time, and the Report warns.
//
// Not included: writes, activations (they stay in caches), the embedding's one row, the page
// cache's extra copy of buffered reads, losses of power supplies, display and radio.
//
// Reading guide: energy.go is the arithmetic, published.go the constants.
//
// Invariants:
//
//  1. Joules of a part are linear in its bytes or time and in its constant, but for the upper end
//     of slow flash reads.
//  2. Low ≤ Mid ≤ High for every part and the total; every number is finite.
//  3. A part whose constant or amount is unknown has no joules, and the total is marked as a lower
//     bound. A part with an amount of 0 has 0 J, whether its constant is known or not.
package energy
