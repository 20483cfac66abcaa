package session

import (
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/model"
)

// TestFeaturesThatAModelHasNot: norms behind the residual additions leave none to record, nor to
// predict from.
func TestFeaturesThatAModelHasNot(t *testing.T) {
	w, _, _, err := model.LoadFolder(t.Context(), "../testdata/families/opt-350m")
	if err != nil {
		t.Fatal(err)
	}
	s := &Session{Weights: w}
	if _, err := s.predictedFrom("a.predictor.safetensors", "residual"); err == nil ||
		!strings.Contains(err.Error(), "has no residual") || !strings.Contains(err.Error(),
		"another FeatureKind") {
		t.Errorf("residual: %v", err)
	}
	if kind, err := s.Feature("attention_output"); err != nil ||
		kind != engine.AttentionOutput {
		t.Errorf("attention_output: %v, %v", kind, err)
	}
}
