package policy

import "math/bits"

// lists are doubly linked lists of units in two flat arrays. A unit is on at most one list. Every
// list is a ring, closed by an entry of its own after those of the units. No operation has a
// special case or allocates.
type lists struct {
	prev, next []int32 // by unit, then by list
	units      int32
}

func newLists(units, n int) lists {
	l := lists{units: int32(units), prev: make([]int32, units, units+n), next: make([]int32, units,
		units+n)}
	l.grow(n)
	return l
}

// grow appends empty lists until there are n.
func (l *lists) grow(n int) {
	for at := int32(len(l.next)); at < l.units+int32(n); at++ {
		l.prev, l.next = append(l.prev, at), append(l.next, at)
	}
}

// clear empties all lists.
func (l *lists) clear() {
	for at := l.units; int(at) < len(l.next); at++ {
		l.prev[at], l.next[at] = at, at
	}
}

// push appends a unit that is on no list to the back of one.
func (l *lists) push(list int, unit uint32) {
	end := l.units + int32(list)
	last := l.prev[end]
	l.prev[unit], l.next[unit] = last, end
	l.next[last], l.prev[end] = int32(unit), int32(unit)
}

// unlink removes a unit from its list.
func (l *lists) unlink(unit uint32) {
	before, after := l.prev[unit], l.next[unit]
	l.next[before], l.prev[after] = after, before
}

// front returns the first unit of a list that is not empty.
func (l *lists) front(list int) uint32 { return uint32(l.next[l.units+int32(list)]) }

// empty reports whether a list is empty.
func (l *lists) empty(list int) bool {
	end := l.units + int32(list)
	return l.next[end] == end
}

// buckets are lists by a small integer key. A bitset of the non-empty lists finds the lowest and
// the highest key in use.
type buckets struct {
	lists
	used      []uint64 // the keys in use, bit key%64 of word key/64
	low, high int      // words of used: all words below low and above high are 0
}

func newBuckets(units, keys int) buckets {
	return buckets{lists: newLists(units, keys), used: make([]uint64, (keys+63)/64)}
}

func (b *buckets) clear() {
	b.lists.clear()
	clear(b.used)
	b.low, b.high = 0, 0
}

// add appends a unit to the back of the list of a key. The key may be new.
func (b *buckets) add(key int, unit uint32) {
	if int(b.units)+key >= len(b.next) {
		b.grow(key + 1)
	}
	for len(b.used) <= key/64 {
		b.used = append(b.used, 0)
	}
	b.used[key/64] |= 1 << (key % 64)
	b.low, b.high = min(b.low, key/64), max(b.high, key/64)
	b.push(key, unit)
}

// remove removes a unit from the list of its key.
func (b *buckets) remove(key int, unit uint32) {
	b.unlink(unit)
	if b.empty(key) {
		b.used[key/64] &^= 1 << (key % 64)
	}
}

// lowestKey returns the lowest key in use; there must be one.
func (b *buckets) lowestKey() int {
	for b.used[b.low] == 0 {
		b.low++
	}
	return b.low*64 + bits.TrailingZeros64(b.used[b.low])
}

// highestKey returns the highest key in use; there must be one.
func (b *buckets) highestKey() int {
	for b.used[b.high] == 0 {
		b.high--
	}
	return b.high*64 + 63 - bits.LeadingZeros64(b.used[b.high])
}
