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
	inactive, active    []int64
	used, again, worked map[int64]bool
	mapped, held        map[int64]bool
	gone                []int64 // evicted, with what age was then
	ages                map[int64]int
	hadWorked           map[int64]bool
	age, misses         int
}

func newPlainCache() *plainCache {
	m := func() map[int64]bool { return map[int64]bool{} }
	return &plainCache{used: m(), again: m(), worked: m(), mapped: m(), held: m(), hadWorked: m(),
		ages: map[int64]int{}}
}

func (p *plainCache) has(n int64) bool {
	return slices.Contains(p.inactive, n) || slices.Contains(p.active, n)
}

func (p *plainCache) touch(n int64, advice Advice) {
	if !p.mapped[n] {
		for m := n / 16 * 16; m < n/16*16+16; m++ {
			if p.has(m) && !p.mapped[m] && !p.held[m] {
				p.mapped[m] = true
				if !p.worked[m] && p.misses > 0 {
					p.misses--
				}
			}
		}
	}
	p.used[n] = advice == AdviseNormal
}

func (p *plainCache) insert(n int64, most int) {
	for len(p.inactive)+len(p.active) == most {
		rest := slices.IndexFunc(p.inactive, func(n int64) bool { return !p.held[n] })
		for len(p.active) > len(p.inactive) || rest < 0 {
			last := p.active[len(p.active)-1]
			p.active, p.inactive = p.active[:len(p.active)-1], slices.Insert(p.inactive, 0, last)
			p.used[last], p.worked[last] = false, true
			rest = 0
		}
		last := p.inactive[len(p.inactive)-1]
		p.inactive = p.inactive[:len(p.inactive)-1]
		switch {
		case p.held[last]:
			p.inactive = slices.Insert(p.inactive, 0, last)
		case !p.used[last]:
			p.age++
			p.gone, p.ages[last] = append(p.gone, last), p.age
			p.hadWorked[last] = p.worked[last]
		case p.again[last]:
			p.active = slices.Insert(p.active, 0, last)
			p.used[last], p.again[last] = false, false
			p.age++
		default:
			p.inactive = slices.Insert(p.inactive, 0, last)
			p.used[last], p.again[last] = false, true
		}
	}
	p.used[n], p.again[n], p.worked[n], p.mapped[n] = false, false, false, false
	if at, ok := p.ages[n]; ok && p.age-at <= len(p.active) {
		p.active = slices.Insert(p.active, 0, n)
		p.worked[n] = p.hadWorked[n]
		p.age++
	} else {
		p.inactive = slices.Insert(p.inactive, 0, n)
	}
	delete(p.ages, n)
}

// TestPageCacheAgainstPlainLists compares hits and fetches over random accesses, of which some are
// frequent, while another thread's fetches come and go.
func TestPageCacheAgainstPlainLists(t *testing.T) {
	const page, window = 4096, 6
	several, promoted, returned, single := 0, 0, 0, 0
	for round := range 60 {
		random := rand.New(rand.NewPCG(1, uint64(round)))
		most, span := 12+random.IntN(60), 20+random.IntN(200)
		advice := []Advice{AdviseNormal, AdviseNormal, AdviseRandom, AdviseSequential}[round%4]
		spec := PageCache{Capacity: units.Bytes(most) * page, ReadAhead: window * page,
			Threads: 2, Advice: advice}
		c, p := newPageCache(spec), newPlainCache()
		var held []int64
		behind := int64(-1)
		for range 1500 {
			number := int64(random.IntN(1 + random.IntN(span)))
			at := units.Bytes(number) * page
			had := p.has(number)
			got := c.walk(at, at+page)
			if want := had && !p.held[number]; got.missing == had || want != (got.hit == page) ||
				p.held[number] != (got.holder == 2) {
				t.Fatalf("%q: block %d: %+v, but the plain lists are %v %v, held %v", advice,
					number, got, p.inactive, p.active, held)
			}
			switch {
			case p.held[number]:
			case had:
				p.touch(number, advice)
			default:
				first, size := number, int64(window)
				switch advice {
				case AdviseRandom:
					size = 1
				case AdviseNormal:
					if p.misses = min(p.misses+1, 1000); p.misses > 100 {
						size = 1
						single++
					} else if number != behind {
						first = max(number-window/2, 0)
					}
				}
				behind = first + size
				var want, fetched []int64
				for n := first; n < behind; n++ {
					if !p.has(n) {
						want = append(want, n)
					}
				}
				was := len(p.active)
				for _, n := range want {
					if n != number {
						p.insert(n, most)
					}
				}
				p.insert(number, most)
				returned += max(len(p.active)-was, 0)
				p.mapped[number] = true
				reads := c.fault(at, nil)
				for _, r := range reads {
					for b := r.Offset; b < r.Offset+r.Length; b += page {
						fetched = append(fetched, int64(b/page))
					}
				}
				if !slices.Equal(fetched, want) {
					t.Fatalf("%q: block %d: fetched %v, want %v", advice, number, fetched, want)
				}
				several += len(reads) - 1
				if held == nil && random.IntN(3) == 0 { // the other thread's
					c.hold(1)
					for _, n := range want {
						if p.has(n) {
							held = append(held, n)
							p.held[n] = true
						}
					}
				} else { // the access that faulted, made again
					c.walk(at, at+page)
					p.touch(number, advice)
				}
			}
			if held != nil && random.IntN(4) == 0 {
				c.release(held, 1)
				for _, n := range held {
					p.held[n] = false
				}
				held = nil
			}
			promoted += len(p.active)
			if len(c.blocks) > most || c.lists[active].length != len(p.active) ||
				c.lists[inactive].length != len(p.inactive) || len(c.shadows) > most ||
				c.misses != p.misses {
				t.Fatalf("%d blocks, %d active, %d shadows, %d misses; want %d active, %d misses",
					len(c.blocks), c.lists[active].length, len(c.shadows), c.misses,
					len(p.active), p.misses)
			}
		}
	}
	if several == 0 || promoted == 0 || returned == 0 || single == 0 {
		t.Errorf("%d faults fetched two stretches, %d blocks were active, %d returned, %d faults "+
			"without read-ahead: nothing was tested", several, promoted, returned, single)
	}
}

// TestFrequentBlocksStay: a scan larger than memory does not evict frequently accessed blocks, as
// it would under least recently used.
func TestFrequentBlocksStay(t *testing.T) {
	const page, most, frequent = 4096, 100, 20
	c := newPageCache(PageCache{Capacity: most * page, ReadAhead: page})
	access := func(n int64) (hit bool) {
		at := units.Bytes(n) * page
		if c.walk(at, at+page).missing {
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
		if p := c.walk(units.GiB, units.GiB+min(ahead/2, 4096)); p.missing || p.hit == 0 &&
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
