package policy

import "github.com/windrow-sim/windrow/internal/mask"

// pages is the page cache of an operating system under a runtime that touches only needed units. A
// miss reads all units of its aligned group that are not in memory (read-ahead, or records smaller
// than a page), and the least recently used units leave. Groups matter for reading only; afterwards
// every unit ages alone. With groups of one unit it is lru.
//
// It admits and evicts units as lru does. A neighbour that was read with a needed unit counts as
// used just before the token: after the units of the previous token and before those of this one.
// If there is no room for all neighbours, the lowest stay.
type pages struct {
	cache
	ahead         int   // units of a group
	order         lists // one, from the least to the most recently used unit
	units         int
	neighbours    mask.Mask // neighbours read with needed units, of the current token
	touched       mask.Mask // needed units and neighbours
	neighbourList []uint32  // the neighbours as a list
}

func newPages(units, capacity, ahead int) *pages {
	return &pages{cache: newCache(units, capacity), ahead: ahead, order: newLists(units, 1),
		units: units, neighbours: mask.New(units), touched: mask.New(units)}
}

// Reset empties the cache.
func (p *pages) Reset() {
	p.clear()
	p.order.clear()
}

// Step implements Policy.
func (p *pages) Step(need mask.Mask, d *Decision) {
	d.demand(need, p.resident)
	p.readAhead(need, d.Load)
	stay := min(len(d.Load), p.capacity-d.Hits)
	room := min(len(p.neighbourList), p.capacity-d.Hits-stay)
	leave := max(0, p.size+stay+room-p.capacity)
	p.size += stay + room - leave
	d.Ahead = len(p.neighbourList)
	d.Overflow = len(d.Load) - stay + d.Ahead - room
	for _, u := range p.neighbourList[:room] {
		p.resident.Set(u)
		p.order.push(0, u)
	}
	for u := range need.Each {
		switch {
		case p.resident.Has(u):
			p.order.unlink(u)
		case stay > 0:
			stay--
			p.resident.Set(u)
		default:
			continue
		}
		p.order.push(0, u)
	}
	// The units at the front are not touched by this token: touched ones are behind them.
	for ; leave > 0; leave-- {
		u := p.order.front(0)
		p.order.unlink(u)
		p.evict(u)
	}
	d.Load = merge(d.Load, p.neighbourList)
	p.finish(p.touched, d)
}

// readAhead finds the neighbours of the missing units, which are ascending.
func (p *pages) readAhead(need mask.Mask, missing []uint32) {
	clear(p.neighbours)
	next := 0 // group
	for _, u := range missing {
		group := int(u) / p.ahead
		if group < next {
			continue
		}
		next = group + 1
		for v := group * p.ahead; v < min(p.units, next*p.ahead); v++ {
			p.neighbours.Set(uint32(v))
		}
	}
	p.neighbours.AndNot(need)
	p.neighbours.AndNot(p.resident)
	p.neighbourList = p.neighbours.AppendUnits(p.neighbourList[:0])
	copy(p.touched, need)
	p.touched.Or(p.neighbours)
}
