package engine

import (
	"errors"
	"math"
	"testing"
)

// TestField_F6_LogitsThatAreNotFinite: a step whose logits overflow is an error that names the
// place, whoever asks for it.
func TestField_F6_LogitsThatAreNotFinite(t *testing.T) {
	e, w, _ := newDense(t, familiesDir+"/llama", Config{})
	if _, err := e.Forward(Token{ID: 5}); err != nil {
		t.Fatal(err)
	}
	// The final norm of such a model makes states that its head cannot add up.
	for i := range w.FinalNorm.W {
		w.FinalNorm.W[i] = math.MaxFloat32
	}
	_, err := e.Forward(Token{Pos: 1, ID: 6})
	if !errors.Is(err, ErrNotFinite) {
		t.Errorf("a step: %v", err)
	}
	tokens, err := e.Generate(t.Context(), []uint32{5, 6}, GenerateOptions{MaxTokens: 4,
		Sampling: Sampling{TopP: 1, Penalty: 1}}, func(uint32) error { return nil })
	if !errors.Is(err, ErrNotFinite) || len(tokens) != 0 {
		t.Errorf("generated %d, %v", tokens, err)
	}
	nan := float32(math.NaN())
	up, down := float32(math.Inf(1)), float32(math.Inf(-1))
	for _, bad := range [][]float32{{nan}, {1, up}, {0, 1, down}} {
		if err := checkLogits(bad); !errors.Is(err, ErrNotFinite) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if err := checkLogits([]float32{0, math.MaxFloat32, -math.MaxFloat32}); err != nil {
		t.Error(err)
	}
}
