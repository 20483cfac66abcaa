package document

import "fmt"

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
		return fmt.Errorf("document: alignment %q: want left or right", text)
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

// Text returns a column of words.
func Text(name string) Column { return Column{Name: name} }

// Number returns a column of numbers in a unit; "" has none.
func Number(name, unit string) Column { return Column{Name: name, Unit: unit, Align: Right} }

// Head returns the name with its unit: "latency (ms)".
func (c Column) Head() string {
	if c.Unit == "" {
		return c.Name
	}
	return c.Name + " (" + c.Unit + ")"
}

// Table is columns and rows of cells.
type Table struct {
	Columns []Column   `json:"columns"`
	Rows    [][]string `json:"rows"`
}

// NewTable returns an empty table.
func NewTable(columns ...Column) *Table { return &Table{Columns: columns} }

// Add appends a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Check refuses rows that do not fit the columns.
func (t *Table) Check() error {
	for i, r := range t.Rows {
		if len(r) != len(t.Columns) {
			return fmt.Errorf("row %d has %d cells for %d columns", i, len(r), len(t.Columns))
		}
	}
	return nil
}

// Heads returns the heads of the columns.
func (t *Table) Heads() []string {
	out := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		out[i] = c.Head()
	}
	return out
}
