package report

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/plain"
)

// writeText writes the form for a terminal: the answer, warnings, facts, tables and notes, each
// within the width.
func writeText(w io.Writer, d *document.Document, width int) error {
	if width <= 0 {
		width = DefaultWidth
	}
	var b strings.Builder
	line := func(text string) {
		for _, l := range wrap(plain.Line(text), width, "  ") {
			b.WriteString(l + "\n")
		}
	}
	for text := range strings.Lines(d.Headline) {
		line(strings.TrimSuffix(text, "\n"))
	}
	if v := d.Verdict; v != nil {
		line("verdict: " + v.Text)
		for _, r := range v.Reasons {
			line("  because: " + r)
		}
	}
	for _, s := range d.Warnings {
		line("warning: " + s)
	}
	for _, f := range d.Facts {
		line(f.Key + ": " + f.Value)
	}
	for _, s := range d.Sections {
		if s.Place != document.Everywhere {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		if s.Title != "" {
			line(s.Title)
		}
		b.WriteString(textTable(&s.Table, width))
		for note := range strings.Lines(s.Note) {
			line(strings.TrimSuffix(note, "\n"))
		}
	}
	if len(d.Notes) > 0 && b.Len() > 0 {
		b.WriteByte('\n')
	}
	for _, s := range d.Notes {
		line(s)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// wrap breaks text at spaces into lines of at most width columns where it can; lines after the
// first are indented. Spaces at the beginning are kept.
func wrap(text string, width int, indent string) []string {
	if utf8.RuneCountInString(text) <= width {
		return []string{text}
	}
	body := strings.TrimLeft(text, " ")
	lead := text[:len(text)-len(body)]
	var lines []string
	line := lead
	for word := range strings.FieldsSeq(body) {
		switch {
		case strings.TrimSpace(line) == "":
			line += word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			lines = append(lines, line)
			line = lead + indent + word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// cut breaks lines that are longer than width, because of a word that is: after a comma, else, in a
// column that others follow, anywhere. At the end of a line a word, a hash say, stays whole to be
// copied.
func cut(lines []string, width int, last bool) (out []string) {
	for _, line := range lines {
		runes := []rune(line)
		for len(runes) > width && width > 0 {
			at := 0
			for i, r := range runes[:width] {
				if r == ',' {
					at = i + 1
				}
			}
			if at == 0 && last {
				break
			}
			if at == 0 {
				at = width
			}
			out = append(out, string(runes[:at]))
			runes = runes[at:]
		}
		out = append(out, string(runes))
	}
	return out
}

// gap is the space between two columns.
const gap = 2

// textTable lays a table out: columns of equal width, a rule under the heads, no spaces at the end
// of lines, control characters replaced. A table that is too wide first has its heads and cells of
// words wrapped, then is cut into several that repeat the first column.
func textTable(t *document.Table, width int) string {
	shown := shownTable(t, plain.Line)
	t = &shown
	var b strings.Builder
	rest := make([]int, len(t.Columns))
	for i := range rest {
		rest[i] = i
	}
	first := true
	for len(rest) > 0 {
		columns, widths := fitting(t, rest, width, !first)
		if !first {
			b.WriteByte('\n')
		}
		layOut(&b, t, columns, widths)
		taken := len(columns)
		if !first {
			taken-- // the repeated first column
		}
		rest, first = rest[taken:], false
	}
	return b.String()
}

// fitting returns as many columns of rest as fit, at least one, and their widths. With repeat, the
// table's first column goes before them.
func fitting(t *document.Table, rest []int, width int, repeat bool) (columns, widths []int) {
	for n := len(rest); n > 0; n-- {
		columns = slices.Clone(rest[:n])
		if repeat {
			columns = slices.Insert(columns, 0, 0)
		}
		var ok bool
		if widths, ok = shrink(t, columns, width); ok {
			break
		}
	}
	return columns, widths
}

// shrink finds widths whose sum fits, by wrapping heads and words. It gives the least widths and
// false when there are none.
func shrink(t *document.Table, columns []int, width int) (widths []int, ok bool) {
	widths, least := make([]int, len(columns)), make([]int, len(columns))
	whole := make([]int, len(columns)) // without a word that is cut or sticks out
	total := gap * (len(columns) - 1)
	for i, c := range columns {
		widths[i], whole[i], least[i] = columnWidths(t, c)
		total += widths[i]
	}
	for _, least := range [][]int{whole, least} {
		for total > width {
			widest := -1
			for i := range widths {
				if widths[i] > least[i] && (widest < 0 || widths[i] > widths[widest]) {
					widest = i
				}
			}
			if widest < 0 {
				break
			}
			widths[widest]--
			total--
		}
	}
	return widths, total <= width
}

// columnWidths returns the width of a column with each cell on one line, with wrapping (heads wrap,
// and words, but not numbers), and with long words cut.
func columnWidths(t *document.Table, c int) (full, whole, least int) {
	head := t.Columns[c].Head()
	full, least = utf8.RuneCountInString(head), longestWord(head)
	for _, r := range t.Rows {
		n := utf8.RuneCountInString(r[c])
		full = max(full, n)
		if t.Columns[c].Align == document.Right {
			least = max(least, n)
		} else {
			least = max(least, longestWord(r[c]))
		}
	}
	// A column of words narrower than this is hard to read. Longer words are cut, or stick out.
	const readable, longest = 16, 32
	whole = least
	if t.Columns[c].Align == document.Left {
		whole = min(full, max(least, readable))
		least = min(full, max(min(least, longest), readable))
	}
	return full, whole, least
}

func longestWord(s string) (n int) {
	for word := range strings.FieldsSeq(s) {
		n = max(n, utf8.RuneCountInString(word))
	}
	return n
}

func layOut(b *strings.Builder, t *document.Table, columns, widths []int) {
	heads := make([]string, len(columns))
	rule := make([]string, len(columns))
	for i, c := range columns {
		heads[i] = t.Columns[c].Head()
		rule[i] = strings.Repeat("-", widths[i])
	}
	textRow(b, t, columns, widths, heads, true)
	textRow(b, t, columns, widths, rule, false)
	cells := make([]string, len(columns))
	for _, r := range t.Rows {
		for i, c := range columns {
			cells[i] = r[c]
		}
		textRow(b, t, columns, widths, cells, false)
	}
}

// textRow writes the cells of a row on as many lines as the longest needs. Heads stand at the
// bottom of their lines, next to the rule.
func textRow(b *strings.Builder, t *document.Table, columns, widths []int, cells []string,
	bottom bool) {
	lines := make([][]string, len(cells))
	height := 1
	for i, c := range cells {
		lines[i] = cut(wrap(c, widths[i], ""), widths[i], i == len(cells)-1)
		height = max(height, len(lines[i]))
	}
	for l := range height {
		var line strings.Builder
		for i := range cells {
			at := l
			if bottom {
				at = l - (height - len(lines[i]))
			}
			cell := ""
			if at >= 0 && at < len(lines[i]) {
				cell = lines[i][at]
			}
			if i > 0 {
				line.WriteString(strings.Repeat(" ", gap))
			}
			pad := strings.Repeat(" ", max(widths[i]-utf8.RuneCountInString(cell), 0))
			if t.Columns[columns[i]].Align == document.Right {
				line.WriteString(pad + cell)
			} else {
				line.WriteString(cell + pad)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}
