package serving

import (
	"math"
	"reflect"
	"testing"

	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
)

// Unions and counts of segments are those of their tokens one by one, round the end and through
// the blocks.
func TestCircle(t *testing.T) {
	const layers, perLayer = 2, 130
	src := testTrace(layers, perLayer, 0, 53, 0.1)
	prompt, decode, err := readRings(src, false)
	if err != nil || prompt != decode || decode.tokens() != 53 {
		t.Fatalf("%v, %d tokens", err, decode.tokens())
	}
	unions := func(at, n int) (u []mask.Mask) {
		for range layers {
			u = append(u, make([]uint64, 3))
		}
		decode.unite(u, at, n)
		return u
	}
	for _, n := range []int{1, 2, 15, 16, 17, 40, 52, 53, 54, 200} {
		for at := range 53 {
			want, count := unions(at, 0), int64(0)
			for i := range n {
				for l, m := range src.List[(at+i)%53].Active {
					want[l].Or(m)
				}
				count += decode.needs(1, (at+i)%53, 1)
			}
			if got := unions(at, n); !reflect.DeepEqual(got, want) ||
				decode.needs(1, at, n) != count {
				t.Fatalf("%d tokens from %d: %v, want %v; %d units, want %d", n, at, got, want,
					decode.needs(1, at, n), count)
			}
		}
	}
}

func TestHistogram(t *testing.T) {
	var h histogram
	if h.latency() != (Latency{}) {
		t.Errorf("empty: %+v", h.latency())
	}
	for _, v := range []units.Nanos{0, 1, 2047, 2048, 4095, 4096, 1e9, units.Forever} {
		if got := middleOf(binOf(v)); math.Abs(float64(got-v)) > float64(v)/2048 {
			t.Errorf("%d is counted as %d", v, got)
		}
	}
	for v := range units.Nanos(1000) {
		h.add((v+1)*1e6, 1)
	}
	l := h.latency()
	for p, got := range map[float64]units.Nanos{500: l.P50, 900: l.P90, 950: l.P95, 990: l.P99} {
		if math.Abs(float64(got)/(p*1e6)-1) > 0.001 {
			t.Errorf("percentile %g: %v", p/10, got)
		}
	}
	if l.Count != 1000 || l.Mean != 500500000 || l.Max != 1e9 {
		t.Errorf("%+v", l)
	}
}
