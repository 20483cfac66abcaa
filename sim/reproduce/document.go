package reproduce

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/windrow-sim/windrow/internal/document"
)

// MarshalJSON adds what the row's fields imply: whether it is within its tolerance.
func (r Row) MarshalJSON() ([]byte, error) {
	type plain Row
	return json.Marshal(struct {
		plain
		Within bool `json:"within"`
	}{plain(r), r.Within()})
}

// Document describes the rows grouped by table, each table with its calibrations and misses.
func (r *Result) Document() *document.Document {
	d := &document.Document{Name: "reproduce", Title: "windrow reproduce", Result: r,
		Headline: fmt.Sprintf("%d rows: %d calibrated, %d predicted, %d known misses, %d others "+
			"outside their tolerance", len(r.Rows), r.Count(Calibrated), r.Count(Predicted),
			r.Count(Miss), len(r.Outside()))}
	for _, t := range r.Tables {
		table := document.NewTable(document.Text("what"), document.Number("paper", ""),
			document.Number("ours", ""), document.Number("error", "%"),
			document.Number("tolerance", "%"), document.Text("quality"), document.Text("status"))
		var below []string
		for i := range r.Rows {
			if row := &r.Rows[i]; row.Table == t.Name {
				table.Add(row.cells()...)
				below = append(below, row.remarks(r.inputs)...)
			}
		}
		d.Add(t.Title, strings.Join(below, "\n"), *table)
	}
	d.Note("The intervals of our numbers are not known. Only their error is known: the " +
		"distance from the published number.")
	return d
}

// cells are the columns of a row.
func (r *Row) cells() []string {
	unit := ""
	if r.Published.Unit != "" {
		unit = " (" + r.Published.Unit + ")"
	}
	return []string{r.What + unit, r.Published.String(), number(r.Ours), fmt.Sprintf("%+.1f",
		r.ErrorPercent), number(r.TolerancePercent), r.Published.Quality, string(r.Status)}
}

// remarks are what is said of a row below its table.
func (r *Row) remarks(inputs bool) []string {
	var list []string
	add := func(kind, text string) {
		if text != "" {
			list = append(list, fmt.Sprintf("%s: %s%s", r.What, kind, text))
		}
	}
	add("fixes ", r.Fixes)
	add("miss. ", r.Reason)
	add("", r.Note)
	if inputs {
		for _, in := range r.Inputs {
			from := in.From
			if in.Calibrated {
				from = "calibrated on " + from
			}
			add("", fmt.Sprintf("%s = %s (%s)", in.Name, in.Value, from))
		}
	}
	return list
}
