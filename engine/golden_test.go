package engine

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/engine/tokenizer"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/units"
)

const talesDir = "../examples/models/tales"

// tales loads the shipped model: resident weights, bundles and their geometry.
func tales(t testing.TB) (*model.Weights, [][]byte, layout.Geometry) {
	t.Helper()
	w, bundles, _, err := model.LoadFolder(t.Context(), talesDir)
	if err != nil {
		t.Fatal(err)
	}
	return w, bundles, layout.Uniform(w.Shape.Layers, w.Shape.DFFN, units.Bytes(w.RecordBytes()))
}

func denseEngine(t testing.TB, threads int) *Engine {
	t.Helper()
	w, bundles, geo := tales(t)
	rows, err := NewResident(w, bundles, geo)
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(w, rows, Config{Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

type goldenCase struct {
	Text   string   `json:"text"`
	IDs    []uint32 `json:"ids"`
	Argmax []uint32 `json:"argmax"`
}

// TestGoldenLogits compares with transformers' logits (testdata/tales_golden.json names its
// version). 2e-3 is far above the rounding of float32 sums of this size and far below the distance
// between candidates.
func TestGoldenLogits(t *testing.T) {
	const tolerance = 2e-3
	var golden struct {
		Cases []goldenCase `json:"cases"`
	}
	data, err := os.ReadFile("testdata/tales_golden.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	file, err := checkpoint.Open(t.Context(), "testdata/tales_golden.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	tok, err := tokenizer.Load(t.Context(), talesDir)
	if err != nil {
		t.Fatal(err)
	}
	e := denseEngine(t, 2)
	worst := 0.0
	for i, c := range golden.Cases {
		if ids := tok.Encode(c.Text); !slices.Equal(ids, c.IDs) {
			t.Fatalf("prompt %d encodes as %v, want %v", i, ids, c.IDs)
		}
		name := fmt.Sprintf("logits_%d", i)
		info, ok := file.Tensor(name)
		if !ok || len(info.Shape) != 2 || info.Shape[0] != int64(len(c.IDs)) {
			t.Fatalf("%s: shape %v for %d tokens", name, info.Shape, len(c.IDs))
		}
		raw := make([]byte, info.Size)
		if err := file.ReadTensor(name, raw); err != nil {
			t.Fatal(err)
		}
		e.Reset()
		for pos, id := range c.IDs {
			logits, err := e.Forward(Token{Pos: pos, ID: id})
			if err != nil {
				t.Fatal(err)
			}
			for j, got := range logits {
				want := math.Float32frombits(binary.LittleEndian.Uint32(
					raw[4*(pos*len(logits)+j):]))
				worst = max(worst, math.Abs(float64(got)-float64(want)))
			}
			if got := argmax(logits); got != c.Argmax[pos] {
				t.Errorf("prompt %d, position %d: argmax %d, want %d", i, pos, got, c.Argmax[pos])
			}
		}
	}
	t.Logf("largest absolute error %.2e", worst)
	if worst > tolerance || len(golden.Cases) != 3 {
		t.Errorf("largest absolute error %.2e over %d prompts, want at most %g over 3", worst,
			len(golden.Cases), tolerance)
	}
}
