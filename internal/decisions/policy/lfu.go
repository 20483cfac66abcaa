package policy

import "github.com/windrow-sim/windrow/internal/mask"

// lfu keeps the units used by the most tokens since their load (the count of a unit that leaves is
// forgotten). It admits units as lru does, but evicts the unit with the lowest count; among equals
// the least recently used one, among units of the same token the lower one.
//
// Units are in one list per count (Shah, Mitra and Matani, 2010), so that the cost of a use does
// not depend on the counts.
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
func (c *lfu) Step(need mask.Mask, d *Decision) {
	d.demand(need, c.resident)
	stay, leave := c.admit(d)
	// Take the hits off the lists, so that the remaining units may leave. gone holds them for a
	// moment.
	hits := c.gone
	copy(hits, need)
	hits.And(c.resident)
	for u := range hits.Each {
		c.byCount.remove(int(c.count[u]), u)
	}
	clear(hits)
	for ; leave > 0; leave-- {
		count := c.byCount.lowestKey()
		u := c.byCount.front(count)
		c.byCount.remove(count, u)
		c.evict(u)
	}
	for u := range need.Each {
		switch {
		case c.resident.Has(u):
			c.count[u]++
		case stay > 0:
			stay--
			c.resident.Set(u)
			c.count[u] = 1
		default:
			continue
		}
		c.byCount.add(int(c.count[u]), u)
	}
	c.finish(need, d)
}
