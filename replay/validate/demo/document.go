package demo

import (
	"fmt"

	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/traces/compare"
)

// Document describes what the demo found: the prediction beside the measurement, then the checks.
func (r *Result) Document() *document.Document {
	d := &document.Document{Name: "demo", Title: "windrow demo", Result: r,
		Headline: fmt.Sprintf("%s: %s predicted, %s measured, error %s %%", r.Large,
			r.Predicted.Text("tokens/s"), document.Sig3(r.Measured.TokensPerS),
			document.Signed(r.ErrorPercent)),
		Verdict: &document.Verdict{Text: string(r.Verdict), Class: class(r.Verdict),
			Reasons: r.Reasons}}
	d.Fact(r.Model+" wrote", "%s", r.Text)
	t := document.NewTable(document.Text("what"), document.Text("result"))
	t.Add("flash-resident logits equal dense", fmt.Sprint(r.DenseEqual))
	t.Add("model of the runs", r.Large)
	t.Add("reads", r.Mode)
	t.Add("measured", document.Sig3(r.Measured.TokensPerS)+" tokens/s")
	t.Add("simulated", r.Predicted.Text("tokens/s"))
	t.Add("error", document.Signed(r.ErrorPercent)+" %")
	t.Add("counters and bytes equal", fmt.Sprint(r.CountersEqual && r.BytesEqual))
	t.Add("drift of the disk meanwhile", document.Sig3(r.DriftPercent)+" %")
	t.Add("verdict", string(r.Verdict))
	t.Add("report", r.Report)
	d.Add("Checks", "", *t)
	return d
}

// class is the class of a verdict in documents.
func class(v compare.Verdict) string {
	switch v {
	case compare.Pass:
		return "pass"
	case compare.Noisy:
		return "noisy"
	}
	return "outside"
}
