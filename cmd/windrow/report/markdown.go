package report

import (
	"io"
	"strings"
)

// WriteMarkdown writes the report for a pull request: all tables, no charts.
func WriteMarkdown(w io.Writer, d *Data) error {
	c, err := d.Contents()
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("# " + mdEscape(d.Title) + "\n")
	if c.Verdict != "" {
		b.WriteString("\n**Verdict: " + mdEscape(c.Verdict) + "**\n")
		mdList(&b, "", c.Reasons)
	}
	mdList(&b, "**Warning:** ", c.Warnings)
	var facts []string
	for _, f := range allFacts(d) {
		facts = append(facts, f.Key+": "+f.Value)
	}
	mdList(&b, "", facts)
	mdList(&b, "", c.Sanity)
	for _, s := range append(c.Summary[:len(c.Summary):len(c.Summary)], c.Details...) {
		b.WriteString("\n## " + mdEscape(s.Title) + "\n\n")
		if s.Note != "" {
			b.WriteString(mdEscape(s.Note) + "\n\n")
		}
		if err := s.Table.Markdown(&b); err != nil {
			return err
		}
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// allFacts puts the tool and the time of the report before the facts.
func allFacts(d *Data) []KV {
	var out []KV
	for _, f := range []KV{{"tool", d.Tool}, {"generated", d.Generated}} {
		if f.Value != "" {
			out = append(out, f)
		}
	}
	return append(out, d.Facts...)
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
