package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/plain"
)

// writeCSV writes the document's Rows, or else its tables one after the other. With several tables
// an empty line and the title as a comment ("# title") go before each; a single table is plain CSV.
// A document without tables is its headline and facts.
func writeCSV(w io.Writer, d *document.Document) error {
	if d.Rows != nil {
		return csvTable(w, d.Rows)
	}
	if len(d.Sections) == 0 {
		t := document.NewTable(document.Text("fact"), document.Text("value"))
		t.Add("result", d.Headline)
		for _, f := range d.Facts {
			t.Add(f.Key, f.Value)
		}
		return csvTable(w, t)
	}
	var b strings.Builder
	for i, s := range d.Sections {
		if i > 0 {
			b.WriteByte('\n')
		}
		if len(d.Sections) > 1 {
			b.WriteString("# " + plain.Line(s.Title) + "\n")
		}
		if err := csvTable(&b, &s.Table); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// csvTable writes a line of heads in snake case, "latency_ms", and the cells (RFC 4180 quoting), of
// which a spreadsheet takes none for a formula.
func csvTable(w io.Writer, t *document.Table) error {
	heads := t.Heads()
	for i, h := range heads {
		heads[i] = snake(h)
	}
	c := csv.NewWriter(w)
	if err := c.Write(heads); err != nil {
		return fmt.Errorf("report: csv: %w", err)
	}
	cells := make([]string, len(t.Columns))
	for _, row := range t.Rows {
		for i, cell := range row {
			cells[i] = plain.Cell(cell)
		}
		if err := c.Write(cells); err != nil {
			return fmt.Errorf("report: csv: %w", err)
		}
	}
	c.Flush()
	if err := c.Error(); err != nil {
		return fmt.Errorf("report: csv: %w", err)
	}
	return nil
}

// snake turns a head into a column name: "tokens/s" is tokens_per_s, "error (%)" is
// error_percent and "I/O (ms)" is io_ms.
func snake(head string) string {
	head = strings.NewReplacer("I/O", "io", "%", "percent", "/", " per ").Replace(head)
	words := strings.FieldsFunc(head, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	return strings.ToLower(strings.Join(words, "_"))
}
