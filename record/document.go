package record

import (
	"fmt"

	"github.com/windrow-sim/windrow/internal/document"
)

// Document describes the trace that was recorded.
func (r *Result) Document() *document.Document {
	d := &document.Document{Name: "record", Title: "windrow record", Result: r,
		Headline: fmt.Sprintf("%s: %d sequences, %d tokens", r.Trace, r.Sequences, r.Tokens)}
	d.Fact("model", "%s", r.Model)
	return d
}
