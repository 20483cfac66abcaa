package sweep

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"sync/atomic"

	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
)

// The grid of a table. Sizes and large numbers of reads are log-linear: every power of two is cut
// into equal steps, so that powers of two and 3/2, 5/4, … of them are on the grid.
const (
	sizeSteps = 32
	manySteps = 32
	// Up to exactReads every number has a node: with constant times a batch takes steps of as many
	// reads as there are servers.
	exactReads = 1024
	// Where times are drawn, nodes are means over drawnReads reads, and the mean is smooth in the
	// number of reads.
	exactDrawn = 32
	drawnReads = 4096
	mostDraws  = 2048

	levels = 48 * sizeSteps // sizes up to 2⁴⁸ B
)

// Table is how long batches of reads take on a device, engine and depth: nodes are computed by the
// event model when first asked for, what lies between them is interpolated. It is safe for
// concurrent use, and what it says does not depend on what it was asked before.
type Table struct {
	cfg    sim.Config
	align  int64
	drawn  bool // times or places are random
	exact  int
	levels [levels]atomic.Pointer[level]
}

// level is the nodes of one size, by number of reads.
type level struct{ nodes []node }

// node is one batch. took is stored last, and one more than it is, so that 0 means "not yet".
type node struct{ took, sojourn atomic.Int64 }

// Tabular reports whether a batch on the device of a configuration takes as long as any other such
// batch, whatever came before.
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

// ofSize returns the times of a batch of at reads, a number with nodes, whose mean size is total/n.
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

// between is linear; the conversions keep compilers from fusing operations.
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

// total is the number of bytes of a batch of n reads of a level: whole blocks, at least one per
// read.
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

// place is where the node of so many reads lies in its level.
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
	l := t.levels[index].Load()
	if l == nil {
		const octaves = 32
		t.levels[index].CompareAndSwap(nil, &level{make([]node, t.exact+octaves*manySteps)})
		l = t.levels[index].Load()
	}
	at := t.place(n)
	if at >= len(l.nodes) {
		return 0, 0, fmt.Errorf("sweep: %d reads in one batch: more than any table holds", n)
	}
	cell := &l.nodes[at]
	if took := cell.took.Load(); took != 0 {
		return units.Nanos(took - 1), units.Nanos(cell.sojourn.Load()), nil
	}
	if took, sojourn, err = t.measure(index, n); err != nil {
		return 0, 0, err
	}
	cell.sojourn.Store(int64(sojourn)) // workers that come here together store the same
	cell.took.Store(int64(took) + 1)
	return took, sojourn, nil
}

// measure asks the event model.
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

// fill makes reads of as equal sizes as whole blocks allow, the larger ones spread evenly, at
// random units of the image.
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
