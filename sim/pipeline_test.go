package sim_test

import (
	"math"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
)

// steady is a trace in which every token needs keep units of every layer, moved on by fresh: after
// the first, each layer reads just those.
func steady(layers, perLayer, keep, fresh, tokens int) *traces.Memory {
	m := &traces.Memory{Head: traces.Header{
		SchemaVersion: traces.SchemaVersion, UnitKind: traces.Neuron, Layers: layers,
		Units: perLayer, UnitBytes: 24 * units.KiB, Model: "steady",
		Shape: traces.Shape{DModel: 2048, Layers: layers, DFFN: perLayer, Heads: 16, KVHeads: 4,
			HeadDim: 128, Vocab: 8000, MaxPos: 512, Rows: 6, DTypeSize: 2},
	}}
	for i := range tokens {
		t := traces.Token{Pos: uint32(i), Phase: traces.Decode}
		for range layers {
			mask := make([]uint64, (perLayer+63)/64)
			for u := range keep {
				// Every other unit, so that neighbours do not join.
				at := 2 * (i*fresh + u) % perLayer
				mask[at/64] |= 1 << (at % 64)
			}
			t.Active = append(t.Active, mask)
		}
		m.List = append(m.List, t)
	}
	return m
}

// TestTokenScheduleAgainstClosedForm: where times are constant, the events are a closed
// form, for every dense prefix, and the regimes of the sweep are the same: more dense
// layers are faster until they hide the reads, and slower from there on.
func TestTokenScheduleAgainstClosedForm(t *testing.T) {
	const layers, perLayer, keep, fresh = 12, 2048, 200, 60
	rate, reads := 20*units.GBps, units.GBps
	device := &devicemodels.Device{
		Version: "1", Name: "steady",
		Flash: flash.Spec{Servers: 1, ServerRate: reads, Align: 4096,
			Engines: map[string]flash.EngineCost{"pread": {}}},
		Host: devicemodels.Host{Cores: 1, DenseRate: rate, RowRate: rate},
	}
	src := steady(layers, perLayer, keep, fresh, 6)
	head := src.Header()
	// One token in closed form. The reads of the whole token are submitted at once and run while
	// the prefix computes:
	//
	//	layer 0 ─▶ layers 1 … d−1 ──┐
	//	           reads ───────────┴─▶ layers d … N−1 ─▶ head
	closed := func(d int) (io, prefix, total units.Nanos) {
		attention, mlp := head.Shape.AttentionBytes(), units.Bytes(perLayer)*head.UnitBytes
		sparse := units.Bytes(layers - d)
		io = reads.Time(sparse * fresh * head.UnitBytes)
		prefix = rate.Time(units.Bytes(d-1) * (attention + mlp))
		rest := rate.Time(attention + mlp + head.Shape.HeadBytes() + sparse*(attention+
			keep*head.UnitBytes))
		return io, prefix, rest + max(io, prefix)
	}
	bound, previous := map[string]int{}, units.Forever
	for d := 1; d <= layers; d++ {
		run, err := sim.Run(t.Context(), src, sim.Config{
			Engine: "pread", Parallel: 16, Device: device, Layout: layout.Options{Coalesce: true},
			Policy:   policy.Spec{Kind: policy.KindDelta, Capacity: keep},
			Schedule: sim.Schedule{Spec: schedule.Spec{Kind: schedule.Token, Dense: d}, Recall: 1},
		})
		if err != nil {
			t.Fatal(err)
		}
		io, prefix, want := closed(d)
		regime := "reads"
		if prefix >= io {
			regime = "compute"
		}
		// The last token: the first starts cold.
		var begin, end, waited units.Nanos = units.Forever, 0, 0
		for _, r := range run.Rows {
			if r.Token == 5 {
				begin, end = min(begin, r.Start), max(end, r.Start+r.Dur)
				if r.Part == traces.PartIO {
					waited += r.Dur
				}
			}
		}
		got := end - begin
		t.Logf("%d dense layers: %v, closed form %v (%+.4f %%), bound by %s", d, got, want,
			100*(float64(got)/float64(want)-1), regime)
		if math.Abs(float64(got)/float64(want)-1) > 0.001 {
			t.Errorf("%d dense layers: %v, closed form %v", d, got, want)
		}
		if exposed := max(io-prefix, 0); math.Abs(float64(waited-exposed)) > 0.01*float64(want) {
			t.Errorf("%d dense layers: waits %v, closed form %v", d, waited, exposed)
		}
		if regime == "reads" && got >= previous || bound["compute"] > 0 && got <= previous {
			t.Errorf("%d dense layers, bound by %s: %v, with one less %v", d, regime, got, previous)
		}
		previous = got
		if bound[regime]++; (waited > 0) != (regime == "reads") {
			t.Errorf("%d dense layers: waits %v where the closed form is bound by %s", d, waited,
				regime)
		}
	}
	if bound["reads"] < 3 || bound["compute"] < 2 {
		t.Errorf("regimes %v: the sweep does not show both", bound)
	}
}

// TestColdStartGoesInChunks: a staging buffer whose half just holds what a token reads later takes
// four rounds for the first, 3.3 times as much.
func TestColdStartGoesInChunks(t *testing.T) {
	const layers, keep, fresh, tokens = 12, 66, 20, 6
	src := steady(layers, 2048, keep, fresh, tokens)
	device := &devicemodels.Device{
		Version: "1", Name: "steady",
		Flash: flash.Spec{Servers: 1, ServerRate: units.GBps, Align: 4096,
			Engines: map[string]flash.EngineCost{"pread": {}}},
		Host: devicemodels.Host{Cores: 1, DenseRate: 20 * units.GBps, RowRate: 20 * units.GBps},
	}
	for staging, chunks := range map[units.Bytes]int64{schedule.Unlimited: tokens,
		2 * (layers - 1) *
			fresh * src.Head.UnitBytes: 4 + (tokens - 1)} {
		run, err := sim.Run(t.Context(), src, sim.Config{
			Engine: "pread", Parallel: 16, Device: device, Layout: layout.Options{Coalesce: true},
			Policy: policy.Spec{Kind: policy.KindDelta, Capacity: keep},
			Schedule: sim.Schedule{Spec: schedule.Spec{Kind: schedule.Token, Dense: 1,
				Staging: staging}, Recall: 1},
		})
		if err != nil {
			t.Fatal(err)
		}
		if run.Meta.Prefetches.Submissions != chunks {
			t.Errorf("%d chunks with a staging buffer of %v, want %d",
				run.Meta.Prefetches.Submissions,
				staging, chunks)
		}
	}
}
