package flash

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
)

func TestBinsAreContiguousAndNarrow(t *testing.T) {
	for bin := range 40 * subBins {
		low, high := edge(bin), edge(bin+1)
		if high <= low || binOf(low) != bin || binOf(high-1) != bin || binOf(high) != bin+1 {
			t.Fatalf("bin %d is [%d, %d), but %d is in %d, %d in %d, %d in %d", bin, low, high, low,
				binOf(low), high-1, binOf(high-1), high, binOf(high))
		}
		if low >= subBins && float64(high-low) > float64(low)/subBins {
			t.Fatalf("bin %d of width %d begins at %d", bin, high-low, low)
		}
	}
	for _, extreme := range []units.Nanos{-5, 0, math.MaxInt64} {
		var h Histogram
		h.Add(extreme, 1)
		if h.Total() != 1 || h.Quantile(0.5) < 0 {
			t.Errorf("%d: %s", extreme, h)
		}
	}
}

func TestMomentsAndQuantiles(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var h Histogram
	var all []float64
	for range 20_000 {
		v := 50_000 + 20_000*random.ExpFloat64()
		h.Add(units.Nanos(v), 1)
		all = append(all, v)
	}
	mean, cv2 := h.Moments()
	if want := 70_000.0; math.Abs(mean/want-1) > 0.01 || math.Abs(cv2/(4.0/49)-1) > 0.1 {
		t.Errorf("mean %.0f, cv² %.4f; want about 70,000 and %.4f", mean, cv2, 4.0/49)
	}
	slices.Sort(all)
	for _, q := range []float64{0.01, 0.5, 0.9, 0.99, 0.999} {
		if got, want := float64(h.Quantile(q)),
			all[int(q*float64(len(all)))]; math.Abs(got/want-1) > 0.05 {
			t.Errorf("quantile %v is %.0f, want %.0f", q, got, want)
		}
	}
}

func TestSamplerHasTheShapeAndTheMean(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	var h, drawn Histogram
	for range 5000 {
		h.Add(units.Nanos(30_000+10_000*random.ExpFloat64()), 1)
	}
	s := newSampler(&h, 100_000)
	for range 50_000 {
		drawn.Add(s.at(random.Float64()), 1)
	}
	mean, cv2 := drawn.Moments()
	_, want := h.Moments()
	if math.Abs(mean/100_000-1) > 0.01 || math.Abs(cv2/want-1) > 0.05 {
		t.Errorf("drew mean %.0f and cv² %.4f, want 100,000 and %.4f", mean, cv2, want)
	}
}

func TestHistogramText(t *testing.T) {
	var h Histogram
	for _, at := range []units.Nanos{0, 3, 17, 52_000, 1_000_000, 1 << 40} {
		h.Add(at, int64(at)%7+1)
	}
	var back Histogram
	if err := back.UnmarshalText([]byte(h.String())); err != nil || !back.Equal(h) {
		t.Errorf("%q came back as %q: %v", h, back, err)
	}
	data, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	back = Histogram{}
	if err := json.Unmarshal(data, &back); err != nil || !back.Equal(h) {
		t.Errorf("%s came back as %q: %v", data, back, err)
	}
	for _, bad := range []string{"5", "5us", "5us:0", "5us:-1", "us:5", "5us:x", "-5us:1",
		"5us:9223372036854775807"} {
		if err := back.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q was read as %q", bad, back)
		}
	}
}
