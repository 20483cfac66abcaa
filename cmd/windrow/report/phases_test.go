package report

import (
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/compare"
)

// TestPhases: a run without a device's clock shows none, beside one that has they are not zeros,
// and two that have are compared.
func TestPhases(t *testing.T) {
	simulated, measured := makeRun(1, 10, 10, 4, true), makeRun(2, 10, 10, 4, false)
	d := &Data{Title: "t", Runs: []LabeledRun{{"", simulated}, {"", measured}}}
	const title = "Phases on the GPU"
	if text := render(t, writeTextOf, d); strings.Contains(text, title) {
		t.Errorf("phases without a GPU:\n%s", text)
	}
	measured.Meta.Phases = &traces.Phases{Clock: traces.ClockEvents, Read: 10 * units.Millisecond,
		Scatter: 20 * units.Millisecond, Sync: 5 * units.Millisecond}
	text := render(t, writeTextOf, d)
	if !strings.Contains(text, title) || !strings.Contains(render(t, writeMarkdownOf, d),
		"measured: events") {
		t.Errorf("no phases:\n%s", text)
	}
	line := func(text, name string) []string {
		for l := range strings.Lines(text) {
			if f := strings.Fields(l); len(f) > 1 && f[0] == name {
				return f
			}
		}
		return nil
	}
	if f := line(text, "scatter"); len(f) != 3 || f[1] != "n/a" || f[2] != "2.00" {
		t.Errorf("scatter is %v", f)
	}
	simulated.Meta.Phases = &traces.Phases{Clock: traces.ClockModel, Read: 10 * units.Millisecond,
		Scatter: 25 * units.Millisecond}
	c, err := compare.Compare(simulated, measured, compare.Options{
		Tolerance: compare.DefaultTolerance()})
	if err != nil {
		t.Fatal(err)
	}
	d.Comparison = c
	if f := line(render(t, writeTextOf, d), "scatter"); len(f) != 4 || f[1] != "2.50" ||
		f[2] != "2.00" || !strings.Contains(f[3], "25") {
		t.Errorf("scatter is %v", f)
	}
}
