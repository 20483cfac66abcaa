package flash

import (
	"github.com/windrow-sim/windrow/internal/units"
)

// pageCache keeps the blocks of a mapped file that are in memory, least recently used first to go. A block is what one fault brings.
type pageCache struct {
	spec   PageCache
	most   int // blocks; 0 = no limit
	index  map[int64]int32
	blocks []block // a ring of two: most recent first, through before and after
	head   int32   // most recent; -1 when empty
	tail   int32
}

type block struct {
	number        int64
	before, after int32
}

func newPageCache(spec PageCache) *pageCache {
	c := &pageCache{spec: spec, index: map[int64]int32{}, head: -1, tail: -1}
	if spec.Capacity > 0 {
		c.most = max(int(spec.Capacity/spec.ReadAhead), 1)
	}
	return c
}

// walk goes through the bytes from at to end. It returns how many of them are in memory before the first block that is not, whether
// there is such a block, and the read that fetches it; the block is then counted as present.
func (c *pageCache) walk(at, end units.Bytes) (hit units.Bytes, fault bool, fetch Read) {
	for from := at; from < end; {
		number := int64(from / c.spec.ReadAhead)
		start := units.Bytes(number) * c.spec.ReadAhead
		if i, ok := c.index[number]; ok {
			c.touch(i)
			next := min(start+c.spec.ReadAhead, end)
			hit += next - from
			from = next
			continue
		}
		c.insert(number)
		return hit, true, Read{start, c.spec.ReadAhead}
	}
	return hit, false, Read{}
}

// insert adds a block as the most recent, in the place of the least recent when the cache is full.
func (c *pageCache) insert(number int64) {
	i := int32(len(c.blocks))
	if c.most > 0 && len(c.blocks) == c.most {
		i = c.tail
		delete(c.index, c.blocks[i].number)
		c.unlink(i)
	} else {
		c.blocks = append(c.blocks, block{})
	}
	c.blocks[i].number = number
	c.index[number] = i
	c.link(i)
}

func (c *pageCache) touch(i int32) {
	if i != c.head {
		c.unlink(i)
		c.link(i)
	}
}

func (c *pageCache) link(i int32) {
	c.blocks[i].before, c.blocks[i].after = -1, c.head
	if c.head >= 0 {
		c.blocks[c.head].before = i
	} else {
		c.tail = i
	}
	c.head = i
}

func (c *pageCache) unlink(i int32) {
	b := c.blocks[i]
	if b.before >= 0 {
		c.blocks[b.before].after = b.after
	} else {
		c.head = b.after
	}
	if b.after >= 0 {
		c.blocks[b.after].before = b.before
	} else {
		c.tail = b.before
	}
}
