// Package wear estimates the wear of flash by a flash-resident model: bytes and reads per day,
// blocks that the drive rewrites because of read disturb, and years to the rated endurance. Neither
// paper considers wear.
//
// Reads do not wear flash directly: programming and erasing do. But a read of one page puts a
// voltage on the other pages of its erase block, which shifts their charge a little (read disturb).
// After some number of reads the drive has to copy the block elsewhere and erase it: one
// program/erase cycle. Explanation is the text for reports.
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
// Reads are spread evenly over the region of the rows, unless a hot share is given. All reads in
// one block is the worst case. No run reaches it, and it bounds every skew.
//
// The thresholds are in wear.csv, one published value per row with its source. A text like
// "hundreds of thousands to millions" is kept beside its range (100,000 to 1,000,000). An interval
// spans the least to the greatest value, with the median in the middle, where a range counts as its
// geometric mean. Page and block are defaults of a simulator, not of a specific drive. Thresholds
// fall as blocks wear; this is not modelled.
//
// Reading guide: wear.go is the arithmetic, published.go the constants and the drives.
//
// Invariants:
//
//  1. More reads or writes never give more years.
//  2. Low ≤ Mid ≤ High for every interval; every number is finite.
//  3. An unknown endurance gives no years. A use without writes and disturbs causes no wear, for
//     ever.
package wear
