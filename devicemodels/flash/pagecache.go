package flash

import (
	"math"

	"github.com/windrow-sim/windrow/internal/units"
)

// A page cache is modelled in blocks: pages, or the blocksPerWindow-th part of a fault's window
// where that is more. A wide window therefore costs no more to simulate than the usual one of 128
// KiB.
const (
	cachePage       = 4 * units.KiB
	blocksPerWindow = 32
)

// The sizes of Linux that no file system changes.
const (
	aroundWindow = 64 * units.KiB // mapped by one fault on a page in memory (fault_around_bytes)
	// A mapping with more misses than this, less the pages mapped since, gets no read-ahead
	// (MMAP_LOTSAMISS). The count goes no further than manyMisses times mostMisses.
	manyMisses = 100
	mostMisses = 10 * manyMisses
)

// fetch is the number of bytes that one fault fetches, at most.
func (p *PageCache) fetch() units.Bytes {
	if p.Advice == AdviseRandom {
		return cachePage
	}
	return p.ReadAhead
}

// readers is the number of threads that fault at once.
func (p *PageCache) readers() int { return max(p.Threads, 1) }

// blocks returns the size of a block and the number of blocks that one fault fetches.
func (p *PageCache) blocks() (block units.Bytes, window int64) {
	size := p.fetch()
	block = max((size/blocksPerWindow+cachePage-1)/cachePage*cachePage, cachePage)
	return block, int64((size-1)/block + 1)
}

// before is the number of blocks of a window that lie before the fault.
func (p *PageCache) before(window int64) int64 {
	if p.Advice != AdviseNormal {
		return 0
	}
	return window / 2
}

// faults is the number of faults of a read of chunk bytes with none of them in memory. The first
// window lies around the start of the read, the following windows are contiguous.
func (p *PageCache) faults(chunk units.Bytes) float64 {
	block, window := p.blocks()
	first := units.Bytes(window-p.before(window)) * block
	whole := units.Bytes(window) * block
	return float64(1 + max(chunk-first+whole-1, 0)/whole)
}

// pageCache is the set of resident blocks of a mapped file, as Linux 6 keeps it.
//
// A fault fetches the missing blocks of the window around it, half before and half behind
// (do_sync_mmap_readahead in mm/filemap.c). A fault at the end of the last window fetches the
// window behind it. A mapping with many more misses than hits gets single blocks. Touching a
// resident block for the first time maps the resident blocks of aroundWindow.
//
// Eviction is that of mm/vmscan.c, which is not least recently used: an access only sets a mark.
// New blocks enter the inactive list and are examined at its end. A block without a mark is
// evicted. A block with a mark loses it and gets a second round, or becomes active after its
// second. A block that returns before as many others were evicted or activated as are active is
// active at once (mm/workingset.c). When the active list is more than ratio times as long as the
// inactive one, its last blocks become inactive. With advice the marks do not count, so that blocks
// leave in the order of their fetches.
type pageCache struct {
	spec    PageCache
	block   units.Bytes
	window  int64 // blocks
	around  int64 // blocks mapped by one fault on a resident block
	most    int   // blocks; 0 = no limit
	ratio   int   // of the lists' lengths
	index   index
	blocks  []cached
	lists   [2]list // inactive, active
	behind  int64   // the first block behind the last window
	missing []int64 // of one fault, reused
	evicted int     // blocks, by one fault
	misses  int     // faults without the block in memory, less pages mapped since

	age       int64 // evictions and activations
	shadows   map[int64]shadow
	shadowed  []int64 // ring of the last evictions, of which shadows has an entry
	evictions int64
}

// shadow is what is kept of an evicted block.
type shadow struct {
	age, eviction int64
	worked        bool
}

// cached is a block in memory.
type cached struct {
	number        int64
	before, after int32 // in its list; -1 = none
	holder        int32 // the slot that fetches it, plus 1; 0 = it is there
	list          uint8
	used, again   bool // accessed since its last examination; had a second round
	mapped        bool
	worked        bool // was active
}

// index finds resident blocks by number. Neighbours lie together, as files are mostly read along.
type index struct {
	parts  map[int64]*part
	recent *part // nil before the first access
	at     int64 // of recent
}

// part is the index of partBlocks neighbours.
type part struct {
	held  int
	slots [partBlocks]int32 // index of the block plus 1; 0 = not resident
}

const partBlocks = 64

func (x *index) part(number int64) *part {
	at := number / partBlocks
	if x.recent == nil || x.at != at {
		p := x.parts[at]
		if p == nil {
			return nil
		}
		x.recent, x.at = p, at
	}
	return x.recent
}

func (x *index) get(number int64) (int32, bool) {
	if p := x.part(number); p != nil {
		i := p.slots[number%partBlocks]
		return i - 1, i > 0
	}
	return 0, false
}

func (x *index) put(number int64, i int32) {
	p := x.part(number)
	if p == nil {
		p = &part{}
		x.parts[number/partBlocks] = p
	}
	p.slots[number%partBlocks] = i + 1
	p.held++
}

func (x *index) remove(number int64) {
	p := x.part(number)
	p.slots[number%partBlocks] = 0
	if p.held--; p.held == 0 {
		delete(x.parts, number/partBlocks)
		x.recent = nil
	}
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
	held       int // of them being fetched
}

func newPageCache(spec PageCache) *pageCache {
	c := &pageCache{spec: spec, index: index{parts: map[int64]*part{}},
		lists: [2]list{{head: -1, tail: -1}, {head: -1, tail: -1}}, behind: -1,
		shadows: map[int64]shadow{}, ratio: 1}
	c.block, c.window = spec.blocks()
	c.around = max(int64(aroundWindow/c.block), 1)
	if spec.Capacity > 0 {
		// a window per thread is being fetched, and such blocks stay
		c.most = int(max(int64(spec.Capacity/c.block), c.window*int64(spec.readers())))
		if whole := units.Bytes(c.most) * c.block / units.GiB; whole > 0 {
			c.ratio = int(math.Sqrt(10 * float64(whole))) // inactive_is_low in mm/vmscan.c
		}
	}
	return c
}

// passage is how far a walk came.
type passage struct {
	hit     units.Bytes // resident
	maps    int         // faults on resident blocks that were not mapped
	missing bool        // the next byte is not in memory
	holder  int32       // the slot that fetches the next byte, plus 1; 0 = none
}

// walk accesses the bytes from at to end, up to the first that is not there.
func (c *pageCache) walk(at, end units.Bytes) (p passage) {
	for from := at; from < end; {
		number := int64(from / c.block)
		i, ok := c.index.get(number)
		if !ok {
			p.missing = true
			return p
		}
		b := &c.blocks[i]
		if b.holder > 0 {
			p.holder = b.holder
			return p
		}
		if !b.mapped {
			p.maps += c.mapAround(number)
		}
		b.used = c.spec.Advice == AdviseNormal
		next := min(units.Bytes(number+1)*c.block, end)
		p.hit += next - from
		from = next
	}
	return p
}

// mapAround maps the resident blocks around one and returns the number of faults.
func (c *pageCache) mapAround(number int64) (faults int) {
	first := number / c.around * c.around
	for n := first; n < first+c.around; n++ {
		i, ok := c.index.get(n)
		if !ok {
			continue
		}
		if b := &c.blocks[i]; b.holder == 0 && !b.mapped {
			b.mapped = true
			if !b.worked { // else it was evicted lately: no sign that read-ahead helps
				c.misses = max(c.misses-int(c.block/cachePage), 0)
			}
		}
	}
	return int(max((c.block+aroundWindow-1)/aroundWindow, 1))
}

// fault appends to reads the fetches of a fault at a missing byte, and inserts their blocks.
func (c *pageCache) fault(at units.Bytes, reads []Read) []Read {
	number := int64(at / c.block)
	first, window := max(number-c.spec.before(c.window), 0), c.window
	if number == c.behind {
		first = number
	}
	if c.spec.Advice == AdviseNormal {
		c.misses = min(c.misses+1, mostMisses)
		if c.misses > manyMisses {
			first, window = number, 1
		}
	}
	c.behind = first + window
	c.missing, c.evicted = c.missing[:0], 0
	for n := first; n < c.behind; n++ {
		if _, ok := c.index.get(n); ok {
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
	c.blocks[c.insert(number)].mapped = true // last, so that no other block evicts it
	return reads
}

// hold marks the blocks of the last fault as being fetched by a slot: they are not evicted, and
// others wait for them.
func (c *pageCache) hold(slot int32) {
	for _, n := range c.missing {
		if i, ok := c.index.get(n); ok {
			c.blocks[i].holder = slot + 1
			c.lists[c.blocks[i].list].held++
		}
	}
}

// release ends the fetch of blocks by a slot.
func (c *pageCache) release(numbers []int64, slot int32) {
	for _, n := range numbers {
		if i, ok := c.index.get(n); ok && c.blocks[i].holder == slot+1 {
			c.blocks[i].holder = 0
			c.lists[c.blocks[i].list].held--
		}
	}
}

// insert adds a block and returns its index; a full cache evicts another.
func (c *pageCache) insert(number int64) int32 {
	i := int32(len(c.blocks))
	if c.most > 0 && len(c.blocks) == c.most {
		i = c.evict()
	} else {
		c.blocks = append(c.blocks, cached{})
	}
	b := &c.blocks[i]
	*b = cached{number: number}
	c.index.put(number, i)
	to := uint8(inactive)
	if s, ok := c.shadows[number]; ok {
		delete(c.shadows, number)
		if c.age-s.age <= int64(c.lists[active].length) {
			to, b.worked = active, s.worked
			c.age++
		}
	}
	c.link(i, to)
	return i
}

// evict removes a block and returns its index.
func (c *pageCache) evict() int32 {
	for {
		// also when all that are inactive are being fetched
		for c.lists[active].length > c.ratio*c.lists[inactive].length ||
			c.lists[inactive].held == c.lists[inactive].length {
			i := c.lists[active].tail
			c.blocks[i].used, c.blocks[i].worked = false, true
			c.move(i, inactive)
		}
		i := c.lists[inactive].tail
		b := &c.blocks[i]
		switch {
		case b.holder > 0:
			c.move(i, inactive)
		case !b.used:
			c.index.remove(b.number)
			c.unlink(i)
			c.remember(b)
			c.evicted++
			return i
		case b.again:
			b.used, b.again = false, false
			c.move(i, active)
			c.age++
		default:
			b.used, b.again = false, true
			c.move(i, inactive)
		}
	}
}

// remember keeps the shadow of an evicted block. No more are kept than blocks fit into memory:
// older ones are beyond the length of any active list.
func (c *pageCache) remember(b *cached) {
	at := int(c.evictions % int64(c.most))
	if at < len(c.shadowed) {
		if old, ok := c.shadows[c.shadowed[at]]; ok && old.eviction == c.evictions-int64(c.most) {
			delete(c.shadows, c.shadowed[at])
		}
		c.shadowed[at] = b.number
	} else {
		c.shadowed = append(c.shadowed, b.number)
	}
	c.age++
	c.shadows[b.number] = shadow{age: c.age, eviction: c.evictions, worked: b.worked}
	c.evictions++
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
	if b.holder > 0 {
		l.held++
	}
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
	if b.holder > 0 {
		l.held--
	}
}
