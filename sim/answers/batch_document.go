package answers

import (
	"fmt"

	"github.com/windrow-sim/windrow/internal/document"
)

// Document describes the study: what a token costs in a batch of every size, then what batches
// need.
func (r *BatchStudy) Document() *document.Document {
	t := r.Times
	d := &document.Document{Name: "batch", Title: "windrow batch", Headline: r.headline(),
		Warnings: t.Warnings, Result: r}
	d.Fact("model", "%s, %s masks", r.Model, r.Unions.Mask)
	d.Fact("device", "%s", r.Device)
	d.Fact("window", "%d steps", t.Window)
	d.Fact("batches", "%s", r.Unions.Formed)
	if t.AtLeast > 1 {
		d.Fact("units", "those that %d or more sequences of the batch need", t.AtLeast)
	}
	d.Add("Time of a token", "Times are those of a step divided by B. Hybrid reads the whole "+
		"FFN for every step: "+document.SI(float64(t.FFNBytes), "B")+" in "+
		t.FFNEstimate.Text("ms")+". Same memory is hybrid with as many units in memory as the "+
		"window has. Both sides are charged the same compute, once per step.", *t.timeTable())
	d.Add("Where the time goes", "I/O within and host within are the intervals of the times of "+
		"flash and of host that hold nine of ten results. All other columns are counts.",
		*r.partsTable())
	d.Add("Units that at least M sequences of a batch need", "Dropped is the share of the "+
		"activations that are lost without the other units.", *r.leastTable())
	d.Add("Batches of sequences with alike masks", "Grouped by the last step is what can be "+
		"known in time; by this step is the best that grouping can do.", *r.groupTable())
	d.Add("Prompts, several tokens at once", "", *r.promptTable())
	for i := range t.Rows {
		for _, note := range t.Rows[i].Prediction.Notes {
			d.Note("%s", note)
		}
	}
	return d
}

// headline says where flash stops paying, and the most that a batch makes.
func (r *BatchStudy) headline() string {
	t := r.Times
	text := t.stops("hybrid that keeps nothing", t.StopsAt)
	if t.Window > 0 && t.NotWarm < len(t.Rows) {
		text += "; " + t.stops("hybrid with the same memory", t.StopsResident)
	}
	best := -1
	for i := range t.Rows {
		if rate := t.Rows[i].TokensPerS; rate != nil && (best < 0 ||
			rate.Value > t.Rows[best].TokensPerS.Value) {
			best = i
		}
	}
	if best < 0 {
		return text
	}
	return fmt.Sprintf("%s in a batch of %d; %s", t.Rows[best].TokensPerS.Text("tokens/s"),
		t.Rows[best].Size, text)
}

// stops says at which batch flash is no longer faster.
func (t *Batches) stops(than string, size int) string {
	switch {
	case t.NotWarm == len(t.Rows):
		return fmt.Sprintf("against %s: not known, no size has more steps than the window", than)
	case size == 0:
		return fmt.Sprintf("against %s: flash pays at every measured size", than)
	}
	return fmt.Sprintf("against %s: flash stops paying at %d", than, size)
}

// absent fills the cells of a row that was not simulated.
func absent(row []string, columns int) []string {
	for len(row) < columns {
		row = append(row, "n/a")
	}
	return row
}

// timeTable compares flash with hybrid.
func (t *Batches) timeTable() *document.Table {
	table := document.NewTable(document.Number("B", ""), document.Number("steps", ""))
	add := func(name, unit string) {
		table.Columns = append(table.Columns, document.Number(name, unit),
			document.IntervalOf(name))
	}
	add("rate", "tokens/s")
	add("flash", "ms")
	add("hybrid", "ms")
	if t.Window > 0 {
		add("same memory", "ms")
	}
	table.Columns = append(table.Columns, document.BasisColumn)
	for i := range t.Rows {
		row := &t.Rows[i]
		cells := []string{document.Count(row.Size), document.Count(row.Warm)}
		list := []*document.Estimate{row.TokensPerS, row.FlashEstimate, row.HybridEstimate}
		if t.Window > 0 {
			list = append(list, row.HybridResidentEstimate)
		}
		for _, e := range list {
			if e == nil {
				cells = append(cells, "n/a", "n/a")
			} else {
				cells = append(cells, e.Cell(), e.Interval())
			}
		}
		table.Add(append(cells, row.Basis)...)
	}
	return table
}

// partsTable is about the parts of a token on flash.
func (r *BatchStudy) partsTable() *document.Table {
	number := document.Number
	table := document.NewTable(number("B", ""), number("union", "%"))
	if r.Times.AtLeast > 1 {
		table.Columns = append(table.Columns, number("kept", "%"))
	}
	if r.Times.Window > 0 {
		table.Columns = append(table.Columns, number("resident", "%"))
	}
	table.Columns = append(table.Columns, number("read", "MB"), number("I/O", "ms"),
		number("decide", "ms"), number("copies", "ms"), number("compute", "ms"),
		number("I/O within", "%"), number("host within", "%"))
	for i := range r.Times.Rows {
		row := &r.Times.Rows[i]
		cells := []string{document.Count(row.Size),
			document.Percent(r.Unions.Batches[i].Union().Share)}
		if row.Warm == 0 {
			table.Add(absent(cells, len(table.Columns))...)
			continue
		}
		if r.Times.AtLeast > 1 {
			cells = append(cells, document.Percent(row.Needed))
		}
		if r.Times.Window > 0 {
			cells = append(cells, document.Percent(row.Resident))
		}
		p := row.Prediction
		table.Add(append(cells, document.Sig3(row.Bytes/1e6), p.Millis(row.IO),
			p.Millis(row.Decide), p.Millis(row.Memory), p.Millis(row.Compute),
			p.Within(p.IOPercent), p.Within(p.HostPercent))...)
	}
	return table
}

// leastTable is about units that at least M of the sequences need.
func (r *BatchStudy) leastTable() *document.Table {
	number := document.Number
	table := document.NewTable(number("B", ""), number("needed by 1+", "%"),
		number("by 2+", "%"), number("by 3+", "%"), number("by 4+", "%"),
		number("dropped 2+", "%"), number("dropped 3+", "%"), number("dropped 4+", "%"))
	possible := func(size, m int, share float64) string {
		if size < m {
			return ""
		}
		return document.Percent(share)
	}
	for i := range r.Unions.Batches {
		b := &r.Unions.Batches[i]
		cells := []string{document.Count(b.Size)}
		for _, k := range b.AtLeast {
			cells = append(cells, possible(b.Size, k.M, k.Share))
		}
		for _, k := range b.AtLeast[1:] {
			cells = append(cells, possible(b.Size, k.M, k.Dropped))
		}
		table.Add(cells...)
	}
	return table
}

// groupTable is about choosing the sequences of a batch.
func (r *BatchStudy) groupTable() *document.Table {
	number := document.Number
	table := document.NewTable(number("B", ""), number("batches", ""), number("in order", "%"),
		number("grouped by last step", "%"), number("smaller", "%"),
		number("grouped by this step", "%"), number("smaller at best", "%"))
	for _, g := range r.Unions.Groups {
		table.Add(document.Count(g.Size), document.Count(g.Batches), document.Percent(g.InOrder),
			document.Percent(g.Before), document.Percent(1-g.Before/g.InOrder),
			document.Percent(g.Known), document.Percent(1-g.Known/g.InOrder))
	}
	return table
}

// promptTable is about prompts computed several tokens at a time.
func (r *BatchStudy) promptTable() *document.Table {
	number := document.Number
	table := document.NewTable(number("prompt tokens at once", ""), number("chunks", ""),
		number("union", "%"), number("read", "MB/token"))
	for _, c := range r.Prompt {
		if c.Chunks > 0 {
			table.Add(document.Count(c.Tokens), document.Count(c.Chunks),
				document.Percent(c.Share), document.Sig3(c.BytesPerToken/1e6))
		}
	}
	return table
}
