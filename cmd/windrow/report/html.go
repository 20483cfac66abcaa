package report

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"

	"github.com/windrow-sim/windrow/traces/compare"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

// page is what page.html shows.
type page struct {
	*Contents
	Title        string
	VerdictClass string
	Facts        []KV
	Charts       []Chart
	Tokens       *Section
	Style        template.CSS
	Script       template.JS
	JSON         template.JS
}

// WriteHTML writes the report as one file that needs nothing else: no network, no fonts, no
// library. Charts are SVG made here and tables are tables, so the page is complete without a
// script; the script only adds a readout that follows the pointer and the arrow keys. The Document
// of d is embedded as JSON in the element with the id "data".
func WriteHTML(w io.Writer, d *Data) error {
	runs, err := d.series()
	if err != nil {
		return err
	}
	// escapes <, > and &, so no data can close the element
	doc, err := json.Marshal(d.document(runs))
	if err != nil {
		return fmt.Errorf("report: html: %w", err)
	}
	t, err := template.New("page").Parse(pageHTML)
	if err != nil {
		return fmt.Errorf("report: html: %w", err)
	}
	c := d.contents(runs)
	p := page{
		Contents: c, Title: printable(d.Title), VerdictClass: verdictClass(d.Comparison),
		Facts: allFacts(d), Charts: d.charts(runs),
		Style: template.CSS(pageCSS), Script: template.JS(pageJS), JSON: template.JS(doc),
	}
	if len(runs) > 0 {
		p.Tokens = tokensSection(runs)
	}
	if err := t.Execute(w, p); err != nil {
		return fmt.Errorf("report: html: %w", err)
	}
	return nil
}

func verdictClass(c *compare.Comparison) string {
	switch {
	case c == nil:
		return ""
	case c.Verdict == compare.Pass:
		return "pass"
	case c.Verdict == compare.Noisy:
		return "noisy"
	}
	return "outside"
}

// maxTokenRows is how many tokens the page lists; the JSON and CSV forms have all.
const maxTokenRows = 512

// tokensSection lists the latency and the reads of every token. Runs of one report that are not of
// the same tokens are listed by their place.
func tokensSection(runs []series) *Section {
	t := Table{Columns: []Column{{"token", "", Right}, {Name: "phase"}}}
	n := 0
	for _, s := range runs {
		t.Columns = append(t.Columns, Column{"latency, " + s.name(), "ms", Right},
			Column{"flash, " + s.name(), "MB", Right})
		n = max(n, len(s.tokens))
	}
	for i := range min(n, maxTokenRows) {
		row := []string{"", ""}
		for _, s := range runs {
			if i >= len(s.tokens) {
				row = append(row, "", "")
				continue
			}
			k := &s.tokens[i]
			row[0], row[1] = count(int64(k.Index)), phaseName(k.Phase)
			row = append(row, ms(float64(k.Latency)), Sig3(float64(k.Bytes)/1e6))
		}
		t.Add(row...)
	}
	note := ""
	if n > maxTokenRows {
		note = fmt.Sprintf("The first %d of %d tokens; the CSV and JSON forms have all.",
			maxTokenRows, n)
	}
	return &Section{"Tokens", note, t}
}
