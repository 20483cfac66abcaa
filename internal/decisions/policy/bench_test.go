package policy

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/internal/mask"
)

const benchUnits = 16384 // OPT-6.7B

// benchMasks are tokens with 5 % of the units active: independent, or with a hot tenth that makes
// up half.
func benchMasks(n int, skewed bool) []mask.Mask {
	random := rand.New(rand.NewPCG(3, 4))
	masks := make([]mask.Mask, n)
	for i := range masks {
		masks[i] = mask.New(benchUnits)
		for u := range uint32(benchUnits) {
			share := 0.05
			if skewed {
				share = 0.0278
				if u%10 == 0 {
					share = 0.25
				}
			}
			if random.Float64() < share {
				masks[i].Set(u)
			}
		}
	}
	return masks
}

func BenchmarkWindowStep(b *testing.B) {
	benchStep(b, NewWindow(benchUnits, 5), benchMasks(64,
		false))
}

func benchStep(b *testing.B, p Policy, masks []mask.Mask) {
	var d Decision
	for _, mask := range masks {
		p.Step(mask, &d)
	}
	b.ReportAllocs()
	loaded := 0
	for i := 0; b.Loop(); i++ {
		p.Step(masks[i%len(masks)], &d)
		loaded += len(d.Load)
	}
	b.ReportMetric(float64(loaded)/float64(b.N), "loads/op")
}

func benchSpecs() []string {
	return []string{"all", "none", "window:5", "window:5,capacity:2500", "delta:900",
		"pages:2500,ahead:8", "lru:2500", "lfu:2500", "hot:1000+1500", "belady:2500"}
}

func benchPolicy(tb testing.TB, text string, masks []mask.Mask, repeat int) Policy {
	tb.Helper()
	s, err := Parse(text)
	if err != nil {
		tb.Fatal(err)
	}
	var hot []uint32
	for u := uint32(0); u < benchUnits; u += 10 {
		hot = append(hot, u)
	}
	return mustNew(tb, s, benchUnits, Options{Hot: hot, Future: func(yield func(mask.Mask) bool) {
		for range repeat {
			for _, mask := range masks {
				if !yield(mask) {
					return
				}
			}
		}
	}})
}

// BenchmarkStep is one layer of one token: 16,384 units, about 820 of them needed.
func BenchmarkStep(b *testing.B) {
	masks := benchMasks(64, true)
	for _, text := range benchSpecs() {
		b.Run(text, func(b *testing.B) { benchStep(b, benchPolicy(b, text, masks, 64), masks) })
	}
}

// A policy that has seen some tokens allocates no more.
func TestStepsDoNotAllocate(t *testing.T) {
	masks := benchMasks(32, true)
	for _, text := range benchSpecs() {
		p := benchPolicy(t, text, masks, 8)
		d := Decision{Load: make([]uint32, 0, benchUnits), Evict: make([]uint32, 0, benchUnits)}
		i := 0
		step := func() {
			p.Step(masks[i%len(masks)], &d)
			i++
		}
		for range 3 * len(masks) {
			step()
		}
		if n := testing.AllocsPerRun(64, step); n != 0 {
			t.Errorf("%s: %v allocations a step", text, n)
		}
	}
}

// On a trace with hot units the policies rank as they must for their counters to mean anything: the
// bound below all, and keeping below not keeping.
func TestHotTracesRank(t *testing.T) {
	masks := benchMasks(48, true)
	count := map[string]int{}
	for _, text := range []string{"none", "lru:2500", "lfu:2500", "hot:1000+1500", "belady:2500"} {
		count[text] = loads(run(benchPolicy(t, text, masks, 1), masks))
	}
	order := []string{"belady:2500", "hot:1000+1500", "lru:2500", "none"}
	if !slices.IsSortedFunc(order, func(a, b string) int { return count[a] - count[b] }) ||
		count["belady:2500"] >= count["lfu:2500"] {
		t.Errorf("loads do not rank: %v", count)
	}
}
