// Package energy turns what a Run did (bytes and time) into joules per token, by part, with the
// interval that the published constants leave open.
//
// The model is one product per part:
//
//	flash read  flash bytes × 8 × pJ/bit of the flash
//	DRAM        DRAM bytes × 8 × pJ/bit of the memory
//	compute     time the host computes × its power meanwhile
//	drive idle  time the drive does not read × its idle power
//	host idle   time the host does not compute × its power meanwhile
//
// The parts do not overlap as long as the constants do not: the whole-drive constants of flash
// contain what the drive draws while it reads, so that its idle power is charged for the rest of
// the time only; the host's two powers are those of the processor without its memory, since DRAM is
// a part of its own. DRAM bytes are counted as if no processor cache kept weights from one token to
// the next.
//
// Neither paper gives a joule: LLM in a flash (section 5.3) says that the sparse model draws less
// power and takes more energy than the dense one, without a number. The constants are therefore
// those of other sources, in energy.csv: every row is one published value with its source, copied.
// No published value was found for what a processor draws while it computes or waits (the power
// limit of a graphics card is of a whole board with its memory, and is no draw); these two are the
// caller's or not known. What is not known is never guessed: the total then is a lower bound and
// says so.
//
// Intervals. A constant with several published values spans the least to the greatest, the median
// in the middle. One value alone is taken to be good to a factor of two either way: a convention of
// this package, not a measurement. Nothing is known of how the errors of two constants go together,
// so the ends of the total are the sums of the ends: the widest interval.
//
// The whole-drive constants are power over rate at full sequential speed. A drive that reads more
// slowly, in small requests, may draw hardly less power and so take more energy per bit: the upper
// end is then the rated power over the whole I/O time, and the Report warns.
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
//  3. A part whose constant or amount is not known has no joules, and the total is marked as a
//     lower bound; a part with nothing to charge is 0 J whether its constant is known or not.
package energy
