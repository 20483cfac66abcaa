package policy

import "github.com/windrow-sim/windrow/internal/mask"

// pages is the page cache of an operating system under a runtime that touches only what it needs: a
// miss reads the whole aligned group of neighbours that are not in memory yet (read-ahead, or
// records smaller than a page), and the units used longest ago make room. Groups matter for reading
// only; afterwards every unit ages alone. With groups of one unit it is lru.
//
// Who stays is decided as by lru. What came with a needed unit counts as used just before the
// token: it is younger than what the token before used and older than what this one needs, and
// where there is no room for all of it, the lowest stay.
type pages struct {
	cache
	ahead    int   // units of a group
	order    lists // one, from the unit used longest ago to the last one
	units    int
	brought  mask.Mask // with needed units, of the current token
	touched  mask.Mask // needed or brought
	fromRead []uint32  // the brought ones as a list
}

func newPages(units, capacity, ahead int) *pages {
	return &pages{cache: newCache(units, capacity), ahead: ahead, order: newLists(units, 1),
		units: units, brought: mask.New(units), touched: mask.New(units)}
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
	room := min(len(p.fromRead), p.capacity-d.Hits-stay)
	leave := max(0, p.held+stay+room-p.capacity)
	p.held += stay + room - leave
	d.Ahead = len(p.fromRead)
	d.Overflow = len(d.Load) - stay + d.Ahead - room
	for _, u := range p.fromRead[:room] {
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
	// units that this token has not touched: those it has are behind them
	for ; leave > 0; leave-- {
		u := p.order.front(0)
		p.order.unlink(u)
		p.evict(u)
	}
	d.Load = merge(d.Load, p.fromRead)
	p.finish(p.touched, d)
}

// readAhead finds what comes with the missing units, which are ascending.
func (p *pages) readAhead(need mask.Mask, missing []uint32) {
	clear(p.brought)
	next := 0 // group
	for _, u := range missing {
		group := int(u) / p.ahead
		if group < next {
			continue
		}
		next = group + 1
		for v := group * p.ahead; v < min(p.units, next*p.ahead); v++ {
			p.brought.Set(uint32(v))
		}
	}
	p.brought.AndNot(need)
	p.brought.AndNot(p.resident)
	p.fromRead = p.brought.AppendUnits(p.fromRead[:0])
	copy(p.touched, need)
	p.touched.Or(p.brought)
}
