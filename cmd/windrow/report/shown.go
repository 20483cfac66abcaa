package report

import (
	"slices"

	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/plain"
)

// shown returns a document whose words can be shown: a page's template escapes markup alone.
func shown(d *document.Document) *document.Document {
	s := *d
	s.Title, s.Headline = plain.Line(d.Title), plain.Lines(d.Headline)
	if d.Verdict != nil {
		v := *d.Verdict
		v.Text, v.Reasons = plain.Line(v.Text), shownList(v.Reasons, plain.Lines)
		s.Verdict = &v
	}
	s.Warnings, s.Notes = shownList(d.Warnings, plain.Lines), shownList(d.Notes, plain.Lines)
	s.Facts = slices.Clone(d.Facts)
	for i := range s.Facts {
		f := &s.Facts[i]
		f.Key, f.Value = plain.Line(f.Key), plain.Lines(f.Value)
	}
	s.Sections = slices.Clone(d.Sections)
	for i := range s.Sections {
		part := &s.Sections[i]
		part.Title, part.Note = plain.Line(part.Title), plain.Lines(part.Note)
		part.Table = shownTable(&part.Table, plain.Lines)
	}
	s.Figures = slices.Clone(d.Figures)
	for i := range s.Figures {
		f := &s.Figures[i]
		f.Title, f.Note, f.Legend = plain.Line(f.Title), plain.Lines(f.Note), slices.Clone(f.Legend)
		for k := range f.Legend {
			f.Legend[k].Text = plain.Line(f.Legend[k].Text)
		}
	}
	return &s
}

// shownTable returns a table whose cells are shown so.
func shownTable(t *document.Table, show func(string) string) document.Table {
	s := document.Table{Columns: slices.Clone(t.Columns), Rows: slices.Clone(t.Rows)}
	for i := range s.Columns {
		c := &s.Columns[i]
		c.Name, c.Unit = plain.Line(c.Name), plain.Line(c.Unit)
	}
	for i, row := range s.Rows {
		s.Rows[i] = shownList(row, show)
	}
	return s
}

func shownList(list []string, show func(string) string) []string {
	out := slices.Clone(list)
	for i := range out {
		out[i] = show(out[i])
	}
	return out
}
