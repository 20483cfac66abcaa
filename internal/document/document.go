// Package document describes a result for people and for programs: one sentence that answers the
// question, warnings, facts, tables, figures, and the exact numbers behind them. Libraries fill a
// Document in; one writer (cmd/windrow/report) prints it as text, Markdown, CSV, JSON or HTML.
//
// The model. A library's Result has a method Document. It decides which numbers a reader sees first
// and in which unit; it knows nothing of formats, terminals and flags. The writer knows nothing of
// the result's meaning.
//
// Three rules hold for every Document:
//
//  1. The Headline is the answer. It stands alone: "3.1 tokens/s, 2.2 to 4.0".
//  2. A predicted number is written by an Estimate, so that its interval, and the word "bound",
//     are in every format.
//  3. Cells of a table hold numbers of one unit, which its column states; three significant digits;
//     SI prefixes for rates, drives and traffic, IEC prefixes for memory.
//
// Start with Document, then Table in table.go, Estimate in estimate.go and the number formats in
// format.go. It is a leaf.
package document

import (
	"fmt"
	"slices"
)

// Document is a result, described.
type Document struct {
	// Name is the name of the result's kind in its schema: "sim" gives "windrow/sim/1".
	Name string
	// Title heads Markdown and HTML pages.
	Title string
	// Headline answers the question in one sentence. Text output begins with it.
	Headline string
	// Verdict is the outcome of a comparison with a tolerance; nil without one.
	Verdict  *Verdict
	Warnings []string
	Facts    []Fact
	Sections []Section
	Figures  []Figure
	// Notes are closing sentences on how to read the tables.
	Notes []string
	// Result holds the exact numbers. JSON prints it as "result"; its fields name their units.
	Result any
	// Rows is the table of the CSV form where that is another than the sections: one record per
	// token, say, with exact numbers. Nil prints the sections.
	Rows *Table
}

// Fact is a property of a result's setting: the model, the device, the file system.
type Fact struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Verdict is the outcome of a comparison.
type Verdict struct {
	Text    string
	Class   string // "pass", "noisy" or "outside"
	Reasons []string
}

// Place says where a section is shown.
type Place uint8

// The places.
const (
	// Everywhere is in every format.
	Everywhere Place = iota
	// Details is left out of text for a terminal.
	Details
	// Listing is shown by HTML alone, folded.
	Listing
)

// Section is a table with its title and, optionally, sentences on how to read it, one a line.
type Section struct {
	Title string `json:"title"`
	Note  string `json:"note,omitempty"`
	Table Table  `json:"table"`
	Place Place  `json:"-"`
}

// Figure is a drawing with the words around it. Only HTML shows figures.
type Figure struct {
	Title  string
	SVG    string // trusted: made by this program, with all text escaped
	Legend []Key
	Note   string
}

// Key is an entry of a figure's legend.
type Key struct {
	Class string // of the drawn element
	Text  string
}

// Add appends a section; an empty table is left out.
func (d *Document) Add(title, note string, t Table) {
	if len(t.Rows) > 0 {
		d.Sections = append(d.Sections, Section{Title: title, Note: note, Table: t})
	}
}

// Fact appends a fact; an empty value is left out.
func (d *Document) Fact(key, format string, args ...any) {
	if text := fmt.Sprintf(format, args...); text != "" {
		d.Facts = append(d.Facts, Fact{key, text})
	}
}

// Note appends a closing sentence that the document does not have yet.
func (d *Document) Note(format string, args ...any) {
	d.Notes = once(d.Notes, fmt.Sprintf(format, args...))
}

// Warn appends warnings that the document does not have yet.
func (d *Document) Warn(texts ...string) { d.Warnings = once(d.Warnings, texts...) }

// once appends texts that are not in the list.
func once(list []string, texts ...string) []string {
	for _, text := range texts {
		if !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return list
}

// Check refuses tables whose rows do not fit their columns.
func (d *Document) Check() error {
	for i := range d.Sections {
		if err := d.Sections[i].Table.Check(); err != nil {
			return fmt.Errorf("document: table %q: %w", d.Sections[i].Title, err)
		}
	}
	if d.Rows != nil {
		if err := d.Rows.Check(); err != nil {
			return fmt.Errorf("document: rows: %w", err)
		}
	}
	return nil
}
