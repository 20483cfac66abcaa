package sim

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

const us = units.Microsecond

// handDevice has times that are easily added: a read takes 10 µs, one after the other; attention 20
// µs on an accelerator, a sparse feed-forward 5 µs, a dense one nothing, and moving a row 1 µs.
func handDevice() *devicemodels.Device {
	return &devicemodels.Device{
		Version: "1", Name: "by hand",
		Flash: flash.Spec{Servers: 1, LTFB: 10 * us, Align: 4096,
			Engines: map[string]flash.EngineCost{"pread": {}}},
		// SyncFixed: an accelerator
		Host: devicemodels.Host{Cores: 2, LayerFixed: 15 * us, SyncFixed: 5 * us, RowFixed: 5 * us,
			CopyFixed: us},
	}
}

// handTrace is one token that needs so many units of each layer.
func handTrace(need ...uint) *traces.Memory {
	m := &traces.Memory{Head: traces.Header{
		SchemaVersion: traces.SchemaVersion, UnitKind: traces.Neuron, Layers: len(need), Units: 8,
		UnitBytes: 4096, Model: "by hand",
		Shape: traces.Shape{DModel: 512, Layers: len(need), DFFN: 8, Heads: 8, KVHeads: 8,
			HeadDim: 64, Rows: 2, DTypeSize: 4},
	}, List: []traces.Token{{Phase: traces.Decode}}}
	for _, n := range need {
		m.List[0].Active = append(m.List[0].Active, []uint64{1<<n - 1})
	}
	return m
}

// TestSchedulesByHand: the second layer needs 3 units and the third 4.
func TestSchedulesByHand(t *testing.T) {
	ahead := func(kind schedule.Kind, dense int, staging units.Bytes, wait Wait) Schedule {
		return Schedule{Spec: schedule.Spec{Kind: kind, Dense: dense, Staging: staging}, Recall: 1,
			Wait: wait}
	}
	for _, c := range []struct {
		name                      string
		schedule                  Schedule
		wall, io, hidden, exposed units.Nanos // µs; exposed is of reads in flight
		chunks                    int64
	}{
		// 20+10+1+5, 20+30+3+5 and 20+40+4+5.
		{"demand", Schedule{}, 163, 80, 0, 80, 0},
		// Layer 0's own is read 20-30 and in place at 31; its ffn ends at 36. Then three for layer
		// 1, 31-61, in place at 64. Layer 1's attention ends at 56; it waits until 64, 69. Layer 2
		// is read 61-101, in place at 105, while attention ends at 89.
		{"look-ahead", ahead(schedule.LookAhead, 0, schedule.Unlimited, ""), 110, 34, 50, 30, 2},
		// The engine's buffer is for layer 1's three when layer 2's four are known, and grows when
		// it is empty: 64-104, in place at 108.
		{"look-ahead, as the engine", ahead(schedule.LookAhead, 0, 0, ""), 113, 37, 50, 30, 2},
		// Layer 0 is dense: 20. Layer 1 is read 20-50 and in place at 53; its attention ends at 40,
		// its ffn at 58. Layer 2 is read 50-90, in place at 94; attention ends at 78.
		{"look-ahead, dense prefix", ahead(schedule.LookAhead, 1, schedule.Unlimited, ""), 99, 29,
			45, 25, 2},
		// The seven are read 20-90: layer 1 in place at 53, layer 2 at 94. The suffix takes 50.
		{"token", ahead(schedule.Token, 1, schedule.Unlimited, ""), 144, 74, 0, 70, 1},
		// The buffer holds the four reads of layer 2, so that layer 1's three leave no room for
		// them: 20-50, in place at 53; 53-93, in place at 97.
		{"token, as the engine", ahead(schedule.Token, 1, 0, ""), 147, 77, 0, 70, 2},
		// Layer 1 computes 20-40, waits until 53, 58; layer 2 until 78, waits until 94, 99. The
		// drive reads until 90.
		{"token, by layer", ahead(schedule.Token, 1, schedule.Unlimited, WaitLayer), 99, 13 + 16,
			45, 13 + 12,
			1},
		// Of layers 0 and 1, which take 20 each, layer 1 hides two of the four reads, 20-60, in
		// place at 64.
		{"token, two dense layers", ahead(schedule.Token, 2, 0, ""), 89, 24, 20, 20, 1},
		// One at a time, each in place while the next is read, 20-70; the last two go together when
		// the buffer is empty: 71-91, in place at 93.
		{"token, staging of two", ahead(schedule.Token, 1, 2*4096, ""), 143, 73, 0, 70, 6},
		// Together, being few: 20-90, in place at 97.
		{"token, staging of all", ahead(schedule.Token, 1, 7*4096, ""), 147, 77, 0, 70, 1},
		// Nothing is named: as on demand, but layer 0 is dense. 20, 20+30+3+5, 20+40+4+5.
		{"token, no recall", Schedule{Spec: schedule.Spec{Kind: schedule.Token, Dense: 1}}, 147, 70,
			0, 70, 0},
		{"all dense", ahead(schedule.Token, 3, 0, ""), 60, 0, 0, 0, 0},
	} {
		cfg := Config{Engine: "pread", Parallel: 1, Device: handDevice(), Policy: policy.Spec{
			Kind: policy.KindNone}, Schedule: c.schedule}
		run := mustRun(t, handTrace(1, 3, 4), cfg)
		totals, facts := run.Meta.Totals, run.Meta.Prefetches
		if totals.Wall != c.wall*us || totals.PartNanos[traces.PartIO] != c.io*us {
			t.Errorf("%s: %v with %v of waiting, want %d µs and %d µs", c.name, totals.Wall,
				totals.PartNanos[traces.PartIO], c.wall, c.io)
		}
		if facts == nil {
			if c.schedule.Kind != schedule.Demand {
				t.Errorf("%s: the Run has no facts about prefetches", c.name)
			}
			continue
		}
		if facts.Hidden != c.hidden*us || facts.Submissions != c.chunks || facts.Wasted != 0 ||
			facts.Slowed != 0 {
			t.Errorf("%s: %+v, want %d µs hidden and %d chunks", c.name, *facts, c.hidden, c.chunks)
		}
		if reads := units.Nanos(totals.Requests) * 10; c.hidden+c.exposed != reads {
			t.Errorf("%s: %d requests, which take %d µs; %d were hidden and %d waited for", c.name,
				totals.Requests, reads, c.hidden, c.exposed)
		}
		checkTiled(t, c.name, run)
	}
}

// checkTiled: in time, every row starts where another ends, and the parts add up to the wall time.
func checkTiled(t *testing.T, name string, run *traces.Run) {
	t.Helper()
	starts, sum := map[units.Nanos]bool{0: true}, units.Nanos(0)
	for _, r := range run.Rows {
		starts[r.Start+r.Dur] = true
		sum += r.Dur
	}
	for _, r := range run.Rows {
		if !starts[r.Start] {
			t.Errorf("%s: a row of %v, layer %d, starts at %v, where none ends", name, r.Part,
				r.Layer, r.Start)
		}
	}
	if sum != run.Meta.Totals.Wall {
		t.Errorf("%s: the parts add up to %v, the wall time is %v", name, sum, run.Meta.Totals.Wall)
	}
}

// TestContentionByHand: three reads of 10 µs beside the 20 µs of attention of layer 1, whose
// 2·(8+8)·64·512·4 = 4 MiB are its whole traffic.
func TestContentionByHand(t *testing.T) {
	const traffic = 4 * units.MiB
	// The memory gives just what attention wants.
	const free = units.Rate(1e18)
	full := units.Bytes(traffic).Over(20 * us)
	for _, c := range []struct {
		name string
		edit func(d *devicemodels.Device)
		wall units.Nanos
		slow units.Nanos
	}{
		// Layer 0 20 µs, dense layer 1 20-40; the reads end at 50; layer 2 70, 75.
		{"none", func(*devicemodels.Device) {}, 75 * us, 0},
		{"memory to spare", func(d *devicemodels.Device) {
			d.Host.MemoryRate,
				d.Host.IOContention = 2*full, 100
		}, 75 * us, 0},
		// The reads take all of the memory: layer 1 computes when they are through, 50-70.
		{"all of the memory", func(d *devicemodels.Device) {
			d.Host.MemoryRate,
				d.Host.IOContention = full, 1e6
		}, 95 * us, 30 * us},
		// The reads now take 10 µs of one of two cores each: 20-30, 30-40 and 40-50. Attention
		// loses 10 of its 20 µs, then 5 of the 10.
		{"the cores", func(d *devicemodels.Device) {
			d.Flash.Engines["pread"] = flash.EngineCost{Submit: 10 * us}
			d.Flash.LTFB, d.Host.LayerFixed, d.Host.SyncFixed = 0, 20*us, 0
		}, 80 * us, 15 * us},
		{"an accelerator does not need the cores", func(d *devicemodels.Device) {
			d.Flash.Engines["pread"] = flash.EngineCost{Submit: 10 * us}
			d.Flash.LTFB = 0
		}, 75 * us, 0},
	} {
		device := handDevice()
		device.Host.CopyFixed, device.Host.DenseRate, device.Host.RowRate, device.Host.CopyRate,
			device.Host.KVRate = 0, free, free, free, free
		c.edit(device)
		cfg := Config{Engine: "pread", Parallel: 1, Device: device, Policy: policy.Spec{
			Kind: policy.KindNone}, Schedule: Schedule{Spec: schedule.Spec{Kind: schedule.Token,
			Dense: 2}, Recall: 1}}
		run := mustRun(t, handTrace(0, 0, 3), cfg)
		var attention units.Nanos
		for _, r := range run.Rows {
			if r.Part == traces.PartAttention && r.Layer == 1 {
				attention = r.Dur
			}
		}
		// Times round up: even free bytes take a nanosecond.
		near := func(a, b units.Nanos) bool { return a-b >= 0 && a-b < us/10 }
		if got := run.Meta.Totals.Wall; !near(got, c.wall) || !near(run.Meta.Prefetches.Slowed,
			c.slow) || !near(attention, 20*us+c.slow) {
			t.Errorf("%s: %v, slowed by %v, attention %v; want %v and %v", c.name, got,
				run.Meta.Prefetches.Slowed, attention, c.wall, c.slow)
		}
	}
}

// TestScatterTakesFromCompute where no accelerator computes. Layers 1 and 2 are dense, 20-40 and
// 40-60. Three reads end at 50, and their rows take 3 µs. Layer 3 takes 25.
func TestScatterTakesFromCompute(t *testing.T) {
	cfg := Config{Engine: "pread", Parallel: 1, Device: handDevice(), Policy: policy.Spec{
		Kind: policy.KindNone}, Schedule: Schedule{Spec: schedule.Spec{Kind: schedule.Token,
		Dense: 3}, Recall: 1}}
	if wall := mustRun(t, handTrace(0, 0, 0, 3), cfg).Meta.Totals.Wall; wall != 85*us {
		t.Errorf("%v with an accelerator, want 85 µs", wall)
	}
	cfg.Device.Host.LayerFixed, cfg.Device.Host.SyncFixed = 20*us, 0
	if wall := mustRun(t, handTrace(0, 0, 0, 3), cfg).Meta.Totals.Wall; wall != 88*us {
		t.Errorf("%v without, want 88 µs", wall)
	}
}

// TestNoScheduleBeatsTheBound that a run on demand states: the reads of every token all hidden
// behind its compute.
func TestNoScheduleBeatsTheBound(t *testing.T) {
	src := testTrace(4, 300, 12, 0.1)
	for _, cores := range []int{1, 4, 64} {
		for _, contention := range []float64{0, 2, 50} {
			cfg := testConfig()
			cfg.Device.Host.Cores, cfg.Device.Host.IOContention = cores, contention
			demand := mustRun(t, src, cfg).Meta
			cfg.Schedule = Schedule{Spec: schedule.Spec{Kind: schedule.LookAhead}, Recall: 1}
			rate, bound := mustRun(t, src, cfg).Meta.Totals.TokensPerS,
				*demand.Prediction.TokensPerSPrefetched
			// Bytes count when their read is through, so that a part may not see those of its last
			// moments. Where reads slow compute that much, hiding only some of them is better than
			// hiding all, which is what the bound has.
			slack := 1.005
			if contention > 2 {
				slack = 1.015
			}
			if rate > slack*bound || rate <= demand.Totals.TokensPerS {
				t.Errorf("%d cores, contention %g: %.4g tokens/s, on demand %.4g, at most %.4g",
					cores, contention, rate, demand.Totals.TokensPerS, bound)
			}
		}
	}
}

// TestContentionAgainstOverlap: reads that end within one part of compute cost it what the closed
// form says of the two.
func TestContentionAgainstOverlap(t *testing.T) {
	const free, layer = units.Rate(1e18), 5 * units.Millisecond
	src := testTrace(3, 400, 1, 1)
	device := handDevice()
	device.Flash = flash.Spec{Servers: 1, ServerRate: units.GBps, Align: 4096,
		Engines: map[string]flash.EngineCost{"pread": {}}}
	device.Host = devicemodels.Host{Cores: 1, LayerFixed: layer, DenseRate: free, RowRate: free,
		CopyRate: free, KVRate: free, MemoryRate: 9 * units.GBps}
	for _, contention := range []float64{0, 1, 2, 4, 6, 1000} {
		device.Host.IOContention = contention
		cfg := Config{Engine: "pread", Parallel: 4, Device: device, Policy: policy.Spec{
			Kind: policy.KindNone}, Schedule: Schedule{Spec: schedule.Spec{Kind: schedule.Token,
			Dense: 2}, Recall: 1}}
		run := mustRun(t, src, cfg)
		times := NewHost(device, &src.Head, 0).Dense(0)
		want := device.Host.Overlap(run.Meta.Prefetches.Hidden, run.Meta.Totals.Bytes, times.Sum(),
			times.Traffic) - times.Sum()
		if got := run.Meta.Prefetches.Slowed; math.Abs(float64(got-want)) > 0.02*float64(want)+10 ||
			run.Meta.Totals.PartNanos[traces.PartIO] != 0 {
			t.Errorf("contention %g: slowed by %v, closed form %v; %v of waiting", contention, got,
				want, run.Meta.Totals.PartNanos[traces.PartIO])
		}
	}
}

// prefetchConfig is testConfig with a schedule, without limits to overlap.
func prefetchConfig(s Schedule) Config {
	cfg := testConfig()
	cfg.Schedule = s
	cfg.Device.Host.SyncFixed = 1 // an accelerator computes
	return cfg
}

var schedules = map[string]Schedule{
	"look-ahead": {Spec: schedule.Spec{Kind: schedule.LookAhead}, Recall: 1},
	"uncertain": {Spec: schedule.Spec{Kind: schedule.LookAhead}, Recall: 0.8,
		FalsePositives: 0.02},
	"dense prefix": {Spec: schedule.Spec{Kind: schedule.LookAhead, Dense: 2}, Recall: 0.9},
	"token":        {Spec: schedule.Spec{Kind: schedule.Token, Dense: 2}, Recall: 1},
	"token by layer": {Spec: schedule.Spec{Kind: schedule.Token, Dense: 1}, Recall: 1,
		Wait: WaitLayer},
	"staging": {Spec: schedule.Spec{Kind: schedule.Token, Dense: 2, Staging: 256 *
		units.KiB}, Recall: 1},
	"staging, uncertain": {Spec: schedule.Spec{Kind: schedule.Token, Dense: 1, Staging: 100_000},
		Recall: 0.7, FalsePositives: 0.05, Wait: WaitLayer},
	"small staging": {Spec: schedule.Spec{Kind: schedule.LookAhead, Staging: 8192},
		Recall: 0.9, FalsePositives: 0.01},
}

// TestSchedulesDecideAlike: schedules move reads in time. The hits, misses and evictions of sparse
// layers are those of demand.
func TestSchedulesDecideAlike(t *testing.T) {
	src := testTrace(5, 300, 16, 0.1)
	for name, s := range schedules {
		run := mustRun(t, src, prefetchConfig(s))
		if again := mustRun(t, src, prefetchConfig(s)); !reflect.DeepEqual(run, again) {
			t.Errorf("%s: two runs differ", name)
		}
		checkTiled(t, name, run)
		demand := mustRun(t, src, prefetchConfig(Schedule{}))
		if !reflect.DeepEqual(decisions(run, s.Dense), decisions(demand, s.Dense)) {
			t.Errorf("%s: other decisions than on demand", name)
		}
		for _, row := range run.Rows {
			if int(row.Layer) < s.Dense && row.Part == traces.PartIO && (row.Misses != 0 ||
				row.Requests != 0 || row.Hits == 0 || row.Dur != 0) {
				t.Errorf("%s: layer %d is dense, %+v", name, row.Layer, row)
			}
		}
		facts := run.Meta.Prefetches
		if oracle := s.Recall == 1; oracle != (facts.Missed == 0) ||
			(s.FalsePositives > 0) != (facts.Wasted > 0) {
			t.Errorf("%s: %d units missed, %v wasted", name, facts.Missed, facts.Wasted)
		}
		if facts.Named == 0 || facts.Hidden <= 0 || facts.Bytes > run.Meta.Totals.Bytes {
			t.Errorf("%s: %+v", name, *facts)
		}
		if path := t.TempDir() + "/a.run.arrow"; traces.WriteRun(path, run) != nil {
			t.Errorf("%s: the Run cannot be written", name)
		} else if back, err := traces.ReadRun(t.Context(), path); err != nil ||
			!reflect.DeepEqual(back.Meta.Prefetches, facts) {
			t.Errorf("%s: written %+v, read %+v, %v", name, facts, back.Meta.Prefetches, err)
		}
	}
}

// TestSchedulesHoldEverywhere: conservation (which every Run checks), tiled time and the decisions
// of demand, over configurations chosen at random.
func TestSchedulesHoldEverywhere(t *testing.T) {
	random := rand.New(rand.NewPCG(12, 4))
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	for range 80 {
		src := testTrace(1+random.IntN(5), 100+random.IntN(100), 1+random.IntN(8),
			random.Float64()/2)
		cfg := testConfig()
		cfg.Engine, cfg.Parallel = pick("pread", "uring", "mmap"), 1+random.IntN(40)
		cfg.Device.Flash.Placement = flash.Placement(pick("", "address", "rounds"))
		cfg.Device.Flash.Engines["mmap"] = flash.EngineCost{Submit: 300, Complete: 200,
			Cached: true}
		cfg.Device.Flash.PageCache = &flash.PageCache{Capacity: 4 * units.MiB, ReadAhead: 64 *
			units.KiB, Fault: 2000, HitRate: units.GBps}
		cfg.Device.Host.IOContention = float64(random.IntN(3)) * 20
		cfg.Layout = layout.Options{Coalesce: random.IntN(2) == 0, Gap: random.IntN(3),
			MaxRequest: units.Bytes(random.IntN(3)) * 16 * units.KiB}
		var err error
		if cfg.Policy, err = policy.Parse(pick("all", "hybrid:50", "none", "window:3",
			"window:3,capacity:30", "delta:30", "lru:30", "lfu:30", "hot:10+20",
			"belady:30")); err != nil {
			t.Fatal(err)
		}
		demand := mustRun(t, src, cfg)
		cfg.Schedule = Schedule{
			Spec: schedule.Spec{Kind: schedule.Kind(pick("lookahead", "token")),
				Dense:   1 + random.IntN(src.Head.Layers),
				Staging: units.Bytes(random.IntN(3)*random.IntN(100)) * 8192}, // whole records
			Recall: float64(random.IntN(5)) / 4, FalsePositives: float64(random.IntN(3)) / 20,
		}
		if cfg.Schedule.Kind == schedule.Token {
			cfg.Schedule.Wait = Wait(pick("", "layer"))
		}
		name := fmt.Sprintf("%s, %s, %+v", cfg.Engine, cfg.Policy, cfg.Schedule)
		run := mustRun(t, src, cfg)
		checkTiled(t, name, run)
		if !reflect.DeepEqual(decisions(run, cfg.Schedule.Dense), decisions(demand,
			cfg.Schedule.Dense)) {
			t.Errorf("%s: other decisions than on demand", name)
		}
		if f := run.Meta.Prefetches; f.Hidden < 0 || f.Slowed < 0 ||
			f.Bytes > run.Meta.Totals.Bytes ||
			f.Wasted > 0 && f.Bytes == 0 {
			t.Errorf("%s: %+v", name, *f)
		}
	}
}

// decisions are the hits, misses and evictions of every token and layer from one on.
func decisions(run *traces.Run, from int) map[[2]uint32][3]uint32 {
	m := map[[2]uint32][3]uint32{}
	for _, row := range run.Rows {
		if at := [2]uint32{row.Token, uint32(row.Layer)}; int(row.Layer) >= from {
			m[at] = [3]uint32{m[at][0] + row.Hits, m[at][1] + row.Misses, m[at][2] + row.Evictions}
		}
	}
	return m
}

// TestPrefetchingHelps where nothing limits overlap: with any policy, an oracle is never slower
// than demand, and a larger staging buffer never makes it slower.
func TestPrefetchingHelps(t *testing.T) {
	src := testTrace(4, 300, 12, 0.1)
	for _, text := range []string{"none", "window:3", "lru:40", "delta:40", "hybrid:200", "all"} {
		spec, err := policy.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		wall := func(s Schedule) units.Nanos {
			cfg := prefetchConfig(s)
			cfg.Policy = spec
			return mustRun(t, src, cfg).Meta.Totals.Wall
		}
		demand := wall(Schedule{})
		if ahead := wall(Schedule{Spec: schedule.Spec{Kind: schedule.LookAhead},
			Recall: 1}); ahead >= demand {
			t.Errorf("%s: look-ahead takes %v, demand %v", text, ahead, demand)
		}
		previous := units.Forever
		for _, staging := range []units.Bytes{16 * units.KiB, 64 * units.KiB, 256 * units.KiB,
			units.MiB, 64 * units.MiB, schedule.Unlimited} {
			now := wall(Schedule{Spec: schedule.Spec{Kind: schedule.Token, Dense: 1,
				Staging: staging}, Recall: 1})
			if now > previous {
				t.Errorf("%s: %v with a staging buffer of %v, %v with less", text, now, staging,
					previous)
			}
			previous = now
		}
	}
}

// TestPredictionsNest: a larger recall predicts the same units and more, so no more is read on
// demand. The drawn shares are those asked for.
func TestPredictionsNest(t *testing.T) {
	const n = 40_000
	previous := map[uint32]bool{}
	for _, share := range []float64{0, 0.1, 0.5, 0.9, 0.99, 1} {
		s := Schedule{Recall: share, FalsePositives: share}
		g := s.guess(1, 2, 3, 4, nil)
		named := map[uint32]bool{}
		for unit := range uint32(n) {
			if g.predicts(unit, true) != g.predicts(unit, false) {
				t.Fatal("equal shares name different units")
			}
			if g.predicts(unit, true) {
				named[unit] = true
			} else if previous[unit] {
				t.Fatalf("recall %g does not name unit %d, a smaller one does", share, unit)
			}
		}
		if got := float64(len(named)) / n; math.Abs(got-share) > 4*math.Sqrt(share*(1-share)/n) {
			t.Errorf("recall %g names %.4f", share, got)
		}
		previous = named
	}
	src := testTrace(3, 300, 12, 0.1)
	missed := int64(math.MaxInt64)
	for _, recall := range []float64{0, 0.5, 0.9, 1} {
		facts := mustRun(t, src, prefetchConfig(Schedule{Spec: schedule.Spec{
			Kind: schedule.LookAhead},
			Recall: recall})).Meta.Prefetches
		if facts.Missed >= missed {
			t.Errorf("recall %g misses %d units, a smaller one %d", recall, facts.Missed, missed)
		}
		missed = facts.Missed
	}
}

// TestTracedPredictions: the trace's predicted masks are the prediction.
func TestTracedPredictions(t *testing.T) {
	src := handTrace(1, 3, 4)
	src.Head.HasPredicted = true
	src.List[0].Predicted = []mask.Mask{{0}, {0b110101}, {0b1111}}
	cfg := Config{Engine: "pread", Parallel: 1, Device: handDevice(), Policy: policy.Spec{
		Kind: policy.KindNone}, Schedule: Schedule{Spec: schedule.Spec{Kind: schedule.Token,
		Dense: 1}, Traced: true}}
	facts := *mustRun(t, src, cfg).Meta.Prefetches
	// Layer 1 needs 0, 1, 2 and is named 0, 2, 4, 5.
	if facts.Missed != 1 || facts.Named != 2+4 || facts.Wasted != 2*4096 || facts.Bytes != 8*4096 {
		t.Errorf("%+v", facts)
	}
}

// TestResidentIsNotReadAgain: a unit that is predicted in vain, but resident, is not read.
func TestResidentIsNotReadAgain(t *testing.T) {
	src := handTrace(1, 3)
	src.List = append(src.List, src.List[0])
	src.List[1].Pos, src.List[1].Active = 1, []mask.Mask{{1}, {0b1}}
	cfg := Config{Engine: "pread", Parallel: 1, Policy: policy.SlidingWindow(5),
		Device: handDevice(), Schedule: Schedule{
			Spec: schedule.Spec{Kind: schedule.Token, Dense: 1}, Recall: 1, FalsePositives: 1}}
	run := mustRun(t, src, cfg)
	// Everything is named: 8 units, 3 of which stay; then the other 5 again.
	if f := run.Meta.Prefetches; f.Bytes != 13*4096 || f.Wasted != 10*4096 {
		t.Errorf("%+v", *f)
	}
}

func TestScheduleRefuses(t *testing.T) {
	src := testTrace(3, 64, 2, 0.1)
	for name, s := range map[string]Schedule{
		"recall on demand":  {Recall: 0.5},
		"staging on demand": {Spec: schedule.Spec{Staging: 1 << 20}},
		"unknown":           {Spec: schedule.Spec{Kind: "tomorrow"}},
		"a flag's word":     {Spec: schedule.Spec{Kind: "demand"}},
		"another flag's": {Spec: schedule.Spec{Kind: schedule.Token, Dense: 1}, Recall: 1,
			Wait: "token"},
		"recall above one":   {Spec: schedule.Spec{Kind: schedule.LookAhead}, Recall: 1.5},
		"recall not a share": {Spec: schedule.Spec{Kind: schedule.LookAhead}, Recall: math.NaN()},
		"false positives":    {Spec: schedule.Spec{Kind: schedule.LookAhead}, FalsePositives: -0.1},
		"no dense layer":     {Spec: schedule.Spec{Kind: schedule.Token}, Recall: 1},
		"too many layers":    {Spec: schedule.Spec{Kind: schedule.Token, Dense: 4}, Recall: 1},
		"negative staging": {Spec: schedule.Spec{Kind: schedule.Token, Dense: 1, Staging: -1},
			Recall: 1},
		"staging of a byte": {Spec: schedule.Spec{Kind: schedule.Token, Dense: 1, Staging: 1},
			Recall: 1},
		"less than a record": {Spec: schedule.Spec{Kind: schedule.Token, Dense: 1, Staging: 8191},
			Recall: 1},
		"wait of look-ahead": {Spec: schedule.Spec{Kind: schedule.LookAhead}, Recall: 1,
			Wait: WaitLayer},
		"unknown wait": {Spec: schedule.Spec{Kind: schedule.Token, Dense: 1}, Recall: 1,
			Wait: "never"},
		"no masks": {Spec: schedule.Spec{Kind: schedule.LookAhead}, Traced: true},
		"two predictions": {Spec: schedule.Spec{Kind: schedule.LookAhead}, Traced: true,
			Recall: 1},
	} {
		cfg := testConfig()
		cfg.Schedule = s
		if _, err := Run(t.Context(), src, cfg); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: error %v, want one of kind ErrConfig", name, err)
		}
	}
}

// TestStagingCutsExtents: without a chunk size an extent may be longer than the buffer.
func TestStagingCutsExtents(t *testing.T) {
	cfg := prefetchConfig(Schedule{Spec: schedule.Spec{Kind: schedule.Token, Dense: 1,
		Staging: 20_000}, Recall: 1})
	cfg.Policy, cfg.Layout = policy.Spec{Kind: policy.KindAll}, layout.Options{
		Coalesce: true}
	run := mustRun(t, testTrace(2, 64, 1, 0.1), cfg)
	// 512 KiB in reads of 8 KiB, whole pages of half the buffer, one at a time but for the last
	// two.
	if totals := run.Meta.Totals; totals.Requests != 64 || run.Meta.Prefetches.Submissions != 63 ||
		totals.MeanDepth > 1 {
		t.Errorf("%d requests in %d chunks, %g in flight", totals.Requests,
			run.Meta.Prefetches.Submissions,
			totals.MeanDepth)
	}
}
