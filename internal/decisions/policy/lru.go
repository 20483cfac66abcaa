package policy

import "github.com/windrow-sim/windrow/internal/mask"

// lru keeps the units used last. All that a token needs is used at once: its hits are found before
// anything leaves. Then the loaded units stay in ascending order as long as fewer than capacity
// needed units stay, the others overflow; and while there are too many, the unit used longest ago
// leaves, among units of the same token the lower one. Needed units never make way.
//
// A larger capacity never misses more: what a smaller cache holds, a larger one holds too.
type lru struct {
	cache
	order lists // one, from the unit used longest ago to the last one
}

// cache is what the policies with a capacity have in common.
type cache struct {
	capacity int
	held     int       // units in memory between tokens
	resident mask.Mask // those units
	gone     mask.Mask // those that leave in this step; clear between steps
}

func newCache(units, capacity int) cache {
	return cache{capacity: capacity, resident: mask.New(units), gone: mask.New(units)}
}

func (c *cache) clear() {
	c.held = 0
	clear(c.resident)
}

// admit returns how many of the loaded units stay and how many of the others must leave, when all
// hits stay.
func (c *cache) admit(d *Decision) (stay, leave int) {
	stay = min(len(d.Load), c.capacity-d.Hits)
	leave = max(0, c.held+stay-c.capacity)
	c.held += stay - leave
	d.Overflow = len(d.Load) - stay
	return stay, leave
}

// evict notes that a unit leaves.
func (c *cache) evict(unit uint32) {
	c.resident.Clear(unit)
	c.gone.Set(unit)
}

// finish lists what leaves: the evicted units and the needed ones that did not stay.
func (c *cache) finish(need mask.Mask, d *Decision) {
	c.gone.Or(need)
	d.Evict = c.gone.AppendAndNot(d.Evict, c.resident) // what was evicted is not resident
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
	// units that this token does not need: the needed ones are at the back
	for ; leave > 0; leave-- {
		u := c.order.front(0)
		c.order.unlink(u)
		c.evict(u)
	}
	c.finish(need, d)
}
