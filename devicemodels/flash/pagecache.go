package flash

import (
	"github.com/windrow-sim/windrow/internal/units"
)

// A page cache is modelled in blocks: pages, or the blocksPerWindow-th part of a fault's window
// where that is more. A wide window therefore costs no more to simulate than the usual one of 128
// KiB.
const (
	cachePage       = 4 * units.KiB
	blocksPerWindow = 32
)

// blocks returns the size of a block and the number of blocks that one fault fetches.
func (p *PageCache) blocks() (block units.Bytes, window int64) {
	block = max((p.ReadAhead/blocksPerWindow+cachePage-1)/cachePage*cachePage, cachePage)
	return block, int64((p.ReadAhead-1)/block + 1)
}

// faults is the number of faults of a read of chunk bytes with none of them in memory. Half of the
// first window lies before the read, the following windows are contiguous.
func (p *PageCache) faults(chunk units.Bytes) float64 {
	block, window := p.blocks()
	first := units.Bytes(window-window/2) * block
	whole := units.Bytes(window) * block
	return float64(1 + max(chunk-first+whole-1, 0)/whole)
}

// pageCache is the set of resident blocks of a mapped file.
//
// A fault fetches the missing blocks of the window around it, half before and half behind, like
// Linux for a fault in a mapped file (do_sync_mmap_readahead in mm/filemap.c). A fault at the end
// of the last window fetches the window behind it.
//
// Eviction is that of Linux (mm/vmscan.c), which is not least recently used: an access only sets a
// mark. New blocks enter the inactive list and are examined at its end. A block without a mark is
// evicted. A block with a mark loses it and gets a second round, or becomes active after its
// second. The active list is no longer than the inactive one; its last blocks become inactive.
type pageCache struct {
	spec    PageCache
	block   units.Bytes
	window  int64 // blocks
	most    int   // blocks; 0 = no limit
	index   map[int64]int32
	blocks  []cached
	lists   [2]list // inactive, active
	behind  int64   // the first block behind the last window
	missing []int64 // of one fault, reused
}

// cached is a block in memory.
type cached struct {
	number        int64
	before, after int32 // in its list; -1 = none
	list          uint8
	used, again   bool // accessed since its last examination; had a second round
}

// The lists of a pageCache.
const (
	inactive = iota
	active
)

// list is a list of blocks through cached.before and after.
type list struct {
	head, tail int32 // -1 when empty
	length     int
}

func newPageCache(spec PageCache) *pageCache {
	c := &pageCache{spec: spec, index: map[int64]int32{}, lists: [2]list{{head: -1, tail: -1},
		{head: -1, tail: -1}}, behind: -1}
	c.block, c.window = spec.blocks()
	if spec.Capacity > 0 {
		c.most = int(max(int64(spec.Capacity/c.block), c.window))
	}
	return c
}

// walk accesses the bytes from at to end. It returns the number of bytes before the first missing
// block, and whether a block is missing.
func (c *pageCache) walk(at, end units.Bytes) (hit units.Bytes, fault bool) {
	for from := at; from < end; {
		number := int64(from / c.block)
		i, ok := c.index[number]
		if !ok {
			return hit, true
		}
		c.blocks[i].used = true
		next := min(units.Bytes(number+1)*c.block, end)
		hit += next - from
		from = next
	}
	return hit, false
}

// fault appends to reads the fetches of a fault at a missing byte, and inserts their blocks.
func (c *pageCache) fault(at units.Bytes, reads []Read) []Read {
	number := int64(at / c.block)
	first := max(number-c.window/2, 0)
	if number == c.behind {
		first = number
	}
	c.behind = first + c.window
	c.missing = c.missing[:0]
	for n := first; n < c.behind; n++ {
		if _, ok := c.index[n]; ok {
			continue
		}
		if k := len(c.missing); k > 0 && c.missing[k-1] == n-1 {
			reads[len(reads)-1].Length += c.block
		} else {
			reads = append(reads, Read{units.Bytes(n) * c.block, c.block})
		}
		c.missing = append(c.missing, n)
	}
	for _, n := range c.missing {
		if n != number {
			c.insert(n)
		}
	}
	c.insert(number) // last, so that no other block evicts it
	return reads
}

// insert adds a block; a full cache evicts another.
func (c *pageCache) insert(number int64) {
	i := int32(len(c.blocks))
	if c.most > 0 && len(c.blocks) == c.most {
		i = c.evict()
	} else {
		c.blocks = append(c.blocks, cached{})
	}
	c.blocks[i] = cached{number: number}
	c.index[number] = i
	c.link(i, inactive)
}

// evict removes a block and returns its index.
func (c *pageCache) evict() int32 {
	for {
		for c.lists[active].length > c.lists[inactive].length {
			i := c.lists[active].tail
			c.blocks[i].used = false
			c.move(i, inactive)
		}
		i := c.lists[inactive].tail
		b := &c.blocks[i]
		switch {
		case !b.used:
			delete(c.index, b.number)
			c.unlink(i)
			return i
		case b.again:
			b.used, b.again = false, false
			c.move(i, active)
		default:
			b.used, b.again = false, true
			c.move(i, inactive)
		}
	}
}

func (c *pageCache) move(i int32, to uint8) {
	c.unlink(i)
	c.link(i, to)
}

// link puts a block at the head of a list.
func (c *pageCache) link(i int32, to uint8) {
	b, l := &c.blocks[i], &c.lists[to]
	b.list, b.before, b.after = to, -1, l.head
	if l.head >= 0 {
		c.blocks[l.head].before = i
	} else {
		l.tail = i
	}
	l.head = i
	l.length++
}

func (c *pageCache) unlink(i int32) {
	b := &c.blocks[i]
	l := &c.lists[b.list]
	if b.before >= 0 {
		c.blocks[b.before].after = b.after
	} else {
		l.head = b.after
	}
	if b.after >= 0 {
		c.blocks[b.after].before = b.before
	} else {
		l.tail = b.before
	}
	l.length--
}
