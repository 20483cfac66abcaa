package report

import (
	"io"
	"strings"

	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/plain"
)

// writeMarkdown writes a document for a pull request: all tables, no figures.
func writeMarkdown(w io.Writer, d *document.Document) error {
	var b strings.Builder
	b.WriteString("# " + mdEscape(d.Title) + "\n")
	if d.Headline != "" {
		b.WriteString("\n**" + mdEscape(d.Headline) + "**\n")
	}
	if v := d.Verdict; v != nil {
		b.WriteString("\n**Verdict: " + mdEscape(v.Text) + "**\n")
		mdList(&b, "", v.Reasons)
	}
	mdList(&b, "**Warning:** ", d.Warnings)
	var facts []string
	for _, f := range d.Facts {
		facts = append(facts, f.Key+": "+f.Value)
	}
	mdList(&b, "", facts)
	for _, s := range d.Sections {
		if s.Place == document.Listing {
			continue
		}
		if s.Title != "" {
			b.WriteString("\n## " + mdEscape(s.Title) + "\n")
		}
		b.WriteByte('\n')
		mdTable(&b, &s.Table)
		for note := range strings.Lines(s.Note) {
			b.WriteString("\n" + mdEscape(strings.TrimSuffix(note, "\n")) + "\n")
		}
	}
	for _, n := range d.Notes {
		b.WriteString("\n" + mdEscape(n) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// mdList writes a list after an empty line; nothing for no items. The prefix is markup, the items
// are text.
func mdList(b *strings.Builder, prefix string, items []string) {
	if len(items) > 0 {
		b.WriteByte('\n')
	}
	for _, s := range items {
		b.WriteString("- " + prefix + mdEscape(s) + "\n")
	}
}

// mdTable writes a table as GitHub's Markdown does. Cells are text: markup in them is escaped.
func mdTable(b *strings.Builder, t *document.Table) {
	line := func(cells []string) {
		for _, c := range cells {
			b.WriteString("| " + mdEscape(c) + " ")
		}
		b.WriteString("|\n")
	}
	line(t.Heads())
	for _, c := range t.Columns {
		if c.Align == document.Right {
			b.WriteString("| ---: ")
		} else {
			b.WriteString("| --- ")
		}
	}
	b.WriteString("|\n")
	for _, r := range t.Rows {
		line(r)
	}
}

// mdEscape makes s plain text on one line of Markdown.
func mdEscape(s string) string {
	var b strings.Builder
	for _, r := range plain.Lines(s) {
		switch r {
		case '\n':
			b.WriteString("<br>")
		case '<':
			b.WriteString("&lt;")
		case '>':
			b.WriteString("&gt;")
		case '&':
			b.WriteString("&amp;")
		case '|', '*', '_', '`', '[', ']', '\\', '#', '~', '!':
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
