package document

import "testing"

func TestEstimateSaysWhatItIs(t *testing.T) {
	low, high := 2.2, 4.0
	for _, c := range []struct {
		e                    Estimate
		cell, interval, text string
	}{
		{Estimate{Value: 3.1, Low: &low, High: &high, Basis: "interpolated"}, "3.10",
			"2.20 to 4.00", "3.10 tokens/s, 2.20 to 4.00 (simulated; basis: interpolated)"},
		{Estimate{Value: 4.5, Bound: true, AtMost: true, Basis: "bound"}, "≤ 4.50", "bound",
			"at most 4.50 tokens/s (bound)"},
		{Estimate{Value: 4.5, Bound: true, Basis: "bound", Low: &low, High: &high}, "≥ 4.50",
			"bound", "at least 4.50 tokens/s (bound)"},
		{Estimate{Value: 4.5, Low: &low, Basis: "measured"}, "4.50", "not known",
			"4.50 tokens/s, interval not known (simulated; basis: measured)"},
	} {
		cells := c.e.Cells()
		if cells[0] != c.cell || cells[1] != c.interval || cells[2] != c.e.Basis {
			t.Errorf("%+v: cells %q", c.e, cells)
		}
		if got := c.e.Text("tokens/s"); got != c.text {
			t.Errorf("%+v: %q, want %q", c.e, got, c.text)
		}
	}
}

func TestRaggedTableIsRefused(t *testing.T) {
	d := Document{}
	table := NewTable(Text("a"), Number("b", "ms"))
	table.Add("x", "1")
	d.Add("first", "", *table)
	if err := d.Check(); err != nil {
		t.Error(err)
	}
	d.Add("empty", "", *NewTable(Text("a")))
	if len(d.Sections) != 1 {
		t.Error("an empty table is a section")
	}
	table.Add("alone")
	d.Sections[0].Table = *table
	if d.Check() == nil {
		t.Error("a row of one cell fits two columns")
	}
}

func TestWarningsAreSaidOnce(t *testing.T) {
	d := Document{Warnings: []string{"a"}}
	d.Warn("b", "a", "b")
	if len(d.Warnings) != 2 {
		t.Errorf("warnings %q", d.Warnings)
	}
}

func TestEstimateInAnotherUnit(t *testing.T) {
	low := 2.0
	e := Estimate{Value: 3, Low: &low, Basis: "measured"}
	if k := e.Times(1000); k.Value != 3000 || *k.Low != 2000 || k.High != nil || low != 2 {
		t.Errorf("%+v of %+v", k, e)
	}
	e.Bound, e.Value = true, 4
	if k := e.Inverse(8); k.Value != 2 || k.Low != nil || *k.High != 4 || !k.AtMost ||
		k.Inverse(8).AtMost {
		t.Errorf("%+v of %+v", k, e)
	}
}
