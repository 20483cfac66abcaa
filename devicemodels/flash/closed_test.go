package flash

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
)

// known is a device whose every station is the bottleneck of some loop, with rates that can be
// computed by hand.
func known() Spec {
	return Spec{
		Servers: 8, LTFB: 80 * units.Microsecond, ServerRate: 400 * units.MBps, LinkRate: 2 *
			units.GBps,
		MaxIOPS: 90_000, Align: 4096,
		Engines: map[string]EngineCost{
			"pread": {Submit: 4 * units.Microsecond, Complete: 6 * units.Microsecond},
			"uring": {Submit: 1 * units.Microsecond, Complete: 1 * units.Microsecond, Serial: true},
			"slow": {Submit: 20 * units.Microsecond, Complete: 20 * units.Microsecond,
				Serial: true},
		},
	}
}

func TestThroughputIsTheSlowestStation(t *testing.T) {
	f := known()
	tests := []struct {
		station string
		engine  string
		chunk   units.Bytes
		depth   int
		seconds float64 // per request
	}{
		// 10 µs of host, a 90,000th of a second at the request limit, 80 µs to the first byte, 4096
		// B at the slower of 400 MB/s and 2 GB/s.
		{"a lone request", "pread", 4096, 1, 10e-6 + 1.0/90_000 + 80e-6 + 4096/400e6},
		{"four in flight", "pread", 4096, 4, (10e-6 + 1.0/90_000 + 80e-6 + 4096/400e6) / 4},
		{"the servers", "pread", 16384, 64, (80e-6 + 16384/400e6) / 8},
		{"the link", "pread", 1 << 20, 64, (1 << 20) / 2e9},
		{"the drive's request limit", "", 512, 64, 1.0 / 90_000},
		{"one core of a serial engine", "slow", 4096, 64, 40e-6},
	}
	for _, tt := range tests {
		t.Run(tt.station, func(t *testing.T) {
			if tt.station == "the drive's request limit" {
				f.Servers = 16 // 8 servers are slower than the limit
			}
			want := float64(tt.chunk) / tt.seconds
			got := float64(f.Throughput(tt.engine, 2, tt.chunk, tt.depth))
			if math.Abs(got/want-1) > 1e-6 {
				t.Errorf("Throughput = %.6g B/s, want %.6g", got, want)
			}
		})
	}
}

func TestPreadSpendsItsCostOnEveryCore(t *testing.T) {
	f := Spec{Servers: 1000, LTFB: 1000, Engines: map[string]EngineCost{"pread": {Submit: 10_000,
		Complete: 10_000}}}
	for cores := 1; cores <= 8; cores *= 2 {
		want := units.Rate(float64(cores) * 4096 / 20e-6)
		if got := f.Throughput("pread", cores, 4096, 500); max(got-want, want-got) > 1 {
			t.Errorf("%d cores: %d B/s, want %d", cores, got, want)
		}
	}
}

func TestThroughputOfNothing(t *testing.T) {
	f := known()
	for _, c := range []struct {
		chunk units.Bytes
		depth int
	}{{0, 1}, {-1, 1}, {4096, 0}, {4096, -3}} {
		if r, l := f.Throughput("pread", 2, c.chunk, c.depth), f.Latency("pread", 2, c.chunk,
			c.depth); r != 0 || l != 0 {
			t.Errorf("chunk %d depth %d: %v, %v; want 0, 0", c.chunk, c.depth, r, l)
		}
	}
	free := Spec{Servers: 1}
	if r := free.Throughput("", 1, 4096, 1); r != math.MaxInt64 {
		t.Errorf("a device that takes no time reads at %v", r)
	}
}

// TestLittlesLaw is design invariant 3: requests in flight = request rate × time in flight.
func TestLittlesLaw(t *testing.T) {
	f := known()
	for engine := range f.Engines {
		for chunk := units.Bytes(512); chunk <= 1<<22; chunk *= 2 {
			for depth := 1; depth <= 256; depth *= 2 {
				rate := float64(f.Throughput(engine, 2, chunk, depth)) / float64(chunk)
				got := rate * f.Latency(engine, 2, chunk, depth).Seconds()
				if math.Abs(got/float64(depth)-1) > 1e-4 { // whole nanoseconds
					t.Fatalf("%s %v depth %d: %.6g requests in flight", engine, chunk, depth, got)
				}
			}
		}
	}
}

// TestMonotone is design invariant 4 for the closed form.
func TestMonotone(t *testing.T) {
	random := rng.Stream(rng.DefaultSeed, "monotone")
	better := map[string]func(*Spec){
		"one more server": func(f *Spec) { f.Servers++ },
		"less LTFB":       func(f *Spec) { f.LTFB = f.LTFB * 9 / 10 },
		"faster servers":  func(f *Spec) { f.ServerRate = f.ServerRate * 11 / 10 },
		"faster link":     func(f *Spec) { f.LinkRate = f.LinkRate * 11 / 10 },
		"more requests":   func(f *Spec) { f.MaxIOPS = f.MaxIOPS * 11 / 10 },
		"cheaper engine": func(f *Spec) {
			f.Engines = map[string]EngineCost{"pread": {Submit: 3 * units.Microsecond, Complete: 3 *
				units.Microsecond}}
		},
	}
	for i := range 300 {
		f, engine, chunk, depth := randomLoop(random)
		if i%2 == 1 {
			f.Placement = PlaceByAddress
		}
		before := f.Throughput(engine, 2, chunk, depth)
		for what, improve := range better {
			g := f
			improve(&g)
			if after := g.Throughput(engine, 2, chunk, depth); after < before {
				t.Fatalf("%s made %v depth %d slower: %v to %v\n%+v", what, chunk, depth, before,
					after, f)
			}
		}
		if after := f.Throughput(engine, 2, chunk, depth+1); after < before {
			t.Fatalf("depth %d is slower than %d: %v < %v", depth+1, depth, after, before)
		}
	}
}

func randomLoop(random *rand.Rand) (Spec, string, units.Bytes, int) {
	f := Spec{
		Servers:    1 + random.IntN(64),
		LTFB:       units.Nanos(10_000 + random.IntN(200_000)),
		ServerRate: units.Rate(5e7 + random.Float64()*2e9),
		LinkRate:   units.Rate(2e8 + random.Float64()*7e9),
		MaxIOPS:    50_000 + random.Int64N(1_000_000),
		Align:      4096,
		Engines:    map[string]EngineCost{"pread": {Submit: 3000, Complete: 3000}},
	}
	return f, "pread", units.Bytes(512 << random.IntN(12)), 1 + random.IntN(256)
}

// TestClosedFormAgainstQueue compares the closed form with a simulation of requests that queue for
// servers and a link.
func TestClosedFormAgainstQueue(t *testing.T) {
	f := known()
	f.MaxIOPS = 0
	for _, chunk := range []units.Bytes{4096, 16384, 65536, 1 << 20} {
		for _, depth := range []int{1, 2, 8, 32, 128} {
			t.Run(fmt.Sprintf("%v/%d", chunk, depth), func(t *testing.T) {
				want := queueRate(&f, chunk, depth)
				got := float64(f.Throughput("", 1, chunk, depth))
				// The bound is never below the queue, and the queue reaches it but for filling and
				// draining.
				if got < want*0.999 || got > want*1.02 {
					t.Errorf("closed form %.4g B/s, queue %.4g B/s", got, want)
				}
			})
		}
	}
}

// queueRate runs a closed loop of depth requests through first-come-first-served servers and link,
// one by one.
func queueRate(f *Spec, chunk units.Bytes, depth int) float64 {
	const requests = 40_000
	servers := make([]units.Nanos, f.Servers)
	loop := make([]units.Nanos, depth) // when each of the depth requests may be issued again
	var link units.Nanos
	for range requests {
		i := earliest(loop)
		s := earliest(servers)
		start := max(loop[i], servers[s])
		servers[s] = start + f.LTFB + f.ServerRate.Time(chunk)
		link = max(start+f.LTFB, link) + f.LinkRate.Time(chunk)
		loop[i] = max(servers[s], link)
	}
	return float64(requests) * float64(chunk) / slices.Max(loop).Seconds()
}

func earliest(times []units.Nanos) int {
	first := 0
	for i, t := range times {
		if t < times[first] {
			first = i
		}
	}
	return first
}
