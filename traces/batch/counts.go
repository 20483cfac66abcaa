package batch

import "math/bits"

// MaxAtLeast is the largest M of "needed by at least M of B".
const MaxAtLeast = 4

// Counts knows of every unit of one layer whether it is in at least 1, 2, 3 and 4 of the masks
// added so far.
type Counts struct {
	least [MaxAtLeast][]uint64 // by M−1, then bitsets over units
}

// NewCounts returns the counts of no masks of the given number of words.
func NewCounts(words int) *Counts {
	c := &Counts{}
	for m := range c.least {
		c.least[m] = make([]uint64, words)
	}
	return c
}

// Reset forgets all masks.
func (c *Counts) Reset() {
	for m := range c.least {
		clear(c.least[m])
	}
}

// Add adds a mask of as many words.
func (c *Counts) Add(mask []uint64) {
	one, two, three, four := c.least[0][:len(mask)], c.least[1][:len(mask)], c.least[2][:len(mask)],
		c.least[3][:len(mask)]
	for w, a := range mask {
		// From the top, since each unit moves up by one at most.
		four[w] |= three[w] & a
		three[w] |= two[w] & a
		two[w] |= one[w] & a
		one[w] |= a
	}
}

// AtLeast is the mask of the units that are in at least m masks, 1 ≤ m ≤ MaxAtLeast. It changes
// with the next Add.
func (c *Counts) AtLeast(m int) []uint64 { return c.least[m-1] }

// Sizes is the number of units of each AtLeast, by m−1.
func (c *Counts) Sizes() (n [MaxAtLeast]int64) {
	for m := range c.least {
		for _, w := range c.least[m] {
			n[m] += int64(bits.OnesCount64(w))
		}
	}
	return n
}
