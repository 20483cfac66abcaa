package policy

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/internal/mask"
)

// The count without units is that of the policy with units, on every kind of trace, for every
// capacity, over the limit of a sequence.
func TestBoundIsBelady(t *testing.T) {
	for _, units := range []int{1, 9, 64, 130} {
		for _, src := range sources() {
			r := rand.New(rand.NewPCG(11, uint64(units)))
			masks := masksOf(units, src.tokens(r, units, 200))
			cut := len(masks) / 3
			for _, capacity := range []int{0, 1, 2, 5, units / 4, units / 2, units - 1, units,
				units + 7} {
				p := mustNew(t, Spec{Kind: KindBelady, Capacity: capacity}, units,
					Options{Future: slices.Values(masks)})
				bound := NewBound(units, capacity)
				want := int64(0)
				var d Decision
				for i, mask := range masks {
					if i == cut {
						p.Reset()
						bound.Reset()
					}
					p.Step(mask, &d)
					want += int64(len(d.Load))
					bound.Step(mask)
				}
				if got := bound.Loads(); got != want {
					t.Errorf("%s, %d units, capacity %d: %d loads, Belady %d", src.name, units,
						capacity, got, want)
				}
			}
		}
	}
}

func beladyOf(t *testing.T, units, capacity int, masks []mask.Mask) int64 {
	t.Helper()
	return int64(loads(run(mustNew(t, Spec{Kind: KindBelady, Capacity: capacity}, units,
		Options{Future: slices.Values(masks)}), masks)))
}

// FuzzBound compares the two on small traces of any masks.
func FuzzBound(f *testing.F) {
	f.Add(uint8(1), []byte{1, 3, 2, 1, 255, 0, 7})
	f.Add(uint8(3), []byte("abcabcxyzabc"))
	f.Fuzz(func(t *testing.T, capacity uint8, trace []byte) {
		if len(trace) > 300 {
			return
		}
		masks := make([]mask.Mask, len(trace))
		bound := NewBound(8, int(capacity))
		for i, b := range trace {
			masks[i] = []uint64{uint64(b)}
			bound.Step(masks[i])
		}
		if got, want := bound.Loads(), beladyOf(t, 8, int(capacity), masks); got != want {
			t.Fatalf("capacity %d, %v: %d loads, Belady %d", capacity, trace, got, want)
		}
	})
}

func BenchmarkBound(b *testing.B) {
	masks := benchMasks(64, true)
	bound := NewBound(benchUnits, 2500)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%256 == 0 {
			bound.Reset()
		}
		bound.Step(masks[i%len(masks)])
	}
}
