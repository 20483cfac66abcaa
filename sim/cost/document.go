package cost

import (
	"fmt"
	"strings"

	"github.com/windrow-sim/windrow/devicemodels/energy"
	"github.com/windrow-sim/windrow/devicemodels/wear"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/units"
)

// describe starts the document of a cost of the run.
func (f *Facts) describe(name string, result any) *document.Document {
	d := &document.Document{Name: "device-" + name, Title: "windrow device " + name,
		Result: result}
	d.Warn(f.Warnings...)
	d.Fact("run", "%s", f)
	return d
}

// span writes an interval by its ends.
func span(low, high float64) string {
	if low == high {
		return document.Sig3(low)
	}
	return document.Sig3(low) + " to " + document.Sig3(high)
}

// Document describes the energy of a token: the total, then its parts and the constants' sources.
func (r *EnergyResult) Document() *document.Document {
	d := r.Run.describe("energy", r)
	e := r.Energy
	d.Warn(e.Warnings...)
	total := document.Estimate{Value: e.Total.Mid, Low: &e.Total.Low, High: &e.Total.High,
		Basis: "published constants"}
	note := "The ends of the total are the sums of the ends: nothing is known of how the errors " +
		"go together."
	if e.LowerBound {
		total.Value, total.Bound = e.Total.Low, true
		unknown := strings.Join(e.NotKnown, ", ")
		note = "A lower bound: " + unknown + " not known, and a token takes that much more."
		d.Headline = total.Text("J/token") + ": " + unknown + " not known"
	} else {
		d.Headline = total.Text("J/token")
	}
	parts, sources := r.tables()
	d.Add("Energy of a token", note, *parts)
	d.Add("Constants", "", *sources)
	return d
}

// tables are the parts of a token's energy, and the published values behind their constants.
func (r *EnergyResult) tables() (parts, sources *document.Table) {
	number, text := document.Number, document.Text
	parts = document.NewTable(text("part"), number("amount", "per token"), text("constant"),
		number("its value", ""), number("low", "J/token"), number("mid", "J/token"),
		number("high", "J/token"))
	sources = document.NewTable(text("part"), text("constant"), text("published value"),
		number("value", ""), text("quality"), text("source"))
	m := &r.Model
	// in the order of the parts
	for i, c := range []*energy.Constant{m.Flash, m.DRAM, m.Compute, m.DriveIdle, m.HostIdle} {
		p := &r.Energy.Parts[i]
		name, value := energy.NotKnown, energy.NotKnown
		if c != nil {
			name, value = c.Name, span(c.Interval.Low, c.Interval.High)+" "+c.Unit
			sources.Add(p.Part, c.Name, "", value, "", c.Rule)
			for _, v := range c.Values {
				sources.Add(p.Part, c.Name, v.Item, document.Sig3(v.Value)+" "+c.Unit, v.Quality,
					v.Source)
			}
		}
		parts.Add(append([]string{p.Part, amount(p), name, value}, joules(p.Joules)...)...)
	}
	name := "total"
	if r.Energy.LowerBound {
		name = "known parts"
	}
	parts.Add(append([]string{name, "", "", ""}, joules(&r.Energy.Total)...)...)
	return parts, sources
}

// amount is what a token reads or how long it takes, in a part.
func amount(p *energy.PartJoules) string {
	switch {
	case p.Amount == nil:
		return energy.NotKnown
	case p.Unit == "bytes":
		return document.SI(*p.Amount, "B")
	}
	return document.Sig3(*p.Amount) + " s"
}

// joules are the ends and the middle of an interval; nil is not known.
func joules(i *energy.Interval) []string {
	if i == nil {
		return []string{energy.NotKnown, energy.NotKnown, energy.NotKnown}
	}
	return []string{document.Sig3(i.Low), document.Sig3(i.Mid), document.Sig3(i.High)}
}

// Document describes the wear: the years that the flash lasts, then a day's use, then the sources
// of the constants.
func (r *WearResult) Document() *document.Document {
	d := r.Run.describe("wear", r)
	w := r.Wear
	d.Headline = fmt.Sprintf("%s to the rated bytes written, %s to the cycles, at %s tokens a day",
		years(&w.ToEndurance), years(&w.ToCycles), document.Sig3(r.TokensPerDay))
	d.Fact("drive", "%s", r.Drive.Name)
	d.Add("A day", "", *r.dayTable())
	d.Add("Years", "", *r.yearsTable())
	d.Add("Most-read blocks", "Reads and rewrites are of one block, per day.", *r.spreadTable())
	d.Add("Constants", "", *r.sourcesTable())
	d.Note("%s", strings.ReplaceAll(wear.Explanation, "\n", " "))
	return d
}

// years says in a sentence how long an endurance lasts.
func years(l *wear.Lifetime) string {
	switch {
	case !l.Known:
		return "a time that is not known"
	case l.Never:
		return "for ever"
	}
	e := document.Estimate{Value: l.Years.Mid, Low: &l.Years.Low, High: &l.Years.High}
	return e.Text("years")
}

// lifetime are the cells of a number of years.
func lifetime(l *wear.Lifetime) []string {
	switch {
	case !l.Known:
		return []string{"", energy.NotKnown, ""}
	case l.Never:
		return []string{"", "for ever", ""}
	}
	return interval(l.Years, document.Sig3)
}

func interval(i wear.Interval, format func(float64) string) []string {
	return []string{format(i.Low), format(i.Mid), format(i.High)}
}

// three returns the columns of an interval.
func three(unit string) []document.Column {
	return []document.Column{document.Number("low", unit), document.Number("mid", unit),
		document.Number("high", unit)}
}

// dayTable is the use of a day.
func (r *WearResult) dayTable() *document.Table {
	w := r.Wear
	t := document.NewTable(append([]document.Column{document.Text("per day")}, three("")...)...)
	size := func(v float64) string { return document.SI(v, "B") }
	one := func(name, value string) { t.Add(name, "", value, "") }
	add := func(name string, i wear.Interval, format func(float64) string) {
		t.Add(append([]string{name}, interval(i, format)...)...)
	}
	one("bytes read", size(w.BytesPerDay))
	one("reads", document.Sig3(w.ReadsPerDay))
	one("page reads", document.Sig3(w.PageReadsPerDay))
	add("blocks rewritten", w.RefreshesPerDay, document.Sig3)
	add("bytes written for it", w.RefreshBytes, size)
	add("bytes written in all", w.WrittenPerDay, size)
	return t
}

// spreadNames are the assumptions on how reads spread over blocks, in words.
var spreadNames = map[string]string{"even": "reads spread evenly", "hot": "the hot blocks",
	"one block": "worst case, all reads in one block"}

// yearsTable says how long the flash lasts, by each endurance.
func (r *WearResult) yearsTable() *document.Table {
	t := document.NewTable(append([]document.Column{document.Text("until")},
		three("years")...)...)
	add := func(name string, l *wear.Lifetime) {
		t.Add(append([]string{name}, lifetime(l)...)...)
	}
	add("the rated bytes are written", &r.Wear.ToEndurance)
	add("the cycles are used, wear levelled", &r.Wear.ToCycles)
	for i := range r.Wear.Spreads {
		s := &r.Wear.Spreads[i]
		add("the cycles are used in place, "+spreadNames[s.Name], &s.YearsInPlace)
	}
	return t
}

// spreadTable is the load of the most-read blocks.
func (r *WearResult) spreadTable() *document.Table {
	t := document.NewTable(append([]document.Column{document.Text("assumption"),
		document.Number("blocks", ""), document.Number("reads", "")},
		three("rewrites")...)...)
	for i := range r.Wear.Spreads {
		s := &r.Wear.Spreads[i]
		t.Add(append([]string{spreadNames[s.Name], document.Sig3(s.Blocks),
			document.Sig3(s.Reads)}, interval(s.Refreshes, document.Sig3)...)...)
	}
	return t
}

// sourcesTable has the drive and where every constant comes from.
func (r *WearResult) sourcesTable() *document.Table {
	d := &r.Drive
	orNot := func(b units.Bytes) string {
		if b == 0 {
			return energy.NotKnown
		}
		return document.SI(float64(b), "B")
	}
	number, text := document.Number, document.Text
	t := document.NewTable(text("constant"), text("published value"), number("value", ""),
		number("read as", ""), text("quality"), text("source"))
	t.Add("drive", d.Name+", capacity", "", orNot(d.Capacity), d.Quality, d.Source)
	t.Add("drive", d.Name+", rated bytes written", "", orNot(d.Endurance), d.Quality, d.Source)
	_, _, geometry, _ := wear.Geometry() // the drive's own page and block came from it
	t.Add("page, block", "defaults of a simulator", "",
		document.IEC(d.Page)+", "+document.IEC(d.Block), "sim-default", geometry)
	for _, c := range []struct {
		name     string
		constant *wear.Constant
	}{{"read disturb", d.Disturb}, {"cycles", d.Cycles}} {
		if c.constant == nil {
			t.Add(c.name, "", "", energy.NotKnown, "", "")
			continue
		}
		t.Add(c.name, c.constant.Name, "", span(c.constant.Interval.Low, c.constant.Interval.High),
			"", c.constant.Rule)
		for _, v := range c.constant.Values {
			t.Add(c.name, v.Item, v.Text, span(v.Low, v.High), v.Quality, v.Source)
		}
	}
	return t
}
