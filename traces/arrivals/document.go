package arrivals

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/windrow-sim/windrow/internal/document"
)

// Document describes a trace of requests: the outcome of its lines, its arrivals and the lengths of
// its requests.
func (s *Summary) Document() *document.Document {
	d := &document.Document{Name: "trace-arrivals", Title: "windrow trace arrivals", Result: s,
		Headline: fmt.Sprintf("%d requests (%s)", s.Requests, s.Format)}
	if s.Rate != nil {
		d.Headline = fmt.Sprintf("%d requests at %s per second on average (%s)", s.Requests,
			document.Sig3(*s.Rate), s.Format)
	}
	unit := "lines"
	if !s.Format.HasTimes() {
		unit = "conversations"
	}
	d.Fact(unit, "%d", s.Lines)
	if s.Sessions > 0 {
		d.Fact("sessions", "%d", s.Sessions)
	}
	if s.Span != nil {
		d.Fact("span", "%s s", document.Sig3(s.Span.Seconds()))
		d.Fact("busiest second", "%d requests", *s.Peak)
	} else {
		d.Fact("times", "none")
	}
	d.Fact("requests of one output token", "%d, which have no time per output token",
		s.SingleToken)
	if s.Failed > 0 {
		d.Fact("failed requests", "%d, kept without output tokens", s.Failed)
	}
	for _, why := range slices.Sorted(maps.Keys(s.Skipped)) {
		d.Fact("left out: "+string(why), "%d", s.Skipped[why])
	}
	d.Fact("not used", "%s", strings.Join(s.Ignored, ", "))
	t := document.NewTable(document.Text("tokens"), document.Number("least", ""),
		document.Number("P50", ""), document.Number("P90", ""), document.Number("P99", ""),
		document.Number("most", ""), document.Number("all", ""))
	for _, row := range []struct {
		name string
		n    Tokens
	}{{"prompt", s.Prompt}, {"output", s.Output}} {
		t.Add(row.name, fmt.Sprint(row.n.Min), fmt.Sprint(row.n.P50), fmt.Sprint(row.n.P90),
			fmt.Sprint(row.n.P99),
			fmt.Sprint(row.n.Max), fmt.Sprint(row.n.Total))
	}
	d.Add("Lengths", "", *t)
	return d
}
