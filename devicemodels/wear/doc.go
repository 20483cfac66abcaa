// Package wear estimates what a stated use of a flash-resident model does to the flash: bytes and
// reads per day, blocks that the drive rewrites because of read disturb, and years to the rated
// endurance. Neither paper considers it.
//
// Reads do not wear flash by themselves: what wears it is programming and erasing. But a read of
// one page puts a voltage on the other pages of its erase block, which shifts their charge a little
// (read disturb), and after some number of reads the drive has to copy the block elsewhere and
// erase it: one program/erase cycle. Explanation says so in the words that the command line prints.
//
// The model:
//
//	page reads   a read of b bytes touches ⌈b / page⌉ pages, each of one block; a read that is not
//	             aligned to pages may touch
//	             one more. b is the mean read. No cache inside the drive is assumed.
//	refreshes    page reads / threshold: each block is rewritten when it has been read threshold
//	             times. Their sum does
//	             not depend on how the reads are spread, only which blocks they are does.
//	writes       refreshes × block, plus what the host writes, each byte once (write amplification
//	             of 1).
//	years        endurance / writes. Against the rated bytes written refreshes count like the
//	             host's writes, which is strict:
//	             vendors rate the host's. Against program/erase cycles a drive that levels its
//	             wear has cycles × capacity
//	             bytes to give; one that rewrote every block in place would lose the most-read
//	             blocks after cycles refreshes
//	             of theirs, the worst case. Spare capacity is not counted.
//
// Reads are spread evenly over the region that holds the rows, unless a hot share is given; all
// reads in one block is the worst case that no run reaches, and bounds every skew.
//
// The thresholds are wear.csv, one published value per row with its source: a text like "hundreds
// of thousands to millions" is kept as it stands beside the range it is read as (100,000 to
// 1,000,000). An interval spans the least to the greatest, with the median in the middle, where a
// range counts as its geometric mean. Page and block are defaults of a simulator, not of the drive
// at hand. Thresholds fall as blocks wear; that is not modelled.
//
// Reading guide: wear.go is the arithmetic, published.go the constants and the drives.
//
// Invariants:
//
//  1. More reads or writes never give more years.
//  2. Low ≤ Mid ≤ High for every interval; every number is finite.
//  3. An endurance that is not known gives no years; a use that writes nothing and disturbs nothing
//     wears nothing, for ever.
package wear
