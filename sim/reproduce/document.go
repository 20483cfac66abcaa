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
		Headline: r.headline()}
	for _, t := range r.Tables {
		table := document.NewTable(document.Text("what"), document.Number("paper", ""),
			document.Number("ours", ""), document.Number("error", "%"),
			document.Number("tolerance", "%"), document.Text("quality"), document.Text("kind"))
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

// headline counts the rows. Only simulated ones are predictions.
func (r *Result) headline() string {
	simulated, within := r.Count(Simulated)
	var others []string
	for _, k := range []Kind{Arithmetic, Calibrated, Identity, NotReproduced} {
		n, _ := r.Count(k)
		others = append(others, fmt.Sprintf("%d %s", n, k))
	}
	return fmt.Sprintf("%d of %d simulated rows are within their tolerance, %d of all rows are "+
		"outside without a known reason; besides, %s", within, simulated, len(r.Outside()),
		strings.Join(others, ", "))
}

// cells are the columns of a row.
func (r *Row) cells() []string {
	unit := ""
	if r.Published.Unit != "" {
		unit = " (" + r.Published.Unit + ")"
	}
	if r.Kind == NotReproduced {
		return []string{r.What + unit, r.Published.String(), "", "", "", r.Published.Quality,
			string(r.Kind)}
	}
	return []string{r.What + unit, r.Published.String(), number(r.Ours), fmt.Sprintf("%+.1f",
		r.ErrorPercent), number(r.TolerancePercent), r.Published.Quality, string(r.Kind)}
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
	kind := "miss. "
	if r.Kind == NotReproduced {
		kind = "not reproduced. "
	}
	add(kind, r.Reason)
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
