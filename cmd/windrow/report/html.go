package report

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"

	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/plain"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

// page is what page.html shows.
type page struct {
	*document.Document
	Title            string
	Tool             string
	Main, Fold       []document.Section
	Details, Figures any
	Style            template.CSS
	Script           template.JS
	JSON             template.JS
}

// figure is a document's figure whose drawing the page takes as it is.
type figure struct {
	document.Figure
	SVG template.HTML
}

// writeHTML writes the document as one file that needs nothing else: no network, no fonts, no
// library. Figures are SVG made here and tables are tables, so the page is complete without a
// script; the script only adds a readout that follows the pointer and the arrow keys. The JSON form
// is embedded in the element with the id "data".
func writeHTML(w io.Writer, d *document.Document, origin Origin) error {
	// escapes <, > and &, so no data can close the element
	data, err := json.Marshal(envelope(d, origin))
	if err != nil {
		return fmt.Errorf("report: html: %w", err)
	}
	data = plain.JSON(data)
	d = shown(d)
	t, err := template.New("page").Parse(pageHTML)
	if err != nil {
		return fmt.Errorf("report: html: %w", err)
	}
	p := page{Document: d, Title: d.Title, Tool: origin.Tool,
		Style: template.CSS(pageCSS), Script: template.JS(pageJS), JSON: template.JS(data)}
	var details []document.Section
	for _, s := range d.Sections {
		switch s.Place {
		case document.Everywhere:
			p.Main = append(p.Main, s)
		case document.Details:
			details = append(details, s)
		default:
			p.Fold = append(p.Fold, s)
		}
	}
	var figures []figure
	for _, f := range d.Figures {
		figures = append(figures, figure{f, template.HTML(f.SVG)})
	}
	p.Details, p.Figures = details, figures
	if err := t.Execute(w, p); err != nil {
		return fmt.Errorf("report: html: %w", err)
	}
	return nil
}
