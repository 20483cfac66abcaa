package flash

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
)

func mapped(cache PageCache) Spec {
	return Spec{Servers: 1, LTFB: 1000, Align: 512, PageCache: &cache,
		Engines: map[string]EngineCost{"mmap": {Submit: 10, Complete: 20, Cached: true}}}
}

// TestPageCacheByHand follows four reads: two faults, a hit, and another fault after the memory was
// full.
func TestPageCacheByHand(t *testing.T) {
	spec := mapped(PageCache{Capacity: 2 * 4096, ReadAhead: 4096, Fault: 100, HitRate: 4096 *
		units.MBps})
	s := mustStation(t, spec, Config{Engine: "mmap", Parallel: 64, Cores: 4})
	const hit = 1000 // 4096 B at 4.096 GB/s
	at := units.Nanos(0)
	for i, tt := range []struct {
		read   Read
		faults int
		hits   units.Nanos // whole blocks copied
	}{
		{Read{0, 4096}, 1, 1},
		{Read{4096, 8192}, 2, 2}, // pushes block 0 out
		{Read{8192, 4096}, 0, 1},
		{Read{0, 4096}, 1, 1},
	} {
		b := mustBatch(t, s, at, []Read{tt.read})
		if want := 30 + units.Nanos(tt.faults)*(100+1000) + tt.hits*hit; b.End-at != want ||
			b.Pieces != tt.faults {
			t.Errorf("read %d: %d faults in %v, want %d in %v", i, b.Pieces, b.End-at, tt.faults,
				want)
		}
		at = b.End
	}
}

// TestWindows: a fault fetches the window around it, resident blocks are not fetched again, and a
// copy at the end of a window gets the next window.
func TestWindows(t *testing.T) {
	const page = 4096
	c := newPageCache(PageCache{ReadAhead: 8 * page})
	for _, tt := range []struct {
		what string
		at   units.Bytes
		want Read
	}{
		{"around", 100 * page, Read{96 * page, 8 * page}},
		{"in the midst of a page", 92*page + 5, Read{88 * page, 8 * page}},
		{"101 to 103 are there", 105 * page, Read{104 * page, 5 * page}},
		{"where the last window ended", 109 * page, Read{109 * page, 8 * page}},
		{"near the start of the file", 2 * page, Read{0, 8 * page}},
		{"where another window ended", 117 * page, Read{117 * page, 4 * page}},
	} {
		if got := c.fault(tt.at, nil); len(got) != 1 || got[0] != tt.want {
			t.Errorf("%s: %v, want %v", tt.what, got, tt.want)
		}
	}
}

// plainCache does the same as pageCache, with plain lists, most recent first.
type plainCache struct {
	inactive, active []int64
	used, again      map[int64]bool
}

func (p *plainCache) has(n int64) bool {
	return slices.Contains(p.inactive, n) || slices.Contains(p.active, n)
}

func (p *plainCache) insert(n int64, most int) {
	for len(p.inactive)+len(p.active) == most {
		for len(p.active) > len(p.inactive) {
			last := p.active[len(p.active)-1]
			p.active, p.inactive = p.active[:len(p.active)-1], slices.Insert(p.inactive, 0, last)
			p.used[last] = false
		}
		last := p.inactive[len(p.inactive)-1]
		p.inactive = p.inactive[:len(p.inactive)-1]
		if p.used[last] {
			if p.again[last] {
				p.active = slices.Insert(p.active, 0, last)
			} else {
				p.inactive = slices.Insert(p.inactive, 0, last)
			}
			p.used[last], p.again[last] = false, !p.again[last]
		}
	}
	p.inactive = slices.Insert(p.inactive, 0, n)
	p.used[n], p.again[n] = false, false
}

// TestPageCacheAgainstPlainLists compares hits and fetches over random accesses, of which some are
// frequent.
func TestPageCacheAgainstPlainLists(t *testing.T) {
	const page, window, most = 4096, 6, 17
	c := newPageCache(PageCache{Capacity: most * page, ReadAhead: window * page})
	p := &plainCache{used: map[int64]bool{}, again: map[int64]bool{}}
	random := rand.New(rand.NewPCG(1, 2))
	behind, several, promoted := int64(-1), 0, 0
	for range 5000 {
		number := int64(random.IntN(1 + random.IntN(60)))
		at := units.Bytes(number) * page
		had := p.has(number)
		if hit, fault := c.walk(at, at+page); fault == had || hit != page && had {
			t.Fatalf("block %d: fault %v after %v, but the plain lists are %v %v", number, fault,
				hit, p.inactive, p.active)
		}
		if !had {
			first := max(number-window/2, 0)
			if number == behind {
				first = number
			}
			behind = first + window
			var want, got []int64
			for n := first; n < behind; n++ {
				if !p.has(n) {
					want = append(want, n)
				}
			}
			for _, n := range want {
				if n != number {
					p.insert(n, most)
				}
			}
			p.insert(number, most)
			reads := c.fault(at, nil)
			for _, r := range reads {
				for b := r.Offset; b < r.Offset+r.Length; b += page {
					got = append(got, int64(b/page))
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("block %d: fetched %v, want %v", number, got, want)
			}
			several += len(reads) - 1
			c.walk(at, at+page) // the access that faulted, made again
		}
		p.used[number] = true
		promoted += len(p.active)
		if len(c.blocks) > most || len(c.index) != len(c.blocks) ||
			c.lists[active].length != len(p.active) {
			t.Fatalf("%d blocks, %d in the index, %d active", len(c.blocks), len(c.index),
				c.lists[active].length)
		}
	}
	if several == 0 || promoted == 0 {
		t.Errorf("%d faults fetched two stretches, %d blocks became active: nothing was tested",
			several, promoted)
	}
}

// TestFrequentBlocksStay: a scan larger than memory does not evict frequently accessed blocks, as
// it would under least recently used.
func TestFrequentBlocksStay(t *testing.T) {
	const page, most, frequent = 4096, 100, 20
	c := newPageCache(PageCache{Capacity: most * page, ReadAhead: page})
	access := func(n int64) (hit bool) {
		at := units.Bytes(n) * page
		if _, fault := c.walk(at, at+page); fault {
			c.fault(at, nil)
			c.walk(at, at+page)
			return false
		}
		return true
	}
	scan := int64(1000)
	for range 50 {
		for n := range int64(frequent) {
			access(n)
		}
		for range 10 {
			access(scan)
			scan++
		}
	}
	for range 3 * most {
		access(scan)
		scan++
	}
	for n := range int64(frequent) {
		if !access(n) {
			t.Errorf("block %d is gone", n)
		}
	}
}

// TestWideWindows: a wide window has coarser blocks and fetches the same bytes.
func TestWideWindows(t *testing.T) {
	for _, ahead := range []units.Bytes{1, 4096, 100_000, 128 * units.KiB, 1_000_001,
		8 * units.MiB} {
		c := newPageCache(PageCache{ReadAhead: ahead})
		reads := c.fault(units.GiB, nil)
		if len(reads) != 1 || reads[0].Length < ahead || reads[0].Length > max(ahead+ahead/8,
			4096) || len(c.blocks) > 32 {
			t.Errorf("%v: %v in %d blocks", ahead, reads, len(c.blocks))
		}
		if hit, fault := c.walk(units.GiB, units.GiB+min(ahead/2, 4096)); fault || hit == 0 &&
			ahead > 1 {
			t.Errorf("%v: the byte that faulted is not in memory", ahead)
		}
	}
}

// TestFaultRate: cold reads far apart take the same time in the events and in the closed form, for
// any size, also when the device splits them.
func TestFaultRate(t *testing.T) {
	for _, split := range []units.Bytes{0, 32 * units.KiB} {
		spec := mapped(PageCache{ReadAhead: 128 * units.KiB, Fault: 5000, FillRate: 20 * units.GBps,
			HitRate: 8 * units.GBps})
		spec.Servers, spec.LTFB, spec.ServerRate, spec.LinkRate, spec.MaxTransfer = 8, 70_000,
			900*units.MBps, 3*units.GBps, split
		for _, chunk := range []units.Bytes{4096, 16 * units.KiB, 64 * units.KiB, 68 * units.KiB,
			192 * units.KiB, 196 * units.KiB, units.MiB} {
			s := mustStation(t, spec, Config{Engine: "mmap", Parallel: 1, Cores: 2})
			reads := make([]Read, 50)
			for i := range reads {
				reads[i] = Read{units.Bytes(i+1) * 16 * units.MiB, chunk}
			}
			b := mustBatch(t, s, 0, reads)
			got, want := float64(chunk*50)/b.End.Seconds(), float64(spec.Throughput("mmap", 2,
				chunk, 1))
			if off := math.Abs(got/want - 1); off > 0.005 && (split == 0 || off > 0.1) {
				t.Errorf("%v split at %v: %.4g B/s in the events, closed form %.4g", chunk, split,
					got, want)
			}
		}
	}
}
