package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/synth"
)

// testDevice has host and flash times of every kind; edit changes the flash.
func testDevice(name string, edit func(f *flash.Spec)) *devicemodels.Device {
	d := &devicemodels.Device{
		Version: "1", Name: name, Source: "made up for tests",
		Flash: flash.Spec{
			Servers: 8, LTFB: 90 * units.Microsecond, ServerRate: 400 * units.MBps, LinkRate: 2 *
				units.GBps, Align: 4096,
			Engines: map[string]flash.EngineCost{
				"pread": {Batch: 5000, Submit: 4000, Complete: 2000},
				"uring": {Batch: 3000, Submit: 1500, Complete: 500, Serial: true},
			},
		},
		Host: devicemodels.Host{
			Cores: 4, MemoryRate: 20 * units.GBps, DenseRate: 15 * units.GBps, DenseFixed: 2000,
			RowRate: 10 * units.GBps, RowFixed: 1000,
			CopyRate: 8 * units.GBps, CopyFixed: 100, KVRate: 10 * units.GBps, LayerFixed: 3000,
			TokenFixed: 10000, DecideFixed: 500, DecideUnit: 10,
			HeldRate: 900 * units.GBps, IOContention: 2,
		},
	}
	if edit != nil {
		edit(&d.Flash)
	}
	return d
}

func preset(t testing.TB, name string) *devicemodels.Device {
	t.Helper()
	d, err := devicemodels.Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// smallTrace has two sequences, and a number of tokens that is no multiple of a block.
func smallTrace(t testing.TB) *traces.Memory {
	t.Helper()
	m, err := synth.Collect(t.Context(), synth.Options{Like: "opt-125m", Layers: 3, Units: 700,
		Tokens: 21,
		Prompt: 4, Sequences: 2, Seed: 9, ActiveShare: 0.08, Predicted: true})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func run(t testing.TB, src *Trace, configs []Config, opt Options) []Result {
	t.Helper()
	var list []Result
	err := Run(context.Background(), src, List(configs), opt, func(r *Result) error {
		list = append(list, *r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// mixed is configurations of every kind: all windows of a range, other policies, both masks, chunks
// and gaps.
func mixed(device *devicemodels.Device) (list []Config) {
	add := func(c sim.Config) {
		c.Device, c.Engine, c.Parallel = device, "pread", 16
		list = append(list, Config{Config: c})
	}
	for window := range 25 {
		add(sim.Config{Policy: policy.SlidingWindow(window), Layout: layout.Options{
			Coalesce: true}})
		add(sim.Config{Policy: policy.SlidingWindow(window), Predicted: true, PredictorRank: 16,
			Layout: layout.Options{
				Coalesce: true, Gap: 2, MaxRequest: 8192}})
	}
	for _, text := range []string{"all", "hybrid:300", "none", "window:4,capacity:100", "delta:80",
		"lru:100", "lfu:100", "hot:50+60", "belady:100", "tensors:1", "cyclic:100",
		"pages:100,ahead:8"} {
		spec, err := policy.Parse(text)
		if err != nil {
			panic(err)
		}
		add(sim.Config{Policy: spec, Layout: layout.Options{Coalesce: true, MaxRequest: 16384}})
		add(sim.Config{Policy: spec, Predicted: true, Layout: layout.Options{}})
	}
	return list
}

// Invariant 1: decisions are those of sim.Run, and with a device that remembers so are all times,
// to the nanosecond.
func TestEventsEqualSingleRuns(t *testing.T) {
	device := testDevice("limited", func(f *flash.Spec) {
		f.Limit = &flash.Limit{Rate: 300 * units.MBps, Interval: 20 * units.Millisecond}
	})
	src := smallTrace(t)
	configs := mixed(device)
	for i, r := range run(t, FromSource(src, 0), configs, Options{}) {
		single, err := sim.Run(t.Context(), src, configs[i].Config)
		if err != nil {
			t.Fatal(err)
		}
		want := single.Meta.Totals
		if r.Timing != ByEvents {
			t.Fatalf("%s: timed by %s", r.Policy, r.Timing)
		}
		sameDecisions(t, &r, &want)
		for p, part := range r.Parts {
			if part.Nanos != want.PartNanos[p] {
				t.Errorf("%d, %s: %s takes %v, in a run of its own %v", i, r.Policy, part.Name,
					part.Nanos, want.PartNanos[p])
			}
		}
		prefetched := single.Meta.Prediction.TokensPerSPrefetched
		if r.Wall != want.Wall || *r.Prefetched != *prefetched ||
			r.Basis != single.Meta.Prediction.Basis ||
			math.Abs(r.MeanDepth/want.MeanDepth-1) > 1e-6 {
			t.Errorf("%d, %s: %+v, want %+v", i, r.Policy, r, want)
		}
	}
}

func sameDecisions(t *testing.T, r *Result, want *traces.Totals) {
	t.Helper()
	if r.Tokens != want.Tokens || r.Bytes != want.Bytes || r.Requests != want.Requests ||
		r.Hits != want.Hits || r.Misses != want.Misses || r.Evictions != want.Evictions {
		t.Errorf("%d, %s: %d tokens, %v in %d requests, %d hits, %d misses, %d evictions; a run "+
			"of its own has %+v",
			r.Index, r.Policy, r.Tokens, r.Bytes, r.Requests, r.Hits, r.Misses, r.Evictions, want)
	}
}

// tableDevices are devices of all shapes that a table is for.
func tableDevices(t testing.TB) []*devicemodels.Device {
	list := []*devicemodels.Device{
		testDevice("servers", nil),
		testDevice("deep", func(f *flash.Spec) {
			f.Servers, f.QueueDepth, f.MaxIOPS,
				f.MaxTransfer = 32, 16, 200_000, 8192
		}),
		testDevice("dies", func(f *flash.Spec) { f.Placement = flash.PlaceByAddress }),
		testDevice("pages", func(f *flash.Spec) { f.Page = 16 * units.KiB }),
		testDevice("rounds", func(f *flash.Spec) {
			f.Placement, f.MaxIOPS = flash.PlaceInRounds,
				60_000
		}),
		testDevice("drawn", func(f *flash.Spec) {
			f.LTFBShape.Add(60*units.Microsecond, 90)
			f.LTFBShape.Add(300*units.Microsecond, 10)
		}),
	}
	for _, name := range []string{"m1-max", "samsung-860pro-sata", "ufs40-8gen3", "rtx4090-linux",
		"emmc-64gb-sige5"} {
		list = append(list, preset(t, name))
	}
	return list
}

// Invariant 2: the time of I/O is within 1 % of a run of its own, for all shapes of devices, masks,
// windows, chunks, gaps and depths.
func TestTableErrorIsSmall(t *testing.T) {
	src, err := synth.Collect(t.Context(), synth.Options{Like: "opt-6.7b", Layers: 2, Units: 5000,
		Tokens: 32,
		Seed:   3, Predicted: true})
	if err != nil {
		t.Fatal(err)
	}
	var configs []Config
	for _, d := range tableDevices(t) {
		for _, parallel := range []int{1, 6, 64} {
			for i, l := range []layout.Options{{Coalesce: true}, {}, {Coalesce: true,
				MaxRequest: 8192}, {Coalesce: true, Gap: 3}} {
				window := []int{0, 1, 5}[(i+parallel)%3]
				configs = append(configs, Config{Config: sim.Config{Device: d, Engine: engineOf(d),
					Parallel: parallel, Policy: policy.SlidingWindow(window), Predicted: i%2 == 0,
					Layout: l}})
			}
		}
	}
	tables := 0
	for i, r := range run(t, FromSource(src, 0), configs, Options{}) {
		single, err := sim.Run(t.Context(), src, configs[i].Config)
		if err != nil {
			t.Fatal(err)
		}
		want := single.Meta.Totals
		sameDecisions(t, &r, &want)
		off := 100 * (float64(r.Parts[traces.PartIO].Nanos)/float64(want.PartNanos[traces.PartIO]) -
			1)
		most := 1.0
		if r.Timing == ByEvents {
			most = 0
		} else {
			tables++
		}
		if math.Abs(off) > most {
			t.Errorf("%s, %d in flight, %s, gap %d, chunk %v, by %s: I/O is off by %.2f %%, "+
				"audited %.2f", r.Device, r.Parallel, r.Policy, r.Gap, r.Chunk, r.Timing, off,
				*r.AuditPercent)
		}
	}
	if tables < len(configs)/2 {
		t.Errorf("%d of %d configurations are timed by tables", tables, len(configs))
	}
}

func engineOf(d *devicemodels.Device) string {
	if _, ok := d.Flash.Engines["uring"]; ok {
		return "uring"
	}
	return "pread"
}

// A batch of equal reads is in the table as the event model has it, or between two such.
func TestTableOfEqualReads(t *testing.T) {
	for _, d := range tableDevices(t) {
		cfg := sim.Config{Device: d, Engine: engineOf(d), Parallel: 32, Layout: layout.Options{
			Align: 4096}, Geometry: layout.Uniform(2, 4096, 16384)}
		table := NewTable(cfg)
		for _, n := range []int{1, 2, 3, 7, 31, 64, 100, 333, 1500} {
			for _, size := range []units.Bytes{4096, 8192, 16384, 24576, 28672, 102400} {
				got, sojourn, err := table.Time(n, size*units.Bytes(n))
				if err != nil {
					t.Fatal(err)
				}
				want := meanOfEvents(t, &cfg, n, size, table.drawn)
				most := 0.01
				if table.drawn {
					most = 0.04 // two means of draws
				}
				if off := float64(got)/float64(want) - 1; math.Abs(off) > most || sojourn < got/2 {
					t.Errorf("%s: %d reads of %v: %v, events say %v", d.Name, n, size, got, want)
				}
			}
		}
	}
}

func meanOfEvents(t *testing.T, cfg *sim.Config, n int, size units.Bytes, drawn bool) units.Nanos {
	t.Helper()
	station, err := cfg.NewStation(77)
	if err != nil {
		t.Fatal(err)
	}
	draws := 1
	if drawn {
		draws = min(20_000/n+1, 4000)
	}
	reads := make([]flash.Read, n)
	end := units.Nanos(0)
	for draw := range draws {
		for i := range reads {
			reads[i] = flash.Read{Offset: units.Bytes((i*7919+draw*104729)%8192) * 16384,
				Length: size}
		}
		batch, err := station.Batch(end, reads)
		if err != nil {
			t.Fatal(err)
		}
		end = batch.End
	}
	return end / units.Nanos(draws)
}

// Invariant 3: a result depends on its configuration and the trace alone.
func TestResultsDependOnNothingElse(t *testing.T) {
	src := smallTrace(t)
	fresh := func() []Config {
		list := mixed(testDevice("servers", nil))
		list = append(list, inBatches(list[40:55], 1, 4)...)
		return append(list, mixed(testDevice("dies", func(f *flash.Spec) {
			f.Placement = flash.PlaceByAddress
		}))[:10]...)
	}
	whole := lines(t, run(t, FromSource(src, 0), fresh(), Options{Workers: 1}))
	if got := lines(t, run(t, FromSource(src, 0), fresh(), Options{Workers: 5})); !slices.Equal(got,
		whole) {
		t.Error("5 workers: other results than 1")
	}
	if got := lines(t, run(t, FromSource(src, 0), fresh(), Options{First: 31})); !slices.Equal(got,
		whole[31:]) {
		t.Error("from configuration 31 on: other results than in the whole")
	}
	for _, part := range [][2]int{{0, 13}, {85, 90}} {
		alone := fresh()[part[0]:part[1]]
		if got := lines(t, run(t, FromSource(src, 0), alone,
			Options{Base: part[0]})); !slices.Equal(got, whole[part[0]:part[1]]) {
			t.Errorf("configurations %v: other results than among all", part)
		}
	}
}

func lines(t *testing.T, results []Result) (list []string) {
	t.Helper()
	for _, r := range results {
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, string(text))
	}
	return list
}

// A synthetic trace that is made on the way is the one that is made beforehand, and can end early.
func TestSyntheticTrace(t *testing.T) {
	opt := synth.Options{Like: "opt-125m", Layers: 2, Units: 500, Tokens: 70, Seed: 9,
		ActiveShare: 0.08, Predicted: true}
	memory, err := synth.Collect(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := FromSynth(opt, 67)
	if err != nil {
		t.Fatal(err)
	}
	configs := mixed(testDevice("servers", nil))[:20]
	got, want := run(t, stream, configs, Options{}), run(t, FromSource(memory, 67), configs,
		Options{})
	if !slices.Equal(lines(t, got), lines(t, want)) || got[0].Tokens != 67 {
		t.Error("a trace made on the way gives other results")
	}
}

func TestLatenciesAreWithinTheirBins(t *testing.T) {
	var l latencies
	var all []units.Nanos
	for i := range 1000 {
		v := units.Nanos(math.Pow(1.01, float64(i)) * 50)
		all = append(all, v)
		l.add(v)
	}
	for _, q := range []float64{0.01, 0.5, 0.99, 1} {
		want := float64(all[int(math.Ceil(q*1000))-1])
		if got := float64(l.quantile(q)); math.Abs(got/want-1) > 0.004 {
			t.Errorf("quantile %g: %g, want %g", q, got, want)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	device := testDevice("servers", nil)
	src, err := FromSynth(synth.Options{Like: "opt-125m", Layers: 1, Tokens: 3, ActiveShare: 0.05},
		0)
	if err != nil {
		t.Fatal(err)
	}
	good := Config{Config: sim.Config{Device: device, Engine: "pread", Parallel: 4,
		Policy: policy.SlidingWindow(2),
		Layout: layout.Options{Coalesce: true}}}
	for name, breakIt := range map[string]func(c *Config){
		"engine":         func(c *Config) { c.Engine = "floppy" },
		"no threads":     func(c *Config) { c.Parallel = 0 },
		"no predicted":   func(c *Config) { c.Predicted = true },
		"odd chunk":      func(c *Config) { c.Layout.MaxRequest = 5000 },
		"long window":    func(c *Config) { c.Policy.Window = longestWindow + 1 },
		"other geometry": func(c *Config) { c.Geometry = layout.Uniform(1, 65, 8192) },
		"future": func(c *Config) {
			c.Policy = policy.Spec{
				Kind: policy.KindBelady, Capacity: 5}
		},
		"prefetch": func(c *Config) {
			c.Schedule = sim.Schedule{Spec: schedule.Spec{Kind: schedule.LookAhead}, Recall: 1}
		},
	} {
		bad := good
		breakIt(&bad)
		err := Run(context.Background(), src, List{good, bad}, Options{}, func(*Result) error {
			return nil
		})
		if !errors.Is(err, sim.ErrConfig) {
			t.Errorf("%s: error %v, want one of kind sim.ErrConfig", name, err)
		}
	}
}

func TestInterruptedRunStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	opt := Options{Progress: func(done, total int, pass float64) {
		if pass > 0 {
			cancel()
		}
	}}
	err := Run(ctx, FromSource(smallTrace(t), 0), List(mixed(testDevice("servers", nil))), opt,
		func(*Result) error {
			return fmt.Errorf("a result after the interruption")
		})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

// TestGPUEqualsSingleRuns: on a GPU, whose streams go on from token to token, as events and by
// table, observed and not.
func TestGPUEqualsSingleRuns(t *testing.T) {
	limited := testDevice("limited", func(f *flash.Spec) {
		f.Limit = &flash.Limit{Rate: 300 * units.MBps, Interval: 20 * units.Millisecond}
	})
	plain := testDevice("servers", nil)
	fixture, err := devicemodels.Load(t.Context(),
		"../../devicemodels/testdata/made-up-gpu.device.yaml")
	if err != nil {
		t.Fatal(err)
	}
	src := smallTrace(t)
	for _, device := range []*devicemodels.Device{limited, plain} {
		device.GPU = fixture.GPU
		configs := mixed(device)
		for i := range configs {
			configs[i].Backend, configs[i].Observed = sim.OnCUDA, i%2 == 0
		}
		for i, r := range run(t, FromSource(src, 0), configs, Options{Workers: 2}) {
			single, err := sim.Run(t.Context(), src, configs[i].Config)
			if err != nil {
				t.Fatal(err)
			}
			want := single.Meta.Totals
			sameDecisions(t, &r, &want)
			if r.Backend != sim.OnCUDA || r.Prefetched != nil {
				t.Errorf("%d: %+v", i, r)
			}
			if r.Timing == ByEvents && r.Wall != want.Wall ||
				math.Abs(float64(r.Wall)/float64(want.Wall)-1) > 0.01 {
				t.Errorf("%d, %s, %s: %v, in a run of its own %v", i, r.Policy, r.Timing, r.Wall,
					want.Wall)
			}
		}
	}
	_, err = sim.Run(t.Context(), src, sim.Config{Device: testDevice("none", nil), Engine: "pread",
		Parallel: 1,
		Backend:  sim.OnCUDA})
	if !errors.Is(err, sim.ErrConfig) {
		t.Errorf("a device without a GPU: %v", err)
	}
	batch := Config{Config: sim.Config{Device: plain, Engine: "pread", Parallel: 1,
		Backend: sim.OnCUDA}, Variant: Variant{Batch: 2}}
	if err := Run(t.Context(), FromSource(src, 0), List{batch}, Options{}, func(*Result) error {
		return nil
	}); !errors.Is(err, sim.ErrConfig) {
		t.Errorf("a batch on a GPU: %v", err)
	}
}
