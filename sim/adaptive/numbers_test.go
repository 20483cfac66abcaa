package adaptive

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/input/inputtest"
	"github.com/windrow-sim/windrow/internal/units"
)

// TestAbsurdNumbersOfBudgets replaces each number of a file of --dram-over-time by absurd ones,
// with its unit and without. It is refused with its line, or the schedule is one that can be
// followed.
func TestAbsurdNumbersOfBudgets(t *testing.T) {
	refused := 0
	for _, file := range []string{"from,budget\n0,9GiB\n64,5GiB\n128,50%\n",
		"from,budget\n0s,60%\n20s,7GiB\n50.5s,9GiB\n"} {
		data := []byte(file)
		for _, n := range inputtest.CSV(t, data) {
			unit := strings.TrimLeft(n.Text, "0123456789.")
			for _, absurd := range inputtest.Absurd() {
				for _, other := range []string{absurd, absurd + unit} {
					name := fmt.Sprintf("line %d: %s in place of %s", n.Line, other, n.Text)
					s, err := ParseCSV(bytes.NewReader(n.Replaced(data, other)), 8*units.GiB)
					if err != nil {
						refused++
						if !errors.Is(err, ErrSchedule) || !strings.Contains(err.Error(), "line ") {
							t.Errorf("%s: %v", name, err)
						}
						continue
					}
					if slices.Contains(inputtest.Impossible(), absurd) {
						t.Errorf("%s: is accepted: %+v", name, s)
					}
					last := int64(-1)
					for _, c := range s.Changes {
						if c.From <= last || c.Budget < 0 || c.Budget > math.MaxInt64/2 {
							t.Errorf("%s: %+v", name, s)
						}
						last = c.From
					}
				}
			}
		}
	}
	if refused < 200 {
		t.Errorf("%d refused", refused)
	}
}
