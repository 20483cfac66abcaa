package traces

import (
	"fmt"

	"github.com/windrow-sim/windrow/internal/document"
)

// Document describes a check: what the file holds, and whether a manifest vouches for it.
func (r *Report) Document() *document.Document {
	state := "unverified: no manifest"
	if r.Verified {
		state = "verified by its manifest"
	}
	if !r.Complete {
		state += ", not whole"
	}
	d := &document.Document{Name: "trace-check", Title: "windrow trace check", Result: r,
		Warnings: r.Warnings, Headline: fmt.Sprintf("%s: %d tokens, %d rows, %d active units, %s",
			r.Path, r.Tokens, r.Rows, r.Active, state)}
	t := document.NewTable(document.Text("part"), document.Number("count", ""))
	t.Add("tokens", document.Count(r.Tokens))
	t.Add("prompt tokens", document.Count(r.Prefill))
	t.Add("sequences", document.Count(r.Sequences))
	t.Add("rows", document.Count(r.Rows))
	t.Add("active units", document.Count(r.Active))
	d.Add("What the file holds", "", *t)
	return d
}
