package whatif

import (
	"fmt"

	"github.com/windrow-sim/windrow/internal/document"
)

// Document describes a changed trace: the shares reached, by layer and on average. out is the
// written file, of so many tokens.
func (r *Report) Document(out string, tokens int, opt Options) *document.Document {
	d := &document.Document{Name: "trace-whatif", Title: "windrow trace whatif",
		Headline: fmt.Sprintf("%s: %s %% of the units active, before %s %%", out,
			document.Percent(r.After), document.Percent(r.Before)),
		Result: map[string]any{"trace": out, "tokens": tokens, "report": r}}
	t := document.NewTable(document.Number("layer", ""), document.Number("active before", "%"),
		document.Number("asked", "%"), document.Number("active after", "%"),
		document.Text("chosen by"), document.Number("threshold", ""),
		document.Number("false negatives", "%"), document.Number("false positives", "%"))
	for l := range r.Layers {
		row := &r.Layers[l]
		threshold, missed, predicted := "", "", ""
		if row.Threshold > 0 {
			threshold = document.Sig3(row.Threshold)
		}
		if opt.Predicts() {
			missed = document.Percent(row.FalseNegatives)
			predicted = document.Percent(row.FalsePositives)
		}
		t.Add(fmt.Sprint(l), document.Percent(row.Before), document.Percent(row.Target),
			document.Percent(row.After), row.Method, threshold, missed, predicted)
	}
	d.Add("Layers", "", *t)
	return d
}
