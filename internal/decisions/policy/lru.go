package policy

import "github.com/windrow-sim/windrow/internal/mask"

// lru keeps the most recently used units. A token uses all its units at once: its hits are found
// before any unit leaves. Then the loaded units stay in ascending order while fewer than capacity
// needed units stay; the others overflow. While there are too many units, the least recently used
// one leaves, among units of the same token the lower one. Needed units do not leave.
//
// A larger capacity never misses more: a larger cache holds all units of a smaller one.
type lru struct {
	cache
	order lists // one, from the least to the most recently used unit
}

// cache is the common state of the policies with a capacity.
type cache struct {
	capacity int
	size     int       // units in memory between tokens
	resident mask.Mask // the units in memory between tokens
	gone     mask.Mask // units that leave in this step; clear between steps
}

func newCache(units, capacity int) cache {
	return cache{capacity: capacity, resident: mask.New(units), gone: mask.New(units)}
}

func (c *cache) clear() {
	c.size = 0
	clear(c.resident)
}

// admit returns the number of loaded units that stay and of other units that must leave, if all
// hits stay.
func (c *cache) admit(d *Decision) (stay, leave int) {
	stay = min(len(d.Load), c.capacity-d.Hits)
	leave = max(0, c.size+stay-c.capacity)
	c.size += stay - leave
	d.Overflow = len(d.Load) - stay
	return stay, leave
}

// evict removes a unit from memory.
func (c *cache) evict(unit uint32) {
	c.resident.Clear(unit)
	c.gone.Set(unit)
}

// finish lists the units that leave: the evicted ones, and the needed ones that did not stay.
func (c *cache) finish(need mask.Mask, d *Decision) {
	c.gone.Or(need)
	d.Evict = c.gone.AppendAndNot(d.Evict, c.resident) // evicted units are not resident
	clear(c.gone)
}

func newLRU(units, capacity int) *lru {
	return &lru{cache: newCache(units, capacity), order: newLists(units, 1)}
}

// Reset empties the cache.
func (c *lru) Reset() {
	c.clear()
	c.order.clear()
}

// Step implements Policy.
func (c *lru) Step(need mask.Mask, d *Decision) {
	d.demand(need, c.resident)
	stay, leave := c.admit(d)
	for u := range need.Each {
		switch {
		case c.resident.Has(u):
			c.order.unlink(u)
		case stay > 0:
			stay--
			c.resident.Set(u)
		default:
			continue
		}
		c.order.push(0, u)
	}
	// The units at the front are not needed by this token: needed ones are at the back.
	for ; leave > 0; leave-- {
		u := c.order.front(0)
		c.order.unlink(u)
		c.evict(u)
	}
	c.finish(need, d)
}
