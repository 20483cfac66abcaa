package probe

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/windrow-sim/windrow/internal/units"
)

// V12: the machine sleeps, or its clock is set, while cells are measured. They say so and are not
// used for the fit; times are those of the monotonic clock, and none is negative.
func TestField_V12_CellsBesideASleep(t *testing.T) {
	for name, set := range map[string]time.Duration{"asleep": 8 * time.Hour,
		"set back": -time.Hour, "corrected": 900 * time.Millisecond} {
		f := newFake(t, nvme())
		f.onBatch = func() error {
			if f.clock > 480*units.Millisecond && f.clock < 600*units.Millisecond {
				f.set += set
			}
			return nil
		}
		d, err := run(context.Background(), config(t), f.machine())
		if err != nil {
			t.Fatal(err)
		}
		marked := 0
		for _, c := range d.Fit.Cells {
			if c.Rate < 0 || c.RateLow < 0 {
				t.Errorf("%s: a rate of %v", name, c.Rate)
			}
			if strings.Contains(c.Tainted, "slept or its clock was set") {
				marked++
			}
		}
		if (marked == 0) != (name == "corrected") || marked > len(d.Fit.Cells)/2 {
			t.Errorf("%s: %d of %d cells are marked", name, marked, len(d.Fit.Cells))
		}
	}
}
