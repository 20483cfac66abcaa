package predictor

import (
	"bytes"
	"strings"
	"testing"
)

// TestMemory collects samples one by one and checks that they train the same predictor as the
// originals.
func TestMemory(t *testing.T) {
	origin := noisy(90, 2)
	m, err := NewMemory(2, origin.width, origin.units, true)
	if err != nil {
		t.Fatal(err)
	}
	b := newBatch(origin, 0, 1, true)
	for i := range origin.n {
		for b.layer = range 2 {
			if err := b.load([]int{i}); err != nil {
				t.Fatal(err)
			}
			if err := m.Add(origin.Sequence(i), b.layer, b.x, b.active, b.mags); err != nil {
				t.Fatal(err)
			}
		}
	}
	set := small()
	set.Ranks, set.Epochs, set.Cost = []int{3}, 2, &Cost{FalsePositive: 1000, FalseNegative: 2000}
	_, _, want := train(t, origin, Options{Settings: set})
	if _, _, got := train(t, m, Options{Settings: set}); !bytes.Equal(got, want) {
		t.Error("another predictor")
	}

	if err := m.Add(0, 0, b.x, b.active, b.mags); err != nil || m.Len() != origin.n {
		t.Errorf("half a token counts: %d tokens of %d (%v)", m.Len(), origin.n, err)
	}
	for reason, err := range map[string]error{
		"layer 1 is next":              m.Add(0, 0, b.x, b.active, b.mags),
		"a feature of 3":               m.Add(0, 1, b.x[:3], b.active, b.mags),
		"a mask of 0 words":            m.Add(0, 1, b.x, nil, b.mags),
		"sample with 0 magnitudes for": m.Add(0, 1, b.x, b.active, nil),
	} {
		if err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("error %v, want %q", err, reason)
		}
	}
	bare, err := NewMemory(1, 1, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := bare.Add(0, 0, []float32{1}, []uint64{1}, nil); err != nil ||
		bare.Magnitudes(0, 0, nil) == nil {
		t.Errorf("samples without magnitudes: %v", err)
	}
	if _, err := NewMemory(0, 1, 1, false); err == nil {
		t.Error("no layers are accepted")
	}
}
