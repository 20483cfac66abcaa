package batch

import "github.com/windrow-sim/windrow/internal/mask"

// MaxAtLeast is the largest M of "needed by at least M of B".
const MaxAtLeast = 4

// Counts holds, for one layer, the units that are in at least 1, 2, 3 and 4 of the masks added so
// far.
type Counts struct {
	least [MaxAtLeast]mask.Mask // by M−1
}

// NewCounts returns the counts of no masks; masks have the given number of words.
func NewCounts(words int) *Counts {
	c := &Counts{}
	for m := range c.least {
		c.least[m] = make(mask.Mask, words)
	}
	return c
}

// Reset forgets all masks.
func (c *Counts) Reset() {
	for m := range c.least {
		clear(c.least[m])
	}
}

// Add adds a mask of that number of words.
func (c *Counts) Add(m mask.Mask) {
	n := len(m)
	one, two, three, four := c.least[0][:n], c.least[1][:n], c.least[2][:n], c.least[3][:n]
	for w, a := range m {
		// From the top, since each unit moves up by one at most.
		four[w] |= three[w] & a
		three[w] |= two[w] & a
		two[w] |= one[w] & a
		one[w] |= a
	}
}

// AtLeast returns the units that are in at least m masks, 1 ≤ m ≤ MaxAtLeast. The next Add changes
// it.
func (c *Counts) AtLeast(m int) mask.Mask { return c.least[m-1] }

// Sizes returns the number of units of each AtLeast, by m−1.
func (c *Counts) Sizes() (n [MaxAtLeast]int64) {
	for m := range c.least {
		n[m] = int64(c.least[m].Count())
	}
	return n
}
