package flash

import (
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
)

func mustStation(t *testing.T, spec Spec, cfg Config) *Station {
	t.Helper()
	s, err := NewStation(spec, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustBatch(t *testing.T, s *Station, at units.Nanos, reads []Read) BatchResult {
	t.Helper()
	b, err := s.Batch(at, reads)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// full is a device with every part, to test invariants with all of them at once.
func full() Spec {
	f := known()
	f.Placement, f.QueueDepth, f.Page, f.MaxTransfer = PlaceByAddress, 24, 4096, 64*units.KiB
	for i := range units.Nanos(50) {
		f.LTFBShape.Add(60_000+i*i*100, 1)
	}
	f.Limit = &Limit{Rate: 800 * units.MBps, IOPS: 60_000, Interval: 5 * units.Millisecond}
	f.Spans = []Span{{Within: units.GiB, MaxIOPS: 80_000}, {ExtraLTFB: 20 * units.Microsecond}}
	f.Sustained = &Sustained{Cliff: 20 * units.Millisecond, Factor: 0.7, Cool: 30 *
		units.Millisecond}
	f.Background = &Background{Rate: 100 * units.MBps, Chunk: 16 * units.KiB}
	f.PageCache = &PageCache{Capacity: 16 * units.MiB, ReadAhead: 64 * units.KiB, Fault: 2 *
		units.Microsecond, HitRate: 10 * units.GBps}
	f.Engines["mmap"] = EngineCost{Submit: 300, Complete: 200, Cached: true}
	return f
}

func randomReads(random *rand.Rand, n int) []Read {
	reads := make([]Read, n)
	for i := range reads {
		reads[i] = Read{512 * units.Bytes(random.IntN(1<<18)),
			512 * units.Bytes(1+random.IntN(400))}
	}
	return reads
}

// TestLittlesLawOfBatches counts the number in flight separately, as a step function of time, and
// compares its integral with the sum of the latencies.
func TestLittlesLawOfBatches(t *testing.T) {
	spec := full()
	for round, engine := range slices.Repeat(slices.Sorted(maps.Keys(spec.Engines)), 2) {
		if round == len(spec.Engines) {
			spec.Placement = PlaceInRounds
		}
		s := mustStation(t, spec, Config{Engine: engine, Parallel: 16, Cores: 4})
		type step struct {
			at     units.Nanos
			change int
		}
		var steps []step
		s.hook = func(at units.Nanos, change int) { steps = append(steps, step{at, change}) }
		random := rand.New(rand.NewPCG(31, 32))
		var now units.Nanos
		for range 50 {
			reads := randomReads(random, 1+random.IntN(200))
			steps = steps[:0]
			b := mustBatch(t, s, now, reads)
			slices.SortStableFunc(steps, func(x, y step) int {
				return cmp.Or(cmp.Compare(x.at,
					y.at), cmp.Compare(x.change, y.change))
			})
			var area units.Nanos
			inFlight, at := 0, now
			for _, p := range steps {
				area += units.Nanos(inFlight) * (p.at - at)
				inFlight, at = inFlight+p.change, p.at
				if inFlight < 0 || inFlight > 16 {
					t.Fatalf("%s: %d requests in flight at %v with 16 slots", engine, inFlight, at)
				}
			}
			if area != b.Sojourn || inFlight != 0 || at != b.End || len(steps) != 2*len(reads) {
				t.Fatalf("%s: the area below the number in flight is %v, the latencies add up "+
					"to %v; %d in flight at %v, the end is %v",
					engine, area, b.Sojourn, inFlight, at, b.End)
			}
			now = b.End + units.Nanos(random.IntN(1e7))
		}
	}
}

// TestClosedFormAgainstEvents is invariant 4, over devices and loops chosen at random.
func TestClosedFormAgainstEvents(t *testing.T) {
	random := rand.New(rand.NewPCG(19, 9))
	const draws = 400
	beyond := 0
	for range draws {
		spec, chunk, depth := randomDevice(random)
		closed, measured := spec.Throughput("pread", 2, chunk, depth), mustMeasure(t, spec, chunk,
			depth)
		off := math.Abs(float64(closed)/float64(measured) - 1)
		if off > 0.02 {
			beyond++
		}
		if off > 0.12 {
			t.Errorf("%v at depth %d: closed form %v, events %v (%.1f %%)\n%+v", chunk, depth,
				closed, measured, 100*off, spec)
		}
	}
	// Where the link bounds a shallow loop, variable reads meet there in ways that mean values do
	// not capture.
	if beyond > draws*3/100 {
		t.Errorf("%d of %d closed forms are more than 2 %% off, more than 3 in 100", beyond, draws)
	}
}

func mustMeasure(t *testing.T, spec Spec, chunk units.Bytes, depth int) units.Rate {
	t.Helper()
	rate, err := Measure(spec, Config{Engine: "pread", Cores: 2, Parallel: depth, Seed: 1}, chunk,
		16*units.GiB, 5000+100*depth)
	if err != nil {
		t.Fatal(err)
	}
	return rate
}

// TestExactClosedForms: constant service at servers that serve any read, and exponential service at
// servers chosen by address, whose network has the product form n/(n+k-1).
func TestExactClosedForms(t *testing.T) {
	any := Spec{Servers: 12, LTFB: 90_000, ServerRate: 600 * units.MBps, LinkRate: 3 * units.GBps,
		Align: 4096, Engines: map[string]EngineCost{"pread": {}}}
	exponential := Spec{Servers: 12, Placement: PlaceByAddress, LTFB: 90_000, Align: 4096,
		Engines: map[string]EngineCost{"pread": {}}}
	random := rand.New(rand.NewPCG(2, 3))
	for range 100_000 {
		exponential.LTFBShape.Add(units.Nanos(90_000*random.ExpFloat64()), 1)
	}
	for _, depth := range []int{1, 3, 12, 40, 200} {
		for _, spec := range []Spec{any, exponential} {
			closed, measured := spec.Throughput("pread", 2, 16*units.KiB, depth), mustMeasure(t,
				spec, 16*units.KiB, depth)
			if off := float64(closed)/float64(measured) - 1; math.Abs(off) > 0.02 {
				t.Errorf("%s, depth %d: closed form %v, events %v", spec.Placement, depth, closed,
					measured)
			}
		}
		n := float64(depth)
		want := n / (n + 11) * 12 * 16384 / 90e-6
		if got := float64(exponential.Throughput("pread", 2, 16*units.KiB, depth)); math.Abs(
			got/want-1) > 0.01 {
			t.Errorf("depth %d: %.4g B/s, product form %.4g", depth, got, want)
		}
	}
}

// TestRounds: n requests take an LTFB and n services, for any source of the requests.
func TestRounds(t *testing.T) {
	spec := Spec{Servers: 1, Placement: PlaceInRounds, LTFB: 36_000, MaxIOPS: 150_000,
		LinkRate: 1500 * units.MBps, Align: 512,
		Engines: map[string]EngineCost{"pread": {Submit: 500, Complete: 500}}}
	for _, chunk := range []units.Bytes{4096, 65536} {
		service := 1/150e3 + float64(chunk)/1500e6
		for _, depth := range []int{1, 2, 8, 32, 256} {
			closed, measured := spec.Throughput("pread", 2, chunk, depth), mustMeasure(t, spec,
				chunk, depth)
			byHand := float64(depth) * float64(chunk) / (1e-6 + 36e-6 + float64(depth)*service)
			if math.Abs(float64(closed)/byHand-1) > 1e-6 ||
				math.Abs(float64(closed)/float64(measured)-1) > 0.02 {
				t.Errorf("%v at depth %d: closed form %v, events %v, by hand %.4g B/s", chunk,
					depth, closed, measured, byHand)
			}
		}
	}
	// A lone batch by hand: three reads wait for one look.
	s := mustStation(t, spec, Config{Engine: "pread", Parallel: 4, Cores: 4})
	b := mustBatch(t, s, 0, []Read{{0, 3000}, {4096, 3000}, {8192, 3000}})
	if want := units.Nanos(500 + 36_000 + 3*(6666+2000) + 500); b.End != want {
		t.Errorf("three reads end at %v, want %v", b.End, want)
	}
}

// TestSplitReadsAreBelowTheirBound: the closed form leaves out the wait of a read's pieces for the
// last one.
func TestSplitReadsAreBelowTheirBound(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 9))
	for range 100 {
		spec, chunk, depth := randomDevice(random)
		spec.MaxTransfer = 64 * units.KiB
		closed, measured := spec.Throughput("pread", 2, chunk, depth), mustMeasure(t, spec, chunk,
			depth)
		if off := float64(closed)/float64(measured) - 1; off < -0.03 || off > 0.75 {
			t.Errorf("%v at depth %d: closed form %v, events %v (%+.1f %%)\n%+v", chunk, depth,
				closed, measured, 100*off, spec)
		}
	}
}

// randomDevice draws a device of four servers or more, as drives have, with some of the optional
// parts.
func randomDevice(random *rand.Rand) (Spec, units.Bytes, int) {
	s := Spec{
		Servers: 4 + random.IntN(60), Placement: PlaceByAddress, LTFB: units.Nanos(10_000 +
			random.IntN(200_000)),
		ServerRate: units.Rate(5e7 + random.Float64()*2e9), LinkRate: units.Rate(2e8 +
			random.Float64()*7e9), Align: 4096,
		Engines: map[string]EngineCost{"pread": {Submit: 2000, Complete: 2000}},
	}
	maybe := func() bool { return random.IntN(3) == 0 }
	if maybe() {
		s.Placement = PlaceAny
	}
	if maybe() {
		s.MaxIOPS = 50_000 + random.Int64N(1_000_000)
	}
	// Where any server serves any read, the spread of LTFB affects only the link's queue, which the
	// bound leaves out.
	if maybe() && s.Placement == PlaceByAddress {
		for range 100 {
			s.LTFBShape.Add(units.Nanos(30_000+50_000*random.ExpFloat64()), 1)
		}
	}
	if maybe() {
		s.QueueDepth = 8 + random.IntN(64)
	}
	if maybe() {
		s.Page = 16 * units.KiB
	}
	return s, 16 * units.KiB << random.IntN(6), 1 << random.IntN(9)
}

func TestLimitClosedForm(t *testing.T) {
	spec := known()
	spec.Limit = &Limit{Rate: 50 * units.MBps, Interval: 100 * units.Millisecond}
	got, err := Measure(spec, Config{Engine: "uring", Cores: 2, Parallel: 8}, 16*units.KiB,
		units.GiB, 20_000)
	if err != nil {
		t.Fatal(err)
	}
	if want := spec.Throughput("uring", 2, 16*units.KiB, 8); want != 50*units.MBps ||
		math.Abs(float64(got)/float64(want)-1) > 0.02 {
		t.Errorf("limited to 50 MB/s: closed form %v, events %v", want, got)
	}
	spec.Limit = &Limit{IOPS: 1000}
	got, err = Measure(spec, Config{Engine: "uring", Cores: 2, Parallel: 8}, 16*units.KiB,
		units.GiB, 5000)
	if err != nil {
		t.Fatal(err)
	}
	if want := spec.Throughput("uring", 2, 16*units.KiB,
		8); math.Abs(float64(got)/float64(want)-1) > 0.02 ||
		math.Abs(float64(want)/(1000*16384)-1) > 1e-6 {
		t.Errorf("limited to 1000 reads a second: closed form %v, events %v", want, got)
	}
}

// TestLimitStopsAndGoes: with credit in slices a steady reader waits for most of a slice and then
// not at all.
func TestLimitStopsAndGoes(t *testing.T) {
	spec := Spec{Servers: 8, LTFB: 100_000, Align: 512, Engines: map[string]EngineCost{"pread": {}},
		Limit: &Limit{Rate: 10 * units.MBps, Interval: 100 * units.Millisecond}}
	s := mustStation(t, spec, Config{Engine: "pread", Parallel: 1, Cores: 1})
	// 1 MB is the credit of a slice: ten reads of 100 kB go through at once, the eleventh waits for
	// the next slice.
	reads := make([]Read, 25)
	for i := range reads {
		reads[i] = Read{units.Bytes(i) * 100_000, 100_000}
	}
	var ends []units.Nanos
	s.hook = func(at units.Nanos, change int) {
		if change < 0 {
			ends = append(ends, at)
		}
	}
	mustBatch(t, s, 0, reads)
	for i, end := range ends {
		slice := units.Nanos(i/10) * 100 * units.Millisecond
		if want := slice + units.Nanos(i%10+1)*100_000; end != want {
			t.Fatalf("read %d ends at %v, want %v", i, end, want)
		}
	}
	// After a pause the bucket is full again, and its slices begin with the next read.
	start := 777 * units.Millisecond
	if b := mustBatch(t, s, start, reads[:10]); b.End != start+10*100_000 {
		t.Errorf("after a pause ten reads end after %v, want 1 ms", b.End-start)
	}
}

// TestLargeReadBeyondBurst: a read that is larger than the bucket waits for a full one and owes the
// rest.
func TestLargeReadBeyondBurst(t *testing.T) {
	spec := Spec{Servers: 1, LTFB: 1, Align: 512, Engines: map[string]EngineCost{"pread": {}},
		Limit: &Limit{Rate: units.MBps, Burst: 10_000}}
	s := mustStation(t, spec, Config{Engine: "pread", Parallel: 1, Cores: 1})
	b := mustBatch(t, s, 0, []Read{{0, 50_000}, {0, 10_000}})
	// 50 ms of credit were used and 10 ms were available; the bucket is full again 50 ms later.
	if want := 50*units.Millisecond + 1; b.End != want {
		t.Errorf("ends at %v, want %v", b.End, want)
	}
}

func TestSplitReadsAreInFlightTogether(t *testing.T) {
	spec := Spec{Servers: 8, LTFB: 100_000, ServerRate: units.GBps, Align: 512, MaxTransfer: 128 *
		units.KiB,
		Engines: map[string]EngineCost{"pread": {}}}
	s := mustStation(t, spec, Config{Engine: "pread", Parallel: 1, Cores: 1})
	b := mustBatch(t, s, 0, []Read{{0, 512 * units.KiB}})
	if want := spec.LTFB + spec.ServerRate.Time(128*units.KiB); b.End != want || b.Pieces != 4 {
		t.Errorf("%d pieces in %v, want 4 in %v", b.Pieces, b.End, want)
	}
}

func TestWholePagesAreRead(t *testing.T) {
	spec := Spec{Servers: 1, LTFB: 1000, ServerRate: 100 * units.MBps, Align: 512, Page: 4096,
		Engines: map[string]EngineCost{"pread": {}}}
	s := mustStation(t, spec, Config{Engine: "pread", Parallel: 1, Cores: 1})
	// A record of 3,072 B across a page boundary costs two pages.
	b := mustBatch(t, s, 0, []Read{{0, 3072}, {3072, 3072}})
	if want := 2*spec.LTFB + spec.ServerRate.Time(3*4096); b.Medium != 3*4096 ||
		b.Moved != 2*3072 || b.End != want {
		t.Errorf("medium %v, moved %v in %v; want 12 KiB, 6 KiB in %v", b.Medium, b.Moved, b.End,
			want)
	}
}

func TestSpans(t *testing.T) {
	spec := known()
	spec.MaxIOPS = 0
	// PowerInfer-2's UFS 4.0: 1 GB/s of 4 KiB reads within 128 MB, 450 MB/s over any range.
	spec.Spans = []Span{{Within: 128_000_000, MaxIOPS: 244_141}, {MaxIOPS: 109_863, ExtraLTFB: 7}}
	near, far, unknown := spec.Within(100_000_000), spec.Within(1_000_000_000), spec.Within(0)
	if near.MaxIOPS != 244_141 || far.MaxIOPS != 109_863 || unknown.MaxIOPS != far.MaxIOPS ||
		far.LTFB != spec.LTFB+7 || near.LTFB != spec.LTFB {
		t.Errorf("near %d, far %d, unknown %d; LTFB %v and %v", near.MaxIOPS, far.MaxIOPS,
			unknown.MaxIOPS, near.LTFB, far.LTFB)
	}
}

func TestHeat(t *testing.T) {
	spec := Spec{Servers: 1, LTFB: units.Millisecond, Align: 512, Engines: map[string]EngineCost{
		"pread": {}},
		Sustained: &Sustained{Cliff: 100 * units.Millisecond, Factor: 0.5, Cool: 50 *
			units.Millisecond}}
	s := mustStation(t, spec, Config{Engine: "pread", Parallel: 1, Cores: 1})
	reads := make([]Read, 150)
	for i := range reads {
		reads[i].Length = 4096
	}
	// 100 reads of 1 ms until the cliff, then 50 of 2 ms.
	b := mustBatch(t, s, 0, reads)
	if want := 200 * units.Millisecond; b.End != want {
		t.Errorf("150 reads end at %v, want %v", b.End, want)
	}
	cool := b.End + 50*units.Millisecond
	if b = mustBatch(t, s, cool, reads[:100]); b.End-cool != 100*units.Millisecond {
		t.Errorf("100 reads of a cool device take %v, want 100 ms", b.End-cool)
	}
	steady := spec.Steady()
	if got, want := steady.Throughput("pread", 1, 4096, 1), spec.Throughput("pread", 1, 4096,
		1)/2; got != want {
		t.Errorf("steady %v, want %v", got, want)
	}
}

func TestBackgroundTakesItsShare(t *testing.T) {
	spec := Spec{Servers: 16, Placement: PlaceByAddress, LTFB: 80_000, LinkRate: units.GBps,
		Align: 512, Engines: map[string]EngineCost{"pread": {}},
		Background: &Background{Rate: 400 * units.MBps, Chunk: 64 * units.KiB}}
	measured, err := Measure(spec, Config{Engine: "pread", Cores: 1, Parallel: 64}, 128*units.KiB,
		units.GiB, 20_000)
	if err != nil {
		t.Fatal(err)
	}
	if closed := spec.Throughput("pread", 1, 128*units.KiB,
		64); math.Abs(float64(closed)/float64(measured)-1) > 0.03 ||
		math.Abs(float64(measured)/600e6-1) > 0.03 {
		t.Errorf("of 1 GB/s others take 400 MB/s: events %v, closed form %v, want about 600 MB/s",
			measured, closed)
	}
}

func TestStationIsDeterministic(t *testing.T) {
	run := func(seed uint64) (ends []units.Nanos) {
		s := mustStation(t, full(), Config{Engine: "pread", Parallel: 16, Cores: 4, Seed: seed})
		random := rand.New(rand.NewPCG(5, 6))
		now := units.Nanos(0)
		for range 20 {
			now = mustBatch(t, s, now, randomReads(random, 100)).End
			ends = append(ends, now)
		}
		return ends
	}
	if !slices.Equal(run(1), run(1)) {
		t.Error("two runs of one seed differ")
	}
	if slices.Equal(run(1), run(2)) {
		t.Error("the seed changes nothing")
	}
}

func TestNewStationRefuses(t *testing.T) {
	for name, cfg := range map[string]Config{
		"unknown engine": {Engine: "floppy", Parallel: 1},
		"no threads":     {Engine: "pread"},
		"no page cache":  {Engine: "mmap", Parallel: 1},
	} {
		spec := known()
		spec.Engines["mmap"] = EngineCost{Cached: true}
		if _, err := NewStation(spec, cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func BenchmarkStation(b *testing.B) {
	for name, spec := range map[string]Spec{"plain": known(), "by-address": full()} {
		b.Run(name, func(b *testing.B) {
			spec.PageCache, spec.Background, spec.Limit, spec.Sustained = nil, nil, nil, nil
			s, err := NewStation(spec, Config{Engine: "uring", Parallel: 32, Cores: 4})
			if err != nil {
				b.Fatal(err)
			}
			reads := randomReads(rand.New(rand.NewPCG(1, 1)), 1000)
			for i := range reads {
				reads[i].Length = 16384
			}
			now := units.Nanos(0)
			b.ReportAllocs()
			for b.Loop() {
				r, err := s.Batch(now, reads)
				if err != nil {
					b.Fatal(err)
				}
				now = r.End
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/request")
		})
	}
}
