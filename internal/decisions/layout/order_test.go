package layout

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
)

func TestNewOrderRefuses(t *testing.T) {
	for name, lists := range map[string][][]uint32{
		"a unit twice":        {{0, 1, 1}},
		"a unit beyond":       {{0, 1, 3}},
		"layers that differ":  {{0, 1, 2}, {0, 1}},
		"a unit beyond int32": {{0, 1, 1 << 31}},
	} {
		if _, err := NewOrder("bad", lists); !errors.Is(err, ErrOrder) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A result holds which order it is of, not the order.
func TestOrderInJSON(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	geo := Uniform(2, 5000, 4096)
	geo.Order = shuffled(t, random, 2, 5000)
	text, err := json.Marshal(geo)
	if err != nil || len(text) > 250 || !strings.Contains(string(text), geo.Order.SHA256) {
		t.Fatalf("%d bytes, %v: %s", len(text), err, text)
	}
	var back Geometry
	if err := json.Unmarshal(text, &back); err != nil || back.Order.Name != "shuffled" {
		t.Fatalf("%v: %s", err, text)
	}
	if _, err := NewPlanner(back, Options{}); !errors.Is(err, ErrOrder) {
		t.Errorf("an order without places: %v", err)
	}
	if other := shuffled(t, random, 2, 5000); other.SHA256 == geo.Order.SHA256 {
		t.Error("two orders have one hash")
	}
}

// variants are the same records laid out in every way.
func variants(t *testing.T, random *rand.Rand, layers, perLayer int,
	record units.Bytes) map[string]Geometry {
	plain := Uniform(layers, perLayer, record)
	split, ordered := plain, plain
	split.Split = 2
	ordered.Order = shuffled(t, random, layers, perLayer)
	both := ordered
	both.Split = 2
	return map[string]Geometry{"bundled": plain, "split": split, "ordered": ordered, "both": both}
}

// A wider gap never asks for more extents, and never for fewer bytes of them.
func TestWiderGapNeverAddsStretches(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 50 {
		set := someOf(random, 300, 1+random.IntN(10))
		for name, geo := range variants(t, random, 1, 300, units.Bytes(1+random.IntN(4000))*2) {
			var before Plan
			for gap := range 20 {
				p, err := NewPlanner(geo, Options{Align: 512, Coalesce: true, Gap: gap})
				if err != nil {
					t.Fatal(err)
				}
				var plan Plan
				p.Plan(0, set, &plan)
				if gap > 0 && (len(plan.Requests) > len(before.Requests) ||
					plan.Bytes < before.Bytes) {
					t.Fatalf("%s: a gap of %d makes %d requests of %v, one of %d %d of %v", name,
						gap, len(plan.Requests), plan.Bytes, gap-1, len(before.Requests),
						before.Bytes)
				}
				before = plan
			}
		}
	}
}

// A chunk limit cuts the extents that are there without it, and changes nothing else.
func TestChunksAreCutsOfStretches(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	for range 50 {
		set := someOf(random, 300, 3)
		for name, geo := range variants(t, random, 1, 300, units.Bytes(1+random.IntN(4000))*2) {
			opt := Options{Align: 512, Coalesce: true, Gap: random.IntN(3)}
			whole, err := NewPlanner(geo, opt)
			if err != nil {
				t.Fatal(err)
			}
			opt.MaxRequest = 512 * units.Bytes(1+random.IntN(30))
			chunked, err := NewPlanner(geo, opt)
			if err != nil {
				t.Fatal(err)
			}
			var extents, got Plan
			whole.Plan(0, set, &extents)
			chunked.Plan(0, set, &got)
			var cut []Request
			for _, s := range extents.Requests {
				for s.Length > 0 {
					n := min(s.Length, int64(opt.MaxRequest))
					cut = append(cut, Request{s.Offset, n, s.Buf})
					s = Request{s.Offset + n, s.Length - n, s.Buf + n}
				}
			}
			if !slices.Equal(cut, got.Requests) || extents.Bytes != got.Bytes ||
				!slices.Equal(extents.Records, got.Records) {
				t.Fatalf("%s: extents cut by hand are %v, the plan has %v", name, cut,
					got.Requests)
			}
		}
	}
}

// someOf takes one of every n units at random.
func someOf(random *rand.Rand, perLayer, n int) (set []uint32) {
	for u := range uint32(perLayer) {
		if random.IntN(n) == 0 {
			set = append(set, u)
		}
	}
	return set
}

// A planner is used for every layer of every token: a Plan that has grown allocates nothing.
func TestPlanDoesNotAllocate(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	set := someOf(random, 4096, 10)
	for name, geo := range variants(t, random, 1, 4096, 8192) {
		p, err := NewPlanner(geo, Options{Align: 4096, Coalesce: true})
		if err != nil {
			t.Fatal(err)
		}
		var plan Plan
		p.Plan(0, set, &plan)
		if n := testing.AllocsPerRun(10, func() { p.Plan(0, set, &plan) }); n != 0 {
			t.Errorf("%s: %g allocations", name, n)
		}
	}
}

func BenchmarkPlan(b *testing.B) {
	random := rand.New(rand.NewPCG(13, 14))
	const perLayer = 16384
	list := make([]uint32, perLayer)
	for i, u := range random.Perm(perLayer) {
		list[i] = uint32(u)
	}
	order, err := NewOrder("shuffled", [][]uint32{list})
	if err != nil {
		b.Fatal(err)
	}
	set := someOf(random, perLayer, 40)
	for name, change := range map[string]func(*Geometry){
		"bundled": func(*Geometry) {}, "split": func(g *Geometry) { g.Split = 2 },
		"ordered": func(g *Geometry) { g.Order = order },
	} {
		b.Run(name, func(b *testing.B) {
			geo := Uniform(1, perLayer, 16384)
			change(&geo)
			p, err := NewPlanner(geo, Options{Align: 4096, Coalesce: true})
			if err != nil {
				b.Fatal(err)
			}
			var plan Plan
			for b.Loop() {
				p.Plan(0, set, &plan)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(set)), "ns/unit")
		})
	}
}
