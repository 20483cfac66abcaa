package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Align is the alignment of a column.
type Align uint8

// The alignments: text is left, numbers are right.
const (
	Left Align = iota
	Right
)

// MarshalText writes "left" or "right".
func (a Align) MarshalText() ([]byte, error) {
	if a == Right {
		return []byte("right"), nil
	}
	return []byte("left"), nil
}

// UnmarshalText reads what MarshalText writes.
func (a *Align) UnmarshalText(text []byte) error {
	switch string(text) {
	case "left":
		*a = Left
	case "right":
		*a = Right
	default:
		return fmt.Errorf("report: alignment %q: want left or right", text)
	}
	return nil
}

// Column is the head of a column. All cells of a column have its unit, so that cells are plain
// numbers.
type Column struct {
	Name  string `json:"name"`
	Unit  string `json:"unit,omitempty"`
	Align Align  `json:"align"`
}

// Head returns the name with its unit: "latency (ms)".
func (c Column) Head() string {
	if c.Unit == "" {
		return c.Name
	}
	return c.Name + " (" + c.Unit + ")"
}

// Table is the one kind of table: reports, and every verb that lists something, write it in three
// forms.
type Table struct {
	Columns []Column   `json:"columns"`
	Rows    [][]string `json:"rows"`
}

// Add appends a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// check refuses rows that do not fit the columns.
func (t *Table) check() error {
	for i, r := range t.Rows {
		if len(r) != len(t.Columns) {
			return fmt.Errorf("row %d has %d cells for %d columns", i, len(r), len(t.Columns))
		}
	}
	return nil
}

func (t *Table) heads() []string {
	out := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		out[i] = c.Head()
	}
	return out
}

// Text writes the table for a terminal: columns padded to equal width and two spaces apart, a rule
// under the heads, no spaces at the end of lines. Control characters in cells are replaced, so that
// data cannot steer the terminal.
func (t *Table) Text(w io.Writer) error {
	if err := t.check(); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	rows := make([][]string, 0, len(t.Rows)+2)
	rows = append(rows, printables(t.heads()), nil)
	for _, r := range t.Rows {
		rows = append(rows, printables(r))
	}
	width := make([]int, len(t.Columns))
	for _, r := range rows {
		for i, c := range r {
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	rule := make([]string, len(width))
	for i, n := range width {
		rule[i] = strings.Repeat("-", n)
	}
	rows[1] = rule
	var b strings.Builder
	for _, r := range rows {
		b.WriteString(t.textLine(r, width))
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (t *Table) textLine(cells []string, width []int) string {
	var b strings.Builder
	for i, c := range cells {
		if i > 0 {
			b.WriteString("  ")
		}
		pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c))
		if t.Columns[i].Align == Right {
			b.WriteString(pad + c)
		} else {
			b.WriteString(c + pad)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// Markdown writes the table as GitHub's Markdown does. Cells are text: what would be markup is
// escaped.
func (t *Table) Markdown(w io.Writer) error {
	if err := t.check(); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	var b strings.Builder
	line := func(cells []string) {
		for _, c := range cells {
			b.WriteString("| " + mdEscape(c) + " ")
		}
		b.WriteString("|\n")
	}
	line(t.heads())
	for _, c := range t.Columns {
		if c.Align == Right {
			b.WriteString("| ---: ")
		} else {
			b.WriteString("| --- ")
		}
	}
	b.WriteString("|\n")
	for _, r := range t.Rows {
		line(r)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// CSV writes a line of heads in snake case, "latency_ms", and the cells as they are (RFC 4180
// quoting).
func (t *Table) CSV(w io.Writer) error {
	if err := t.check(); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	heads := t.heads()
	for i, h := range heads {
		heads[i] = snake(h)
	}
	c := csv.NewWriter(w)
	if err := c.Write(heads); err != nil {
		return err
	}
	return c.WriteAll(t.Rows)
}

// snake turns a head into a column name: "tokens/s" is tokens_per_s and "error (%)" is
// error_percent.
func snake(head string) string {
	head = strings.NewReplacer("%", "percent", "/", " per ").Replace(head)
	words := strings.FieldsFunc(head, func(r rune) bool {
		return !unicode.IsLetter(r) &&
			!unicode.IsDigit(r)
	})
	return strings.ToLower(strings.Join(words, "_"))
}

// printable replaces control characters and bidirectional overrides by a visible mark.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' ||
			r == '\u2029' {
			return '\uFFFD'
		}
		return r
	}, s)
}

func printables(in []string) []string {
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = printable(s)
	}
	return out
}

// mdEscape makes s plain text on one line of Markdown.
func mdEscape(s string) string {
	var b strings.Builder
	for _, r := range printable(s) {
		switch r {
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
