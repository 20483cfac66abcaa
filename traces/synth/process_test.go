package synth

import (
	"math"
	"math/bits"
	"testing"

	"github.com/windrow-sim/windrow/internal/rng"
)

// idleByEnumeration sums over all 2^k ways a unit can be in and out of topic.
func idleByEnumeration(c class, k int, rate float64) float64 {
	sum := 0.0
	for path := range 1 << k {
		p := 1.0
		for t := range k {
			in := path>>t&1 == 1
			var step float64
			switch {
			case t == 0:
				step = c.inTopic
			case path>>(t-1)&1 == 1:
				step = 1 - c.exit
			default:
				step = c.enter
			}
			if in {
				p *= step * (1 - rate)
			} else {
				p *= 1 - step
			}
		}
		sum += p
	}
	return sum
}

func TestClosedFormEqualsEnumeration(t *testing.T) {
	for i, c := range fitted().classes() {
		for k := 1; k <= 10; k++ {
			if got, want := c.idle(k, c.rate), idleByEnumeration(c, k,
				c.rate); math.Abs(got-want) > 1e-12 {
				t.Errorf("class %d, k = %d: closed form %.15g, enumeration %.15g", i, k, got, want)
			}
		}
	}
}

func TestClassesAreStationaryAndComplete(t *testing.T) {
	sum := 0.0
	for i, c := range fitted().classes() {
		sum += c.share
		next := c.inTopic*(1-c.exit) + (1-c.inTopic)*c.enter
		if math.Abs(next-c.inTopic) > 1e-12 {
			t.Errorf("class %d: %g in topic, %g a token later", i, c.inTopic, next)
		}
	}
	if math.Abs(sum-1) > 1e-12 {
		t.Errorf("the classes hold %g of the units", sum)
	}
}

// The committed anchors must be those of targets.csv, and the profile must go through them with the
// published mean.
func TestProfileOfTheReferenceModel(t *testing.T) {
	list := profile(referenceLayers, target(t, "active_share", "mean"))
	for layer, name := range map[int]string{0: "1", 15: "16", 31: "32"} {
		if want := target(t, "active_share", name); math.Abs(list[layer]-want) > 1e-9 {
			t.Errorf("layer %s: share %.6g, published %.6g", name, list[layer], want)
		}
	}
	sum := 0.0
	for l, s := range list {
		sum += s
		if l > 0 && s < list[l-1]*0.99 {
			t.Errorf("share falls from %.4g to %.4g at layer %d", list[l-1], s, l+1)
		}
	}
	if got := sum / referenceLayers; math.Abs(got-target(t, "active_share", "mean")) > 1e-9 ||
		math.Abs(got-referenceMean) > 1e-9 {
		t.Errorf("mean share %.6g", got)
	}
}

func TestExpectedMatchesTargets(t *testing.T) {
	e, err := Expect(Options{Like: reference, Tokens: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := e.PredictedSAgg
	for _, c := range []struct {
		name           string
		got, want, tol float64
	}{
		{"active share", e.ActiveSAgg[1], target(t, "active_share", "mean"), 1e-6},
		{"predicted share", s[1], target(t, "predicted_share", "mean"), 0.01},
		{"s_agg(5)", s[5], target(t, "predicted_s_agg_5", "mean"), 1e-4},
		{"Δ(4)", s[5] - s[4], target(t, "predicted_delta_4", "mean"), 1e-4},
	} {
		if math.Abs(c.got/c.want-1) > c.tol {
			t.Errorf("%s: %.6g, target %.6g", c.name, c.got, c.want)
		}
	}
}

// Δ(k) of any mixture of stationary reversible chains falls, and ever more slowly.
func TestCurveIsConcave(t *testing.T) {
	e, err := Expect(Options{Like: reference, Tokens: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range [][]float64{e.ActiveSAgg, e.PredictedSAgg} {
		for k := 2; k < MaxWindow; k++ {
			d0, d1, d2 := s[k-1]-s[k-2], s[k]-s[k-1], s[k+1]-s[k]
			if d1 >= d0 || (k > 2 && d0-d1 < d1-d2) || d2 <= 0 {
				t.Errorf("k = %d: Δ = %g, %g, %g", k, d0, d1, d2)
			}
		}
	}
}

func TestPersistenceIsMet(t *testing.T) {
	e, err := Expect(Options{Like: "mistral-7b-v0.1", Tokens: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := e.PredictedSAgg
	if got := 1 - (s[2]-s[1])/s[1]; math.Abs(got-0.835) > 0.01 {
		t.Errorf("%.4g of the predicted units were predicted before, published 0.835", got)
	}
	if math.Abs(s[1]-0.384) > 1e-3 {
		t.Errorf("predicted share %.4g, published 0.384", s[1])
	}
}

func TestBernoulli(t *testing.T) {
	r := rng.Stream(1, "synth/test/bernoulli")
	const words = 20000
	for _, p := range []float64{0, 1e-3, 0.1, 1.0 / 3, 0.5, 0.95, 1} {
		for _, lanes := range []uint64{^uint64(0), 0x5555555500000001} {
			ones := 0
			for range words {
				w := bernoulli(r, round32(p), lanes)
				if w&^lanes != 0 {
					t.Fatalf("p = %g: bits %x outside %x", p, w, lanes)
				}
				ones += bits.OnesCount64(w)
			}
			n := float64(words * bits.OnesCount64(lanes))
			if got := float64(ones) / n; math.Abs(got-p) > 5*math.Sqrt(p*(1-p)/n) {
				t.Errorf("p = %g: %g of the bits are set", p, got)
			}
		}
	}
}

// walkNaive is the plain version of walk.
func walkNaive(on bool, enter, exit uint64) (states uint64) {
	for t := range 64 {
		if on {
			on = exit>>t&1 == 0
		} else {
			on = enter>>t&1 == 1
		}
		if on {
			states |= 1 << t
		}
	}
	return states
}

func FuzzWalk(f *testing.F) {
	f.Add(true, uint64(0), uint64(0))
	f.Add(true, ^uint64(0), ^uint64(0))
	f.Add(false, uint64(1)<<63, uint64(1)<<63)
	f.Add(false, uint64(0x8000000000000001), uint64(0x00ff00ff00ff00ff))
	f.Fuzz(func(t *testing.T, on bool, enter, exit uint64) {
		if got, want := walk(on, enter, exit), walkNaive(on, enter, exit); got != want {
			t.Errorf("walk(%v, %x, %x) = %x, want %x", on, enter, exit, got, want)
		}
	})
}

func TestTranspose(t *testing.T) {
	r := rng.Stream(1, "synth/test/transpose")
	var m, want [64]uint64
	for i := range m {
		m[i] = r.Uint64()
		for j := range 64 {
			want[j] |= m[i] >> j & 1 << i
		}
	}
	got := m
	if transpose(&got); got != want {
		t.Error("transpose differs from the plain version")
	}
	if transpose(&got); got != m {
		t.Error("transposing twice does not give the matrix back")
	}
}
