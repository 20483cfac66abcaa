package predictor

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/kernels/cpu"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// TestPredictByHand follows tiny's numbers: layer 0 has inner values relu(x₀), relu(0.1 − x₁).
func TestPredictByHand(t *testing.T) {
	p := tiny(t)
	run := p.Runner(nil)
	mask := []uint64{0}
	for _, c := range []struct {
		layer int
		h     []float32
		want  uint64
	}{
		{0, []float32{0, 0}, 0b100},     // −1, 0.1, 0.35 against 0.25
		{0, []float32{1.25, 1}, 0b101},  // 0.25, 0, 0.925
		{0, []float32{-9, 9}, 0b100},    // −1, 0, 0.3: a ReLU makes both inner values 0
		{0, []float32{1, -1}, 0b110},    // 0, 1.1, 1.35
		{1, []float32{-1, -1}, 0b111},   // no predictor
		{2, []float32{5, 5}, 0b111},     // a threshold below every value
		{0, []float32{nan(), 0}, 0b101}, // −1, 0.1 with 0·NaN … NaN counts as predicted
		{2, []float32{nan(), nan()}, 0b111},
	} {
		if err := run.Predict(c.layer, c.h, mask); err != nil {
			t.Fatal(err)
		}
		if c.h[0] != c.h[0] {
			if mask[0]&c.want != c.want {
				t.Errorf("layer %d of %v: %03b, want at least %03b", c.layer, c.h, mask[0], c.want)
			}
			continue
		}
		if mask[0] != c.want {
			t.Errorf("layer %d of %v: %03b, want %03b", c.layer, c.h, mask[0], c.want)
		}
	}
	for _, bad := range []error{run.Predict(3, []float32{0, 0}, mask), run.Predict(-1,
		[]float32{0, 0}, mask), run.Predict(0, []float32{0}, mask), run.Predict(0, []float32{0, 0},
		nil)} {
		if bad == nil {
			t.Error("a wrong layer, feature or mask is accepted")
		}
	}
}

func nan() float32 { return float32(math.NaN()) }

func TestSizes(t *testing.T) {
	p := tiny(t)
	// Layer 0: 4+6 weights, 2+3 biases; layer 2: 2+3 weights.
	if got := p.Bytes(); got != 2*(10+5)+4*5 {
		t.Errorf("%v of weights and biases", got)
	}
	if got := [3]int64{p.FLOPs(0), p.FLOPs(1), p.FLOPs(2)}; got != [3]int64{20, 0, 10} {
		t.Errorf("operations %v", got)
	}
	q, err := p.WithThresholds(0.5)
	if err != nil || q.Threshold(2) != 0.5 || p.Threshold(2) != 0 {
		t.Errorf("threshold %g, before %g (%v)", q.Threshold(2), p.Threshold(2), err)
	}
	if _, err := p.WithThresholds(0.5, 0.5); err == nil {
		t.Error("2 thresholds for 3 layers are accepted")
	}
}

// random makes a predictor of one layer.
func random(t testing.TB, kind Kind, width, units, rank int, biases bool, seed uint64) *Predictor {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 9))
	floats := func(n int) []float32 {
		out := make([]float32, n)
		for i := range out {
			out[i] = float32(r.NormFloat64())
		}
		return out
	}
	l := Layer{Rank: rank, W1: half(floats(rank * width)), W2: half(floats(units * rank)),
		MinLogit: float32(r.NormFloat64())}
	if biases {
		l.B1, l.B2 = floats(rank), floats(units)
	}
	p, err := New(kind, width, units, []Layer{l}, Facts{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// plainValues returns the values that Predict compares with MinLogit, by the package's
// documentation, and how far rounding may move them.
func plainValues(p *Predictor, h []float32) (z, slack []float64) {
	l := &p.layers[0]
	mid, midSlack := make([]float64, l.Rank), make([]float64, l.Rank)
	const ulp = 1e-6
	for j := range mid {
		size := 0.0
		for k, v := range h {
			x := float64(ref.F16ToF32(l.W1[j*p.width+k])) * float64(v)
			mid[j] += x
			size += math.Abs(x)
		}
		if l.B1 != nil {
			mid[j] += float64(l.B1[j])
			size += math.Abs(float64(l.B1[j]))
		}
		midSlack[j] = ulp * size
		if p.kind == ReLU {
			mid[j] = max(mid[j], 0)
		}
	}
	for u := range p.units {
		sum, size := 0.0, 0.0
		for j, v := range mid {
			w := float64(ref.F16ToF32(l.W2[u*l.Rank+j]))
			sum += w * v
			size += ulp*math.Abs(w*v) + math.Abs(w)*midSlack[j]
		}
		if l.B2 != nil {
			sum += float64(l.B2[u])
			size += ulp * math.Abs(float64(l.B2[u]))
		}
		z, slack = append(z, sum), append(slack, size)
	}
	return z, slack
}

func FuzzPredict(f *testing.F) {
	f.Add(uint8(3), uint8(70), uint8(2), true, true, uint64(1), []byte{0, 0x3f, 1, 0xbf, 2, 0x40})
	f.Add(uint8(40), uint8(64), uint8(17), false, false, uint64(2), []byte{})
	f.Add(uint8(0), uint8(0), uint8(0), true, false, uint64(3), []byte{9, 0x41})
	pool := cpu.NewPool(3)
	f.Cleanup(pool.Close)
	f.Fuzz(func(t *testing.T, width, units, rank uint8, relu, biases bool, seed uint64,
		raw []byte) {
		kind := Linear
		if relu {
			kind = ReLU
		}
		p := random(t, kind, int(width)+1, int(units)+1, int(rank)+1, biases, seed)
		h := make([]float32, p.width)
		for i := range h {
			if len(raw) >= 2*i+2 {
				if v := math.Float32frombits(uint32(binary.LittleEndian.Uint16(
					raw[2*i:])) << 16); v > -1e6 && v < 1e6 {
					h[i] = v
				}
			}
		}
		mask, other := mask.New(p.units), mask.New(p.units)
		if err := p.Runner(nil).Predict(0, h, mask); err != nil {
			t.Fatal(err)
		}
		if err := p.Runner(pool).Predict(0, h, other); err != nil || !slices.Equal(mask, other) {
			t.Fatalf("three threads predict %v (%v), one %v", other, err, mask)
		}
		z, slack := plainValues(p, h)
		for u, v := range z {
			got := mask[u/64]>>(u%64)&1 == 1
			if cut := float64(p.layers[0].MinLogit); math.Abs(v-cut) > slack[u]+1e-30 &&
				got != (v >= cut) {
				t.Fatalf("unit %d: predicted %v with %g against %g", u, got, v, cut)
			}
		}
		if rest := p.units % 64; rest != 0 && mask[len(mask)-1]>>rest != 0 {
			t.Fatal("a bit beyond the last unit is set")
		}
	})
}

func TestPredictAllocatesNothing(t *testing.T) {
	p := random(t, ReLU, 32, 200, 16, true, 1)
	run, h, mask := p.Runner(nil), make([]float32, 32), make([]uint64, 4)
	if n := testing.AllocsPerRun(100, func() {
		if err := run.Predict(0, h, mask); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%g allocations", n)
	}
}
