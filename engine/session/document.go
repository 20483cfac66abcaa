package session

import (
	"fmt"
	"strings"

	"github.com/windrow-sim/windrow/internal/document"
)

// Document describes how the text was written, and holds it in a table.
func (g *Generated) Document() *document.Document {
	d := &document.Document{Name: "generate", Title: "windrow generate", Result: g,
		Headline: fmt.Sprintf("%s tokens/s (measured): %d prompt tokens, %d generated, first "+
			"token after %s ms, %s read from flash, hit ratio %s", document.Sig3(g.AvgTS),
			g.NPrompt, g.NGen, document.Sig3(g.TTFT), document.SI(float64(g.Bytes), "B"),
			document.Sig3(g.HitRatio))}
	if g.Dropped > 0 {
		d.Warn(fmt.Sprintf("there was no room for %d rows that were needed; give more memory",
			g.Dropped))
	}
	d.Fact("model", "%s", g.Model)
	d.Fact("sampling", "%s", g.Sampling)
	if g.Mode != nil {
		d.Fact("reads", "%v", *g.Mode)
	}
	d.Fact("predictor", "%s", g.Predictor)
	if g.Missed != nil {
		d.Fact("not computed", "%s %% of the active neurons", document.Percent(*g.Missed))
	}
	if s := g.Draft; s != nil {
		d.Fact("draft", "%s drafted %d tokens, %d were accepted, in %d verifications", s.Model,
			s.Proposed, s.Accepted, s.Verified)
	}
	textTables(d, []BatchText{{Text: g.Text, NPrompt: g.NPrompt, NGen: g.NGen}})
	return d
}

// Document describes the batch, and holds the texts in a table.
func (g *BatchGenerated) Document() *document.Document {
	d := &document.Document{Name: "generate-batch", Title: "windrow generate", Result: g,
		Headline: fmt.Sprintf("%s tokens/s (measured): %d texts in batches of %d, %d tokens "+
			"generated", document.Sig3(g.AvgTS), len(g.Texts), g.Batch, g.NGen)}
	d.Fact("model", "%s", g.Model)
	d.Fact("sampling", "%s", g.Sampling)
	textTables(d, g.Texts)
	return d
}

// textTables adds texts to a document: on one line each in a table, exact in the CSV form.
func textTables(d *document.Document, texts []BatchText) {
	table := func(line func(string) string) *document.Table {
		t := document.NewTable(document.Number("prompt tokens", ""),
			document.Number("generated tokens", ""), document.Text("text"))
		for i := range texts {
			t.Add(document.Count(texts[i].NPrompt), document.Count(texts[i].NGen),
				line(texts[i].Text))
		}
		return t
	}
	d.Add("Texts", "", *table(func(text string) string {
		return strings.Join(strings.Fields(text), " ")
	}))
	d.Rows = table(func(text string) string { return text })
}
