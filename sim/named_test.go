package sim

import (
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/internal/decisions/schedule"
)

// Masks that name exactly the active units, at no cost, are as fast as the true masks; a predictor
// that costs something is slower, and so is one that names more.
func TestNamedSpeed(t *testing.T) {
	src := testTrace(3, 256, 24, 0.1)
	src.Head.HasPredicted = true
	for i := range src.List {
		src.List[i].Predicted = src.List[i].Active
	}
	for _, kind := range []schedule.Kind{schedule.Demand, schedule.LookAhead, schedule.Token} {
		cfg := NamedConfig{Device: testDevice(), Window: 4, Schedule: kind}
		named, actual, err := NamedSpeed(t.Context(), src, cfg)
		if err != nil || named.Value != actual.Value ||
			named.Value <= 0 {
			t.Errorf("%v: %g with what is named, %g with what is active, %v", kind, named.Value,
				actual.Value, err)
		}
		cfg.PredictorRank = 64
		if charged, same, err := NamedSpeed(t.Context(), src, cfg); err != nil ||
			charged.Value >= named.Value || same.Value != actual.Value {
			t.Errorf("%v: %g with a predictor that costs, %g without: %v", kind, charged.Value,
				named.Value, err)
		}
	}
	for i := range src.List {
		src.List[i].Predicted = slices.Clone(src.List[i].Active)
		for l := range src.List[i].Predicted {
			all := slices.Clone(src.List[i].Predicted[l])
			all.Fill(src.Head.Units)
			src.List[i].Predicted[l] = all
		}
	}
	named, actual, err := NamedSpeed(t.Context(), src, NamedConfig{Device: testDevice()})
	if err != nil || named.Value >= actual.Value {
		t.Errorf("%g with all units named, %g with the active ones, %v", named.Value,
			actual.Value, err)
	}
}
