package sweep

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
	"unsafe"

	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
)

// The grid of a table. Sizes and large numbers of reads are log-linear: every power of two is
// divided into equal steps. Powers of two, and 3/2, 5/4, … of them, are on the grid.
const (
	sizeSteps = 32
	manySteps = 32
	// Up to exactReads every number has a node: with constant times, the time of a batch is a
	// staircase whose steps are the number of servers wide.
	exactReads = 1024
	// With random times, nodes are means over drawnReads reads. The mean is smooth in the number of
	// reads, so that fewer nodes are enough.
	exactDrawn = 32
	drawnReads = 4096
	mostDraws  = 2048

	levels = 48 * sizeSteps // sizes up to 2⁴⁸ B
)

// Table holds the times of batches of reads for a device, engine and depth. The event model
// computes a node when it is first needed. Times between nodes are interpolated. A Table is safe
// for concurrent use, and its times do not depend on the order of calls.
type Table struct {
	cfg    sim.Config
	align  int64
	drawn  bool // times or places are random
	exact  int
	levels [levels]atomic.Pointer[level]
}

// level holds the nodes of one size, by number of reads. Blocks of nodes are made when they are
// needed: a sweep of many depths has as many tables.
type level struct{ blocks []atomic.Pointer[block] }

// block is some nodes with consecutive numbers of reads.
type block [blockNodes]node

const blockNodes = 64

// node is one batch. took is stored last, plus one: 0 means that it is not computed yet.
type node struct{ took, sojourn atomic.Int64 }

// Tabular reports whether the time of a batch on the device of a configuration is independent of
// earlier batches.
func Tabular(cfg *sim.Config) bool {
	f := &cfg.Device.Flash
	others := f.Background != nil && f.Background.Rate > 0 && f.Background.Chunk > 0
	return f.Limit == nil && f.Sustained == nil && !others && !f.Engines[cfg.Engine].Cached
}

// NewTable returns an empty table for a checked configuration that is Tabular.
func NewTable(cfg sim.Config) *Table {
	f := &cfg.Device.Flash
	t := &Table{cfg: cfg, align: int64(cfg.Layout.Align), exact: exactReads}
	t.drawn = f.Placement == flash.PlaceByAddress || !f.LTFBShape.IsZero() ||
		f.Page > cfg.Layout.Align
	if t.drawn {
		t.exact = exactDrawn
	}
	return t
}

// bytes is the memory of the table, which grows with the batches that were asked for.
func (t *Table) bytes() int {
	sum := int(unsafe.Sizeof(*t))
	for i := range t.levels {
		l := t.levels[i].Load()
		if l == nil {
			continue
		}
		sum += len(l.blocks) * int(unsafe.Sizeof(l.blocks[0]))
		for k := range l.blocks {
			if l.blocks[k].Load() != nil {
				sum += int(unsafe.Sizeof(block{}))
			}
		}
	}
	return sum
}

// Time returns how long a batch of n ≥ 1 reads of total bytes takes, and the sum of the times of
// its reads.
func (t *Table) Time(n int, total units.Bytes) (took, sojourn units.Nanos, err error) {
	low := t.below(n)
	tookLow, sojournLow, err := t.ofSize(low, n, total)
	if err != nil || low == n {
		return tookLow, sojournLow, err
	}
	high := t.above(low)
	tookHigh, sojournHigh, err := t.ofSize(high, n, total)
	share := float64(n-low) / float64(high-low)
	return between(tookLow, tookHigh, share), between(sojournLow, sojournHigh, share), err
}

// ofSize returns the times of a batch of at reads with the mean size total/n. at has nodes.
func (t *Table) ofSize(at, n int, total units.Bytes) (took, sojourn units.Nanos, err error) {
	mean := total / units.Bytes(n)
	low, base := sizeLevel(mean)
	tookLow, sojournLow, err := t.node(low, at)
	from := t.total(low, at)
	want := total
	if at != n {
		want = units.Bytes(float64(total) / float64(n) * float64(at))
	}
	if err != nil || int64(want) == from || base == mean && mean*units.Bytes(n) == total {
		return tookLow, sojournLow, err
	}
	to := t.total(low+1, at)
	if to == from {
		return tookLow, sojournLow, nil
	}
	tookHigh, sojournHigh, err := t.node(low+1, at)
	share := float64(int64(want)-from) / float64(to-from)
	return between(tookLow, tookHigh, share), between(sojournLow, sojournHigh, share), err
}

// between interpolates linearly. The conversions keep compilers from fusing operations.
func between(low, high units.Nanos, share float64) units.Nanos {
	return max(low+units.Nanos(float64(float64(high-low)*share)), 0)
}

// sizeLevel returns the level at or below a size, and its size.
func sizeLevel(size units.Bytes) (index int, base units.Bytes) {
	v := uint64(max(size, sizeSteps))
	octave := bits.Len64(v) - 1
	step := int((v - 1<<octave) * sizeSteps >> octave)
	index = min(octave*sizeSteps+step, levels-2)
	return index, sizeOf(index)
}

func sizeOf(level int) units.Bytes {
	octave, step := level/sizeSteps, level%sizeSteps
	return units.Bytes(1<<octave + step<<octave/sizeSteps)
}

// total is the size of a batch of n reads of a level: whole blocks, at least one per read.
func (t *Table) total(level, n int) int64 {
	return max((int64(sizeOf(level))*int64(n)+t.align/2)/t.align, int64(n)) * t.align
}

// below returns the largest number of reads with nodes that is at most n.
func (t *Table) below(n int) int {
	if n <= t.exact {
		return n
	}
	octave := bits.Len(uint(n)) - 1
	return n >> max(octave-5, 0) << max(octave-5, 0) // 5 bits are manySteps
}

// above returns the next number with nodes.
func (t *Table) above(low int) int { return low + max(1<<(bits.Len(uint(low))-1)/manySteps, 1) }

// place is the index in its level of the node of n reads.
func (t *Table) place(n int) int {
	if n <= t.exact {
		return n - 1
	}
	octave := bits.Len(uint(n)) - 1
	first := bits.Len(uint(t.exact)) - 1
	return t.exact + (octave-first)*manySteps + (n-1<<octave)*manySteps>>octave
}

// node returns the times of n reads of a level.
func (t *Table) node(index, n int) (took, sojourn units.Nanos, err error) {
	const octaves = 32
	l := orNew(&t.levels[index], func() *level {
		return &level{make([]atomic.Pointer[block], (t.exact+octaves*manySteps+blockNodes-1)/
			blockNodes)}
	})
	at := t.place(n)
	if at >= len(l.blocks)*blockNodes {
		return 0, 0, fmt.Errorf("sweep: %d reads in one batch: more than any table holds", n)
	}
	cell := &orNew(&l.blocks[at/blockNodes], func() *block { return &block{} })[at%blockNodes]
	if took := cell.took.Load(); took != 0 {
		return units.Nanos(took - 1), units.Nanos(cell.sojourn.Load()), nil
	}
	if took, sojourn, err = t.measure(index, n); err != nil {
		return 0, 0, err
	}
	cell.sojourn.Store(int64(sojourn)) // concurrent workers store the same value
	cell.took.Store(int64(took) + 1)
	return took, sojourn, nil
}

// orNew returns what a pointer points to. Where there is nothing yet, it makes it once.
func orNew[T any](at *atomic.Pointer[T], make func() *T) *T {
	if v := at.Load(); v != nil {
		return v
	}
	at.CompareAndSwap(nil, make())
	return at.Load()
}

// measure computes a node with the event model.
func (t *Table) measure(index, n int) (took, sojourn units.Nanos, err error) {
	name := fmt.Sprintf("sweep/table/%d/%d", index, n)
	random := rng.Stream(rng.DefaultSeed, name)
	station, err := t.cfg.NewStation(random.Uint64())
	if err != nil {
		return 0, 0, err
	}
	draws := 1
	if t.drawn {
		draws = min(max(drawnReads/n, 1), mostDraws)
	}
	reads := make([]flash.Read, n)
	start := units.Nanos(0)
	for range draws {
		t.fill(reads, t.total(index, n), random)
		batch, err := station.Batch(start, reads)
		if err != nil {
			return 0, 0, err
		}
		sojourn += batch.Sojourn
		start = batch.End
	}
	return start / units.Nanos(draws), sojourn / units.Nanos(draws), nil
}

// fill makes reads at random units of the image. Their sizes are as equal as whole blocks allow,
// and the larger ones are spread evenly.
func (t *Table) fill(reads []flash.Read, total int64, random *rand.Rand) {
	geo, n := &t.cfg.Geometry, int64(len(reads))
	blocks := total / t.align
	size, more := blocks/n, blocks%n
	for i := range n {
		length := size
		if (i+1)*more/n != i*more/n {
			length++
		}
		at := geo.Base[random.IntN(len(geo.Base))] + random.Int64N(int64(geo.Units))*int64(
			geo.Stride)
		reads[i] = flash.Read{Offset: units.Bytes(at / t.align * t.align),
			Length: units.Bytes(length * t.align)}
	}
}
