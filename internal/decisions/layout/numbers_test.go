package layout

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
)

// TestAbsurdOptions: a number of the options that no device or model has is refused by its field,
// its value and the reason. The ends of a range are in it.
func TestAbsurdOptions(t *testing.T) {
	geo := Geometry{Base: []int64{0}, Units: 8, Record: 4096, Stride: 4096}
	for _, v := range []int64{-1, math.MinInt64, math.MaxInt64, 1 << 62, MostGap + 1,
		int64(units.GiB) + 1, int64(2 * units.GiB)} {
		for field, opt := range map[string]Options{
			"align": {Align: units.Bytes(v)},
			"gap":   {Gap: int(v), Coalesce: true},
		} {
			if field == "align" && v == MostGap+1 {
				continue // such blocks may exist
			}
			_, err := NewPlanner(geo, opt)
			if !errors.Is(err, refusal.ErrConfig) || !strings.Contains(err.Error(), field) ||
				v > 0 && !strings.Contains(err.Error(), "is not from ") {
				t.Errorf("%s %d: %v, want a refusal that names it and its range", field, v, err)
			}
			if value := fmt.Sprint(v); field == "gap" && (err == nil ||
				!strings.Contains(err.Error(),
					value)) {
				t.Errorf("gap %d: %v does not name the value", v, err)
			}
		}
	}
	for _, opt := range []Options{{Align: units.GiB}, {Align: 1}, {Gap: MostGap, Coalesce: true}} {
		if _, err := NewPlanner(geo, opt); err != nil {
			t.Errorf("%+v: %v", opt, err)
		}
	}
}
