package cost

import (
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels/energy"
	"github.com/windrow-sim/windrow/devicemodels/wear"
)

// A total with an unknown part is a bound from below; a whole one has an interval.
func TestEnergyDocument(t *testing.T) {
	amount := 10.0
	known := energy.PartJoules{Part: "flash read", Unit: "bytes", Amount: &amount,
		Joules: &energy.Interval{Low: 1, Mid: 2, High: 3}}
	r := &EnergyResult{Run: Facts{Warnings: []string{"a run of one token"}},
		Energy: &energy.Report{Tokens: 1, Total: *known.Joules,
			Parts: []energy.PartJoules{known, known, known, known, known}}}
	d := r.Document()
	if d.Headline != "2.00 J/token, 1.00 to 3.00 (simulated; basis: published constants)" ||
		d.Check() != nil || len(d.Warnings) != 1 {
		t.Errorf("%q, warnings %q, %v", d.Headline, d.Warnings, d.Check())
	}
	r.Energy.LowerBound, r.Energy.NotKnown = true, []string{"DRAM"}
	r.Energy.Parts[1] = energy.PartJoules{Part: "DRAM", Unit: "bytes"}
	d = r.Document()
	if d.Headline != "at least 1.00 J/token (bound): DRAM not known" ||
		!strings.Contains(d.Sections[0].Note, "lower bound") {
		t.Errorf("%q, %q", d.Headline, d.Sections[0].Note)
	}
	rows := d.Sections[0].Table.Rows
	if dram := rows[1]; dram[4] != energy.NotKnown || rows[len(rows)-1][0] != "known parts" {
		t.Errorf("%q", rows)
	}
}

// Lifetimes are known, for ever, or not known.
func TestWearDocument(t *testing.T) {
	r := &WearResult{TokensPerDay: 1000, Wear: &wear.Report{
		ToEndurance: wear.Lifetime{Known: true, Years: wear.Interval{Low: 1, Mid: 2, High: 4}},
		Spreads: []wear.Spread{{Name: "even", YearsInPlace: wear.Lifetime{Known: true,
			Never: true}}}}}
	d := r.Document()
	if d.Headline != "2.00 years, 1.00 to 4.00 to the rated bytes written, a time that is not "+
		"known to the cycles, at 1000 tokens a day" || d.Check() != nil {
		t.Errorf("%q, %v", d.Headline, d.Check())
	}
	if years := d.Sections[1].Table.Rows; years[0][1] != "1.00" || years[1][2] != energy.NotKnown ||
		years[2][2] != "for ever" {
		t.Errorf("%q", years)
	}
}
