package policy

import "math/bits"

// lfu keeps the units used by the most tokens since they were loaded (a unit that leaves is
// forgotten). Who stays is decided as by lru, except that the unit of the lowest count leaves,
// among equals the one used longest ago, among those of the same token the lower one.
//
// Units are in one list per count (Shah, Mitra and Matani, 2010), so that a use costs the same
// whatever the counts.
type lfu struct {
	cache
	count   []int32 // uses since the unit was loaded
	byCount buckets
}

func newLFU(units, capacity int) *lfu {
	return &lfu{cache: newCache(units, capacity), count: make([]int32, units),
		byCount: newBuckets(units, 2)}
}

// Reset empties the cache.
func (c *lfu) Reset() {
	c.clear()
	c.byCount.clear()
}

// Step implements Policy.
func (c *lfu) Step(need []uint64, d *Decision) {
	d.demand(need, c.resident)
	stay, leave := c.admit(d)
	for i, word := range need { // off the lists, so that what is left on them may leave
		for word &= c.resident[i]; word != 0; word &= word - 1 {
			u := uint32(i*64 + bits.TrailingZeros64(word))
			c.byCount.remove(int(c.count[u]), u)
		}
	}
	for ; leave > 0; leave-- {
		count := c.byCount.lowestKey()
		u := c.byCount.front(count)
		c.byCount.remove(count, u)
		c.evict(u)
	}
	for i, word := range need {
		for ; word != 0; word &= word - 1 {
			u := uint32(i*64 + bits.TrailingZeros64(word))
			switch {
			case has(c.resident, u):
				c.count[u]++
			case stay > 0:
				stay--
				set(c.resident, u)
				c.count[u] = 1
			default:
				continue
			}
			c.byCount.add(int(c.count[u]), u)
		}
	}
	c.finish(need, d)
}
