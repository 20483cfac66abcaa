package predictor

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/mask"
)

// plain is Samples that a test can look into and spoil. Element e of sample i and layer l is at
// index (i·layers + l)·size + e.
type plain struct {
	n, layers, width, units int
	perSequence             int
	features                []float32
	values                  []float32 // (n, layers, units): 0 where inactive
	noMagnitudes            bool
	fail                    error
}

func newPlain(n, layers, width, units int) *plain {
	return &plain{n: n, layers: layers, width: width, units: units, perSequence: 10,
		features: make([]float32, n*layers*width), values: make([]float32, n*layers*units)}
}

func (m *plain) feature(i, layer int) []float32 {
	return m.features[(i*m.layers+layer)*m.width:][:m.width]
}
func (m *plain) value(i, layer int) []float32 {
	return m.values[(i*m.layers+layer)*m.units:][:m.units]
}

func (m *plain) Len() int           { return m.n }
func (m *plain) Layers() int        { return m.layers }
func (m *plain) Width() int         { return m.width }
func (m *plain) Units() int         { return m.units }
func (m *plain) Sequence(i int) int { return i / m.perSequence }
func (m *plain) Feature(i, layer int, dst []float32) error {
	copy(dst, m.feature(i, layer))
	return m.fail
}
func (m *plain) Active(i, layer int, dst mask.Mask) error {
	clear(dst)
	for u, v := range m.value(i, layer) {
		if v != 0 {
			dst[u/64] |= 1 << (u % 64)
		}
	}
	return nil
}
func (m *plain) HasMagnitudes() bool { return !m.noMagnitudes }
func (m *plain) Magnitudes(i, layer int, dst []float32) error {
	at := 0
	for _, v := range m.value(i, layer) {
		if v != 0 {
			dst[at] = v
			at++
		}
	}
	if at != len(dst) {
		return errors.New("a slice of another length than the active units")
	}
	return nil
}

// planted makes samples whose active units follow a rule of rank 4 exactly: signs s of 4 hidden
// numbers decide, unit u is active when a_u·s exceeds a bound that no value comes near; the feature
// is s mixed into width numbers, scaled and shifted.
func planted(n, layers, width, units int) *plain {
	const hidden, bound = 4, 2
	m := newPlain(n, layers, width, units)
	r := rand.New(rand.NewPCG(3, 5))
	for l := range layers {
		mix, rule := make([]float64, hidden*width), make([]int, units*hidden)
		for i := range mix {
			mix[i] = r.NormFloat64() * 30
		}
		for i := range rule {
			rule[i] = r.IntN(3) - 1
		}
		for i := range n {
			var s [hidden]int
			for k := range s {
				s[k] = 2*r.IntN(2) - 1
			}
			x := m.feature(i, l)
			for j := range x {
				sum := 100.0
				for k := range s {
					sum += mix[j*hidden+k] * float64(s[k])
				}
				x[j] = float32(sum + r.NormFloat64())
			}
			for u := range units {
				sum := 0
				for k := range s {
					sum += rule[u*hidden+k] * s[k]
				}
				if sum >= bound {
					m.value(i, l)[u] = float32(sum)
				}
			}
		}
	}
	return m
}

func TestSplit(t *testing.T) {
	m := newPlain(200, 1, 1, 1)
	train, held, err := split(m, 0.2, 7)
	if err != nil {
		t.Fatal(err)
	}
	if len(train) != 160 || len(held) != 40 {
		t.Errorf("%d to train on and %d held out of 200, want 160 and 40", len(train), len(held))
	}
	both := slices.Concat(train, held)
	slices.Sort(both)
	for i, v := range both {
		if i != v {
			t.Fatalf("sample %d is missing or twice", i)
		}
	}
	for _, a := range train {
		for _, b := range held {
			if m.Sequence(a) == m.Sequence(b) {
				t.Fatalf("sequence %d is on both sides", m.Sequence(a))
			}
		}
	}
	_, other, err := split(m, 0.2, 8)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Equal(held, other) {
		t.Error("another seed holds out the same samples")
	}

	m.perSequence = 200
	train, held, err = split(m, 0.25, 7)
	if err != nil {
		t.Fatal(err)
	}
	if len(held) != 50 || held[0] != 150 || train[149] != 149 {
		t.Errorf("of one sequence %d samples are held out from %d on, want the last 50", len(held),
			held[0])
	}
	if _, _, err := split(newPlain(1, 1, 1, 1), 0.5, 1); err == nil {
		t.Error("one sample is split")
	}
}

func TestBadSamples(t *testing.T) {
	unreadable := errors.New("unreadable")
	for _, c := range []struct {
		name   string
		spoil  func(m *plain)
		reason string
	}{
		{"feature", func(m *plain) { m.feature(7, 1)[2] = float32(math.NaN()) },
			"predictor: layer 1: sample 7: feature 2 is NaN"},
		{"magnitude", func(m *plain) { m.value(3, 0)[1] = float32(math.Inf(1)) },
			"predictor: layer 0: sample 3: a magnitude of +Inf"},
		{"error", func(m *plain) { m.fail = unreadable }, "unreadable"},
	} {
		m := planted(40, 2, 4, 8)
		c.spoil(m)
		_, _, err := Train(t.Context(), m, Options{Settings: Settings{Ranks: []int{2}, Epochs: 1,
			Cost: &Cost{1000, 1000}}, Workers: 1})
		if err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: error %v, want %q in it", c.name, err, c.reason)
		}
	}
	if _, _, err := Train(t.Context(), strayBit{planted(40, 1, 4, 8)}, Options{Settings: Settings{
		Ranks: []int{2}}}); err == nil || !strings.Contains(err.Error(), "beyond the last") {
		t.Errorf("a bit beyond the last unit: error %v", err)
	}
}

// strayBit sets a bit that stands for no unit.
type strayBit struct{ *plain }

func (s strayBit) Active(i, layer int, dst mask.Mask) error {
	err := s.plain.Active(i, layer, dst)
	dst[0] |= 1 << 8
	return err
}
