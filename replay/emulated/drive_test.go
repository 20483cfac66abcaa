package emulated

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/units"
)

const ms = units.Millisecond

// loop reads with threads that are never late: in the device's own time, without a clock.
func loop(d *drive, reads []flash.Read, threads int) (end, sojourn units.Nanos,
	times []units.Nanos) {
	done := make(chan *request, threads)
	next := 0
	take := func(r *request) {
		if next < len(reads) {
			r.index = next
			next++
			d.ask(r, reads[r.index].Offset, reads[r.index].Length)
		}
	}
	times = make([]units.Nanos, len(reads))
	for range threads {
		take(&request{done: done})
	}
	for at, busy := d.next(); busy; at, busy = d.next() {
		d.until(at)
		for len(done) > 0 {
			r := <-done
			end = max(end, r.due)
			sojourn += r.due - r.ready
			times[r.index] = r.due - r.ready
			r.ready = r.due
			take(r)
		}
	}
	return end, sojourn, times
}

// random reads of 512 B to 32 KiB in a gibibyte.
func random(n int) []flash.Read {
	draw := rand.New(rand.NewPCG(5, 6))
	reads := make([]flash.Read, n)
	for i := range reads {
		reads[i] = flash.Read{Offset: 512 * units.Bytes(draw.IntN(1<<21)), Length: 512 *
			units.Bytes(1+draw.IntN(64))}
	}
	return reads
}

func shape() flash.Histogram {
	var h flash.Histogram
	for i := range units.Nanos(40) {
		h.Add(units.Millisecond+i*i*10_000, 41-int64(i))
	}
	return h
}

// variants are devices with one part more than testFlash, and one with all of them.
func variants() map[string]flash.Spec {
	all := map[string]flash.Spec{}
	add := func(name string, change func(f *flash.Spec)) {
		f := testFlash()
		f.ServerRate, f.LinkRate = 40*units.MBps, 60*units.MBps
		f.Engines = map[string]flash.EngineCost{string(flashio.EngineEmulated): {}}
		change(&f)
		all[name] = f
	}
	add("plain", func(*flash.Spec) {})
	add("shape", func(f *flash.Spec) { f.LTFBShape = shape() })
	add("address", func(f *flash.Spec) { f.Servers, f.Placement = 8, flash.PlaceByAddress })
	add("iops", func(f *flash.Spec) { f.MaxIOPS = 700 })
	add("queue", func(f *flash.Spec) { f.Servers, f.QueueDepth = 8, 5 })
	add("split", func(f *flash.Spec) { f.MaxTransfer = 4096 })
	add("pages", func(f *flash.Spec) { f.Page, f.ServerRate = 16*units.KiB, 4*units.MBps })
	add("limit", func(f *flash.Spec) {
		f.Limit = &flash.Limit{Rate: 8 * units.MBps, Interval: 20 *
			ms}
	})
	add("smooth limit", func(f *flash.Spec) {
		f.Limit = &flash.Limit{Rate: 8 * units.MBps,
			IOPS: 500}
	})
	add("burst", func(f *flash.Spec) {
		f.Limit = &flash.Limit{Rate: 8 * units.MBps, IOPS: 500, Interval: 5 * ms, Burst: 2 *
			units.MiB}
	})
	add("spans", func(f *flash.Spec) {
		f.Spans = []flash.Span{{Within: units.MiB}, {MaxIOPS: 600,
			ExtraLTFB: ms}}
	})
	add("everything", func(f *flash.Spec) {
		f.Servers, f.Placement, f.MaxIOPS, f.QueueDepth, f.Page, f.MaxTransfer = 8,
			flash.PlaceByAddress, 2000, 6, 4096, 8192
		f.LTFBShape = shape()
		f.Limit = &flash.Limit{Rate: 30 * units.MBps, IOPS: 1500, Interval: 5 * ms}
		f.Spans = []flash.Span{{ExtraLTFB: ms / 2}}
	})
	return all
}

func station(t *testing.T, spec flash.Spec, reads []flash.Read, threads int) flash.BatchResult {
	t.Helper()
	s, err := flash.NewStation(spec, flash.Config{Engine: string(flashio.EngineEmulated),
		Parallel: threads, Cores: 2, Seed: 9})
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Batch(0, reads)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestAgreesWithStation: two independent implementations of one specification take the same time,
// part by part. Where latencies are drawn, or places hashed, they agree in the mean.
func TestAgreesWithStation(t *testing.T) {
	reads := random(3000)
	for name, spec := range variants() {
		for _, threads := range []int{1, 4, 16} {
			want := station(t, spec, reads, threads)
			end, sojourn, _ := loop(newDrive(spec.Within(0), 3), reads, threads)
			tolerance := 0.001
			if !spec.LTFBShape.IsZero() || spec.Placement == flash.PlaceByAddress {
				tolerance = 0.03
			}
			off, offSojourn := float64(end)/float64(want.End)-1,
				float64(sojourn)/float64(want.Sojourn)-1
			if math.Abs(off) > tolerance || math.Abs(offSojourn) > tolerance {
				t.Errorf("%s, %d threads: %v (%+.2f %% of the station), all reads %v (%+.2f %%)",
					name, threads, end, 100*off, sojourn, 100*offSojourn)
			}
		}
	}
}

// times of reads that are all asked for at time 0, or one after the other.
func timesOf(spec flash.Spec, reads []flash.Read, threads int) []units.Nanos {
	_, _, times := loop(newDrive(spec, 1), reads, threads)
	return times
}

func equal(t *testing.T, what string, got []units.Nanos, want ...units.Nanos) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: reads took %v, want %v", what, got, want)
	}
}

// TestByHand: cases that can be computed with a pencil.
func TestByHand(t *testing.T) {
	four := []flash.Read{{Offset: 0, Length: 4000}, {Offset: 8192, Length: 4000}, {Offset: 16384,
		Length: 4000}, {Offset: 24576, Length: 4000}}
	plain := flash.Spec{Servers: 8, LTFB: 2 * ms}

	iops := plain
	iops.MaxIOPS = 100
	equal(t, "100 requests per second", timesOf(iops, four, 4), 12*ms, 22*ms, 32*ms, 42*ms)

	queue := plain
	queue.QueueDepth = 3
	equal(t, "a queue of 3", timesOf(queue, four, 4), 2*ms, 2*ms, 2*ms, 4*ms)

	address := plain
	address.Placement, address.Servers = flash.PlaceByAddress, 1<<20
	same := []flash.Read{{Offset: 4096}, {Offset: 4608}, {Offset: 8191}, {Offset: 8192}}
	equal(t, "three reads of one stripe", timesOf(address, same, 4), 2*ms, 4*ms, 6*ms, 2*ms)
	address.Stripe = 1 << 20
	equal(t, "four reads of one stripe", timesOf(address, same, 4), 2*ms, 4*ms, 6*ms, 8*ms)

	link := plain
	link.LinkRate = units.MBps // 4 ms for 4000 B
	equal(t, "the link", timesOf(link, four[:2], 2), 6*ms, 10*ms)
	link.ServerRate = units.MBps / 2
	equal(t, "the link, fed by slow servers", timesOf(link, four[:3], 3), 10*ms, 10*ms, 14*ms)

	split := plain
	split.Servers, split.MaxTransfer = 2, 1000
	equal(t, "four pieces on two servers", timesOf(split, four[:1], 1), 4*ms)
	split.ServerRate = units.MBps
	equal(t, "four pieces on two servers of 1 MB/s", timesOf(split, four[:1], 1), 6*ms)

	pages := plain
	pages.Page, pages.ServerRate = 4096, 4096*1000 // 1 ms per page
	equal(t, "pages", timesOf(pages, []flash.Read{{Offset: 0, Length: 512}, {Offset: 3584,
		Length: 1024}, {Offset: 4096, Length: 8192}}, 1), 3*ms, 4*ms, 4*ms)
}

// TestLimitByHand: credit of 1000 B every 10 ms.
func TestLimitByHand(t *testing.T) {
	pass := func(l *limit, at units.Nanos, size units.Bytes, want units.Nanos) {
		t.Helper()
		if got := l.pass(at, size); got != want {
			t.Errorf("%d bytes at %v pass at %v, want %v", size, at, got, want)
		}
	}
	slices := newLimit(flash.Limit{Rate: units.MBps / 10, Interval: 10 * ms})
	pass(slices, 3*ms, 600, 3*ms)   // full: intervals start here
	pass(slices, 4*ms, 400, 4*ms)   // empty
	pass(slices, 5*ms, 1, 13*ms)    // the next interval
	pass(slices, 5*ms, 2999, 23*ms) // 999 B were left and add to the next 1000: 1000 B are owed
	pass(slices, 24*ms, 1000, 43*ms)
	pass(slices, 35*ms, 1, 53*ms) // in order: not before the last
	pass(slices, 88*ms, 1000, 88*ms)
	pass(slices, 97*ms, 1, 98*ms) // the intervals started at 88 ms

	burst := newLimit(flash.Limit{Rate: units.MBps / 10, Interval: 10 * ms, Burst: 3000})
	pass(burst, 0, 3000, 0)
	pass(burst, 1*ms, 1500, 20*ms)
	pass(burst, 21*ms, 500, 21*ms)

	smooth := newLimit(flash.Limit{IOPS: 100})
	pass(smooth, 5*ms, 1<<20, 5*ms)
	pass(smooth, 6*ms, 1, 15*ms)
	pass(smooth, 6*ms, 1, 25*ms)
	pass(smooth, 90*ms, 1, 90*ms)
}

// TestLatenciesHaveTheirMean: the histogram gives the shape, the specification the mean, and the
// spread is the histogram's.
func TestLatenciesHaveTheirMean(t *testing.T) {
	d := newDrive(flash.Spec{Servers: 1, LTFB: 80 * units.Microsecond, LTFBShape: shape()}, 1)
	var got flash.Histogram
	for range 50_000 {
		got.Add(d.latency(), 1)
	}
	mean, cv2 := got.Moments()
	h := shape()
	_, want := h.Moments()
	if math.Abs(mean/80_000-1) > 0.01 || math.Abs(cv2/want-1) > 0.03 {
		t.Errorf("a mean of %.0f ns and a squared variation of %.3f, want 80000 ns and %.3f", mean,
			cv2, want)
	}
}

// Transfers use the link in the order of their first bytes, whoever announced first, and the link
// never rests while one waits.
func TestLinkKeepsOrder(t *testing.T) {
	d := newDrive(flash.Spec{Servers: 1, LinkRate: units.MBps}, 1)
	done := make(chan *request, 4)
	var all []*request
	// announced out of order
	for i, first := range []units.Nanos{30 * ms, 10 * ms, 11 * ms, 50 * ms} {
		r := &request{index: i, left: 1, done: done}
		all = append(all, r)
		d.plan(first, arrived, &piece{of: r, size: 5000})
	}
	d.until(49 * ms)
	for i, want := range []units.Nanos{35 * ms, 15 * ms, 20 * ms} {
		if all[i].due != want {
			t.Errorf("transfer %d is over at %v, want %v", i, all[i].due, want)
		}
	}
	if all[3].due != 0 || len(d.events) != 1 {
		t.Error("a transfer was settled before its first byte")
	}
}

// A read that ought to have come before one that is already served still finds its server.
func TestLateReadFindsItsServer(t *testing.T) {
	d := newDrive(flash.Spec{Servers: 3, LTFB: 2 * ms}, 1)
	done := make(chan *request, 3)
	d.servers = []units.Nanos{9 * ms, 10 * ms, 30 * ms}
	for _, ready := range []units.Nanos{10 * ms, 9 * ms} {
		d.ask(&request{ready: ready, done: done}, 0, 512)
		d.until(10 * ms)
	}
	d.until(20 * ms)
	if first, second := <-done, <-done; first.due != 11*ms || second.due != 12*ms {
		t.Errorf("the reads were done at %v and %v, want 11 and 12 ms", first.due, second.due)
	}
}
