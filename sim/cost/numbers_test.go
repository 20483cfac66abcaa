package cost

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels/wear"
	"github.com/windrow-sim/windrow/internal/input/inputtest"
	"github.com/windrow-sim/windrow/internal/refusal"
)

// TestAbsurdGeometry replaces each number of the geometry that a Run says it was made on. Numbers
// that no model has are refused by field, and the others give a region that a drive may hold.
func TestAbsurdGeometry(t *testing.T) {
	run, _ := byHand(t)
	drive, err := wear.Describe(wear.Description{})
	if err != nil {
		t.Fatal(err)
	}
	good := []byte(`{"geometry": {"base": [0, 4096], "units": 50, "record": 1000, "stride": 4096,
		"size": 1048576, "split": 1}}`)
	refused := 0
	for _, n := range inputtest.JSON(t, good) {
		for _, other := range inputtest.Absurd() {
			run.Meta.Config = n.Replaced(good, other)
			r, err := Wear(&Subject{Run: run, Name: "r"}, WearConfig{TokensPerDay: 1000,
				Drive: drive})
			if err != nil {
				refused++
				if !errors.Is(err, refusal.ErrInput) && !errors.Is(err, refusal.ErrConfig) {
					t.Errorf("%s = %s: %v", n.Path, other, err)
				}
				continue
			}
			used := n.Field() == "units" || n.Field() == "stride"
			if used && slices.Contains(inputtest.Impossible(), other) {
				t.Errorf("%s = %s is accepted", n.Path, other)
			}
			if r.Drive.Data < 0 || float64(r.Drive.Data) > math.MaxInt64/2 {
				t.Errorf("%s = %s: a region of %v", n.Path, other, r.Drive.Data)
			}
		}
	}
	if refused < 40 {
		t.Errorf("%d numbers are refused", refused)
	}
	run.Meta.Config = []byte(`{"geometry": {"base": [0], "units": 16777217, "stride": 4096}}`)
	_, err = Wear(&Subject{Run: run, Name: "r"}, WearConfig{TokensPerDay: 1000, Drive: drive})
	if err == nil || !strings.Contains(err.Error(), "config.geometry.units: 16777217 is not from") {
		t.Errorf("%v does not name field, value and limit", err)
	}
}
