package sim

import (
	"cmp"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/engine/layout"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

func testDevice() *devicemodels.Device {
	return &devicemodels.Device{
		Version: "1", Name: "test", Source: "made up for tests",
		Flash: devicemodels.Flash{
			Servers: 8, LTFB: 90 * units.Microsecond, ServerRate: 400 * units.MBps, LinkRate: 2 * units.GBps, Align: 4096,
			Engines: map[string]devicemodels.EngineCost{
				"pread": {Batch: 5000, Submit: 4000, Complete: 2000},
				"uring": {Batch: 3000, Submit: 1500, Complete: 500, Serial: true},
			},
		},
		Host: devicemodels.Host{
			Cores: 4, MemoryRate: 20 * units.GBps, DenseRate: 15 * units.GBps, DenseFixed: 2000, RowRate: 10 * units.GBps, RowFixed: 1000,
			CopyRate: 8 * units.GBps, CopyFixed: 100, KVRate: 10 * units.GBps, LayerFixed: 3000, TokenFixed: 10000, DecideFixed: 500, DecideUnit: 10,
		},
	}
}

// testTrace has active sets that change slowly, in two sequences.
func testTrace(layers, perLayer, tokens int, share float64) *traces.Memory {
	random := rand.New(rand.NewPCG(21, 22))
	m := &traces.Memory{Head: traces.Header{
		SchemaVersion: traces.SchemaVersion, UnitKind: traces.Neuron, Layers: layers, Units: perLayer, UnitBytes: 8192, Model: "test",
		Shape: traces.Shape{DModel: 2048, Layers: layers, DFFN: perLayer, Heads: 32, KVHeads: 32, HeadDim: 64, Vocab: 1000, MaxPos: 512, Rows: 2, DTypeSize: 2},
	}}
	on := make([][]bool, layers)
	for l := range on {
		on[l] = make([]bool, perLayer)
	}
	for i := range tokens {
		t := traces.Token{Seq: uint32(i * 2 / tokens), ID: uint32(i), Phase: traces.Decode}
		t.Pos = uint32(i - int(t.Seq)*((tokens+1)/2))
		for l := range on {
			mask := make([]uint64, (perLayer+63)/64)
			for u := range on[l] {
				if random.Float64() < 0.3 {
					on[l][u] = random.Float64() < share
				}
				if on[l][u] {
					mask[u/64] |= 1 << (u % 64)
				}
			}
			t.Active = append(t.Active, mask)
		}
		m.List = append(m.List, t)
	}
	return m
}

func testConfig() Config {
	return Config{Window: 3, Engine: "pread", Parallel: 16, Device: testDevice(), Layout: layout.Options{Coalesce: true}}
}

func mustRun(t *testing.T, src traces.Source, cfg Config) *traces.Run {
	t.Helper()
	run, err := Run(src, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestRunIsDeterministic(t *testing.T) {
	src := testTrace(3, 300, 20, 0.1)
	a, b := mustRun(t, src, testConfig()), mustRun(t, src, testConfig())
	if !reflect.DeepEqual(a, b) {
		t.Fatal("two runs of one configuration differ")
	}
	if !json.Valid(a.Meta.Config) || !a.Meta.Simulated {
		t.Fatalf("run says config %s, simulated %v", a.Meta.Config, a.Meta.Simulated)
	}
}

// Rows tile the time: each part starts where the one before ended, and the clock never goes back.
func TestPartsTileTheTime(t *testing.T) {
	run := mustRun(t, testTrace(3, 300, 20, 0.1), testConfig())
	if want := 20 * (3*5 + 1); len(run.Rows) != want {
		t.Fatalf("%d rows, want %d", len(run.Rows), want)
	}
	var now units.Nanos
	for i, r := range run.Rows {
		if r.Start != now || r.Dur < 0 {
			t.Fatalf("row %d (%v) starts at %v for %v, want a start at %v", i, r.Part, r.Start, r.Dur, now)
		}
		now += r.Dur
	}
	if run.Meta.Totals.Wall != now {
		t.Fatalf("wall %v, want %v", run.Meta.Totals.Wall, now)
	}
}

// A run of one token with nothing cached costs exactly what the formulas say.
func TestOneTokenByHand(t *testing.T) {
	src := testTrace(1, 64, 2, 0)
	src.List = src.List[:1]
	src.List[0].Active[0][0] = 0b1 // one active unit: one request
	cfg := testConfig()
	run := mustRun(t, src, cfg)
	f, h := cfg.Device.Flash, cfg.Device.Host
	cost := f.Engines["pread"]
	want := map[traces.Part]units.Nanos{
		traces.PartAttention: h.LayerFixed + 4*h.DenseFixed + h.DenseRate.Time(4*2048*2048*2) + h.KVRate.Time(2*2048*4),
		traces.PartPredict:   h.DecideFixed + h.DecideUnit,
		// One read: the transfer over the link overlaps the server's.
		traces.PartIO:     cost.Batch + cost.Submit + f.LTFB + f.ServerRate.Time(8192) + cost.Complete,
		traces.PartMemory: h.CopyFixed + h.CopyRate.Time(8192),
		traces.PartFFN:    h.RowFixed + h.RowRate.Time(8192),
		traces.PartOther:  h.TokenFixed + h.DenseFixed + h.DenseRate.Time(1000*2048*2),
	}
	for _, r := range run.Rows {
		if r.Dur != want[r.Part] {
			t.Errorf("%v takes %v, want %v", r.Part, r.Dur, want[r.Part])
		}
	}
}

// Invariant 3: for every batch, throughput × mean latency = mean number in flight. The number in flight is counted apart, as
// a step function of time whose area is compared with the sum of the latencies.
func TestLittlesLaw(t *testing.T) {
	for _, engine := range []string{"pread", "uring"} {
		s, err := NewStation(testDevice().Flash, engine, 16, 4)
		if err != nil {
			t.Fatal(err)
		}
		type step struct {
			at     units.Nanos
			change int
		}
		var steps []step
		s.hook = func(at units.Nanos, change int) { steps = append(steps, step{at, change}) }
		random := rand.New(rand.NewPCG(31, 32))
		var now units.Nanos
		for range 50 {
			reqs := make([]layout.Request, 1+random.IntN(200))
			for i := range reqs {
				reqs[i].Length = 4096 * int64(1+random.IntN(8))
			}
			steps = steps[:0]
			b, err := s.Batch(now, reqs)
			if err != nil {
				t.Fatal(err)
			}
			slices.SortStableFunc(steps, func(x, y step) int { return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.change, y.change)) })
			var area units.Nanos
			inFlight, at := 0, now
			for _, p := range steps {
				area += units.Nanos(inFlight) * (p.at - at)
				inFlight, at = inFlight+p.change, p.at
				if inFlight < 0 || inFlight > 16 {
					t.Fatalf("%s: %d requests in flight at %v with 16 slots", engine, inFlight, at)
				}
			}
			if area != b.Sojourn || inFlight != 0 || at != b.End || len(steps) != 2*len(reqs) {
				t.Fatalf("%s: the area below the number in flight is %v, the latencies add up to %v; %d in flight at %v, the end is %v",
					engine, area, b.Sojourn, inFlight, at, b.End)
			}
			now = b.End
		}
	}
}

// A long batch approaches the closed form of the device model; the start and the end of a batch are what is left.
func TestStationApproachesClosedForm(t *testing.T) {
	flash := testDevice().Flash
	for _, engine := range []string{"pread", "uring"} {
		for _, slots := range []int{1, 4, 32, 128} {
			for _, chunk := range []int64{4096, 16384, 262144} {
				s, err := NewStation(flash, engine, slots, 4)
				if err != nil {
					t.Fatal(err)
				}
				reqs := make([]layout.Request, 20000)
				for i := range reqs {
					reqs[i].Length = chunk
				}
				b, err := s.Batch(0, reqs)
				if err != nil {
					t.Fatal(err)
				}
				got := units.Bytes(20000 * chunk).Over(b.End)
				want := flash.Throughput(engine, 4, units.Bytes(chunk), slots)
				if ratio := float64(got) / float64(want); ratio < 0.98 || ratio > 1.02 {
					t.Errorf("%s, %d slots, %d bytes: station %v, closed form %v", engine, slots, chunk, got, want)
				}
			}
		}
	}
}

// Invariant 4: more bandwidth, less LTFB, a larger window or more slots never make a run slower.
func TestMonotone(t *testing.T) {
	src := testTrace(2, 400, 40, 0.1)
	base := mustRun(t, src, testConfig()).Meta.Totals.Wall
	for name, better := range map[string]func(c *Config){
		"less LTFB":         func(c *Config) { c.Device.Flash.LTFB /= 2 },
		"faster servers":    func(c *Config) { c.Device.Flash.ServerRate *= 2 },
		"faster link":       func(c *Config) { c.Device.Flash.LinkRate *= 2 },
		"more servers":      func(c *Config) { c.Device.Flash.Servers *= 2 },
		"larger window":     func(c *Config) { c.Window = 8 },
		"more threads":      func(c *Config) { c.Parallel = 64 },
		"faster arithmetic": func(c *Config) { c.Device.Host.DenseRate *= 2; c.Device.Host.RowRate *= 2 },
		"faster copies":     func(c *Config) { c.Device.Host.CopyRate *= 2 },
	} {
		c := testConfig()
		better(&c)
		if wall := mustRun(t, src, c).Meta.Totals.Wall; wall > base {
			t.Errorf("%s: %v, slower than %v", name, wall, base)
		}
	}
	previous := units.Forever
	for window := range 12 {
		c := testConfig()
		c.Window = window
		wall := mustRun(t, src, c).Meta.Totals.PartNanos[traces.PartIO]
		if wall > previous {
			t.Errorf("window %d: I/O takes %v, more than %v with a smaller one", window, wall, previous)
		}
		previous = wall
	}
}

func TestSequencesStartCold(t *testing.T) {
	src := testTrace(1, 300, 20, 0.1)
	run := mustRun(t, src, testConfig())
	for _, r := range run.Rows {
		if r.Part == traces.PartIO && r.Pos == 0 && r.Hits != 0 {
			t.Errorf("sequence %d starts with %d hits", r.Seq, r.Hits)
		}
	}
	if run.Meta.Totals.Hits == 0 {
		t.Error("no hits at all: the window did nothing")
	}
}

func TestExtrapolationIsSaid(t *testing.T) {
	src := testTrace(1, 300, 10, 0.2)
	for _, c := range []struct {
		fit  *devicemodels.Fit
		want int
	}{
		{nil, 0},
		{&devicemodels.Fit{ChunkMin: 4096, ChunkMax: 65536, DepthMin: 1, DepthMax: 32}, 0},
		{&devicemodels.Fit{ChunkMin: 65536, ChunkMax: 262144, DepthMin: 1, DepthMax: 32}, 1},
		{&devicemodels.Fit{ChunkMin: 512, ChunkMax: 1024, DepthMin: 1, DepthMax: 1}, 2},
	} {
		cfg := testConfig()
		cfg.Device.Fit = c.fit
		if w := mustRun(t, src, cfg).Meta.Warnings; len(w) != c.want {
			t.Errorf("fit %+v: warnings %q, want %d", c.fit, w, c.want)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	src := testTrace(1, 64, 2, 0.1)
	for name, breakIt := range map[string]func(c *Config){
		"no device":          func(c *Config) { c.Device = nil },
		"negative window":    func(c *Config) { c.Window = -1 },
		"unknown engine":     func(c *Config) { c.Engine = "floppy" },
		"no threads":         func(c *Config) { c.Parallel = 0 },
		"no predicted masks": func(c *Config) { c.Predicted = true },
		"another geometry":   func(c *Config) { c.Geometry = layout.Uniform(1, 65, 8192) },
		"odd chunk":          func(c *Config) { c.Layout.MaxRequest = 5000 },
	} {
		c := testConfig()
		breakIt(&c)
		if _, err := Run(src, c); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: error %v, want one of kind ErrConfig", name, err)
		}
	}
}

func BenchmarkRun(b *testing.B) {
	src := testTrace(8, 8192, 32, 0.05)
	requests := int64(0)
	for b.Loop() {
		run, err := Run(src, testConfig())
		if err != nil {
			b.Fatal(err)
		}
		requests = run.Meta.Totals.Requests
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(requests), "ns/request")
}
