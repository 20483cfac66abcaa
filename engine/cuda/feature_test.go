package cuda_test

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/cuda"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/kernels/cpu"
)

// heard is an observer and a predictor at once: it records both inputs, and predicts every unit.
type heard struct {
	units         int
	shown, handed [][]float32 // by call
}

func (h *heard) Layer(ev *engine.LayerEvent) error {
	h.shown = append(h.shown, slices.Clone(ev.Feature))
	return nil
}

func (h *heard) Token(*engine.TokenEvent) error { return nil }

func (h *heard) Predict(_ int, feature []float32, need mask.Mask) error {
	h.handed = append(h.handed, slices.Clone(feature))
	need.Fill(h.units)
	return nil
}

// TestFeatures compares each kind of feature with the CPU's, of chunks of a prompt and of single
// tokens; predictors on rows from flash are handed another kind meanwhile.
func TestFeatures(t *testing.T) { cuda.EachDriver(t, testFeatures) }

func testFeatures(t *testing.T, on *cuda.TestDriver) {
	for _, name := range []string{"opt", "opt-350m", "falcon-40b", "phi-relu", "llama-relu"} {
		t.Run(name, func(t *testing.T) {
			m := pack(t, on, filepath.Join(familiesDir, name), nil)
			b := m.backend(t)
			for kind := range engine.FeatureKind(engine.FeatureKinds) {
				other := (kind + 1) % engine.FeatureKind(engine.FeatureKinds)
				if kind.In(&m.w.Arch) != nil || other.In(&m.w.Arch) != nil {
					continue
				}
				want, got := listen(t, m, nil, nil, kind, other), listen(t, m, b, b, kind, other)
				for i := range want.shown {
					closeTo(t, "shown "+kind.String(), got.shown[i], want.shown[i])
					closeTo(t, "handed "+other.String(), got.handed[i], want.handed[i])
				}
			}
		})
	}
}

// listen runs a chunk and two single tokens from flash.
func listen(t *testing.T, m *loaded, backend engine.Backend, store engine.Store, shown,
	handed engine.FeatureKind) *heard {
	t.Helper()
	h := &heard{units: m.w.Shape.DFFN}
	rows := m.flash(t, engine.FlashConfig{Policy: policy.SlidingWindow(1), Store: store})
	e := made(t, m, rows, engine.Config{Context: 8, Batch: 3, Backend: backend, Observer: h,
		FeatureKind: shown,
		Predictors: func(*cpu.Pool) (engine.Predictors, error) {
			return engine.Predictors{Layer: h, FeatureKind: handed}, nil
		}})
	for _, step := range [][]engine.Token{{{Pos: 0, ID: 5}, {Pos: 1, ID: 40}, {Pos: 2, ID: 17}},
		{{Pos: 3, ID: 62}}, {{Pos: 4, ID: 9}}} {
		if _, err := e.Step(step); err != nil {
			t.Fatal(err)
		}
	}
	e.Close()
	if err := rows.Close(); err != nil {
		t.Error(err)
	}
	if n := 5 * m.w.Shape.Layers; len(h.shown) != n || len(h.handed) != n {
		t.Fatalf("%d features shown, %d handed, want %d", len(h.shown), len(h.handed), n)
	}
	return h
}

func closeTo(t *testing.T, what string, got, want []float32) {
	t.Helper()
	largest, apart := 0.0, 0.0
	for i := range want {
		largest, apart = max(largest, math.Abs(float64(want[i]))),
			max(apart, math.Abs(float64(got[i])-float64(want[i])))
	}
	if !(apart <= 1e-3*largest) {
		t.Errorf("%s: apart by %.1e of %.1e", what, apart, largest)
	}
}
