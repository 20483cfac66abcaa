package reproduce

import (
	"encoding/json"
	"fmt"
)

// MarshalJSON adds what the row's fields imply: whether it is within its tolerance.
func (r Row) MarshalJSON() ([]byte, error) {
	type plain Row
	return json.Marshal(struct {
		plain
		Within bool `json:"within"`
	}{plain(r), r.Within()})
}

// Cells are the columns of a row as a table shows them: what, paper, ours, error and tolerance in
// percent, quality, status.
func (r *Row) Cells() []string {
	unit := ""
	if r.Published.Unit != "" {
		unit = " (" + r.Published.Unit + ")"
	}
	return []string{r.What + unit, r.Published.String(), number(r.Ours), fmt.Sprintf("%+.1f",
		r.ErrorPercent), number(r.TolerancePercent), r.Published.Quality, string(r.Status)}
}
