package flash

import (
	lists "container/list"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
)

// hits walks pages through the page cache, and through exact least recently used and first in,
// first out of the same size. It returns the hit ratios after the first third.
func hits(spec PageCache, walk []int64) (cache, lru, fifo float64) {
	c, most := newPageCache(spec), int(spec.Capacity/cachePage)
	plain := [2]struct {
		order *lists.List
		at    map[int64]*lists.Element
	}{{lists.New(), map[int64]*lists.Element{}}, {lists.New(), map[int64]*lists.Element{}}}
	var hit [3]float64
	for i, n := range walk {
		at, counted := units.Bytes(n)*cachePage, i >= len(walk)/3
		if !c.walk(at, at+1).missing {
			if counted {
				hit[0]++
			}
		} else {
			c.fault(at, nil)
			c.walk(at, at+1)
		}
		for k := range plain {
			p := &plain[k]
			if e, ok := p.at[n]; ok {
				if counted {
					hit[k+1]++
				}
				if k == 0 {
					p.order.MoveToFront(e)
				}
				continue
			}
			if p.order.Len() == most {
				delete(p.at, p.order.Remove(p.order.Back()).(int64))
			}
			p.at[n] = p.order.PushFront(n)
		}
	}
	of := float64(len(walk) - len(walk)/3)
	return hit[0] / of, hit[1] / of, hit[2] / of
}

// zipf returns n touches of pages pages by Zipf's law with the exponent 0.9, of which a share is a
// scan of all pages instead.
func zipf(pages, n int, scan float64) []int64 {
	random := rand.New(rand.NewPCG(5, 6))
	sum, total := make([]float64, pages), 0.0
	for i := range sum {
		total += math.Pow(float64(i+1), -0.9)
		sum[i] = total
	}
	walk, place, next := make([]int64, n), random.Perm(pages), 0
	for i := range walk {
		if random.Float64() < scan {
			walk[i], next = int64(next), (next+1)%pages
			continue
		}
		u, low, high := random.Float64()*total, 0, pages-1
		for low < high {
			if mid := (low + high) / 2; sum[mid] < u {
				low = mid + 1
			} else {
				high = mid
			}
		}
		walk[i] = int64(place[low])
	}
	return walk
}

// TestWalksAsLinux: what Linux 6.18 was measured to do on a file of 16,384 pages in a control group
// that holds 0.36 of it, without read-ahead. Its hit ratios were 0.784 for the Zipf walk (0.785
// under exact LRU), 0.745 with MADV_RANDOM (FIFO 0.746), and beside a scan 0.440 (LRU 0.420) and
// 0.392 (FIFO 0.392). A cyclic walk hit nothing.
func TestWalksAsLinux(t *testing.T) {
	const pages, most = 16384, 5898
	cyclic := make([]int64, 3*pages)
	for i := range cyclic {
		cyclic[i] = int64(i % pages)
	}
	for _, tt := range []struct {
		name     string
		walk     []int64
		advice   Advice
		measured float64
	}{
		{"cyclic", cyclic, AdviseNormal, 0},
		{"cyclic, advised", cyclic, AdviseRandom, 0},
		{"Zipf", zipf(pages, 120_000, 0), AdviseNormal, 0.784},
		{"Zipf, advised", zipf(pages, 120_000, 0), AdviseRandom, 0.745},
		{"beside a scan", zipf(pages, 120_000, 0.5), AdviseNormal, 0.440},
		{"beside a scan, advised", zipf(pages, 120_000, 0.5), AdviseRandom, 0.392},
	} {
		got, lru, fifo := hits(PageCache{Capacity: most * cachePage, ReadAhead: cachePage,
			Advice: tt.advice}, tt.walk)
		t.Logf("%s: %.3f, LRU %.3f, FIFO %.3f, measured %.3f", tt.name, got, lru, fifo, tt.measured)
		if math.Abs(got-tt.measured) > 0.03 {
			t.Errorf("%s: hit ratio %.3f, measured %.3f", tt.name, got, tt.measured)
		}
		if tt.advice != AdviseNormal && got != fifo {
			t.Errorf("%s: hit ratio %.4f, first in first out has %.4f", tt.name, got, fifo)
		}
		if tt.advice == AdviseNormal && got < lru-0.01 {
			t.Errorf("%s: hit ratio %.4f is below that of LRU, %.4f", tt.name, got, lru)
		}
	}
}

// TestField_C1_SparseReadsOfAMapping: touches of one page in 64 fetch a window of read-ahead each.
// With the advice "random" they fetch what they touch.
func TestField_C1_SparseReadsOfAMapping(t *testing.T) {
	for _, tt := range []struct {
		advice Advice
		ahead  units.Bytes
		factor units.Bytes // bytes fetched for a byte asked for
	}{
		{AdviseNormal, 128 * units.KiB, 32},
		{AdviseNormal, 64 * units.KiB, 16},
		{AdviseSequential, 128 * units.KiB, 32},
		{AdviseRandom, 128 * units.KiB, 1},
	} {
		s := mustStation(t, mapped(PageCache{ReadAhead: tt.ahead, Fault: 100, Advice: tt.advice}),
			Config{Engine: "mmap", Parallel: 1, Cores: 1})
		reads := make([]Read, 90)
		for i := range reads {
			reads[i] = Read{units.Bytes(i*64+40) * cachePage, cachePage}
		}
		b := mustBatch(t, s, 0, reads)
		if want := 90 * cachePage * tt.factor; b.Moved != want {
			t.Errorf("%q, %v: fetched %v for %v, want %v", tt.advice, tt.ahead, b.Moved,
				units.Bytes(90*cachePage), want)
		}
	}
}

// TestReadAheadEnds: after a hundred faults more than pages mapped from memory, a fault fetches its
// own page. Pages that were read ahead and are then used bring the read-ahead back.
func TestReadAheadEnds(t *testing.T) {
	c := newPageCache(PageCache{ReadAhead: 128 * units.KiB})
	far := func(i int) units.Bytes { return units.Bytes(i) * units.MiB }
	fetched := func(at units.Bytes) units.Bytes { return c.fault(at, nil)[0].Length }
	for i := range 150 {
		want := units.Bytes(128 * units.KiB)
		if i >= 100 {
			want = cachePage
		}
		if got := fetched(far(i + 1)); got != want {
			t.Fatalf("fault %d fetched %v, want %v", i+1, got, want)
		}
	}
	for i := range 4 { // each maps 15 pages besides the one that was mapped by its fault
		c.walk(far(i+1)+cachePage, far(i+1)+2*cachePage)
	}
	if got := fetched(far(500)); got != 128*units.KiB {
		t.Errorf("after 60 pages mapped from memory a fault fetched %v", got)
	}
}

// TestFaultsOfThreads: threads fault at once up to what the device takes, and one that touches a
// page that another fetches waits for it without a fetch of its own.
func TestFaultsOfThreads(t *testing.T) {
	for _, threads := range []int{1, 2, 8} {
		spec := mapped(PageCache{ReadAhead: cachePage, Threads: threads})
		spec.Servers, spec.Engines = 4, map[string]EngineCost{"mmap": {Cached: true}}
		cfg := Config{Engine: "mmap", Parallel: 1, Cores: 8}
		reads := make([]Read, 64)
		for i := range reads {
			reads[i] = Read{units.Bytes(i) * units.MiB, cachePage}
		}
		b := mustBatch(t, mustStation(t, spec, cfg), 0, reads)
		if want := spec.LTFB * 64 / units.Nanos(min(threads, 4)); b.End != want {
			t.Errorf("%d threads: %v, want %v", threads, b.End, want)
		}
		if got, want := spec.Throughput("mmap", 8, cachePage, 1), units.Bytes(64*cachePage).
			Over(b.End); math.Abs(float64(got)/float64(want)-1) > 1e-6 {
			t.Errorf("%d threads: closed form %v, events %v", threads, got, want)
		}
		for i := range reads {
			reads[i] = Read{8 * cachePage, cachePage}
		}
		if b = mustBatch(t, mustStation(t, spec, cfg), 0, reads); b.End != spec.LTFB ||
			b.Pieces != 1 || b.Faults != 1 {
			t.Errorf("%d threads at one page: %d fetches in %v", threads, b.Pieces, b.End)
		}
	}
}

// TestThreadsInLittleMemory: threads whose windows fill the memory end, whatever they evict.
func TestThreadsInLittleMemory(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for _, advice := range []Advice{AdviseNormal, AdviseRandom, AdviseSequential} {
		spec := mapped(PageCache{Capacity: 1, ReadAhead: 32 * units.KiB, Threads: 5,
			Advice: advice})
		s := mustStation(t, spec, Config{Engine: "mmap", Parallel: 1, Cores: 2})
		reads := make([]Read, 20_000)
		for i := range reads {
			reads[i] = Read{units.Bytes(random.IntN(100)) * cachePage, units.Bytes(1 +
				random.IntN(60_000))}
		}
		mustBatch(t, s, 0, reads)
	}
}

// TestMapAndReclaim: a fault on a page in memory maps the 64 KiB around it, and a fault that evicts
// pays for the bytes that leave.
func TestMapAndReclaim(t *testing.T) {
	spec := mapped(PageCache{Capacity: 128 * units.KiB, ReadAhead: 128 * units.KiB, Fault: 100,
		Map: 7, ReclaimRate: (128 * units.KiB).Over(500)})
	s := mustStation(t, spec, Config{Engine: "mmap", Parallel: 1, Cores: 1})
	at := units.Nanos(0)
	for i, tt := range []struct {
		read Read
		want units.Nanos
	}{
		{Read{0, cachePage}, 100 + 1000},               // fetches 0 to 64 KiB and more
		{Read{cachePage, 15 * cachePage}, 7},           // one map for the 15
		{Read{cachePage, 15 * cachePage}, 0},           // mapped
		{Read{units.MiB, cachePage}, 100 + 1000 + 500}, // as many leave
		{Read{units.MiB + cachePage, cachePage}, 7},    // another fetched page
		{Read{units.MiB - cachePage, cachePage}, 7},    // before it, in another 64 KiB
		{Read{units.MiB + 15*cachePage, cachePage}, 0}, // mapped with the second
	} {
		b := mustBatch(t, s, at, []Read{tt.read})
		if b.End-at != tt.want+30 {
			t.Errorf("read %d: %v, want %v", i, b.End-at, tt.want+30)
		}
		at = b.End
	}
}
