package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/klauspost/compress/zstd"
)

const (
	magic = "PAR1"
	// groupRows bounds the memory of a Writer.
	groupRows = 1 << 15
)

// ErrTable is wrapped by errors about rows that do not match the columns.
var ErrTable = errors.New("not a row of this table")

// Kind is the type of a column's values.
type Kind string

// The kinds, with the Go type that Row takes.
const (
	Bool  Kind = "bool"   // bool
	Int   Kind = "int"    // int64
	Float Kind = "double" // float64
	Text  Kind = "text"   // string, in UTF-8
)

// Column describes a column. A value of an optional column may be nil.
type Column struct {
	Name     string
	Kind     Kind
	Optional bool
}

// Entry is one pair of the file's metadata.
type Entry struct{ Key, Value string }

// Writer writes one file. It is not safe for concurrent use.
type Writer struct {
	out     io.Writer
	offset  int64
	columns []Column
	values  []column // values of the current group
	rows    int      // rows of the current group
	groups  []group
	packer  *zstd.Encoder
}

// column holds the values of one column in a group.
type column struct {
	data    []byte // encoded as in the file; booleans as bits
	bools   int
	present []byte // one bit per row, of an optional column
}

// NewWriter begins a file with these columns.
func NewWriter(out io.Writer, columns []Column) (*Writer, error) {
	seen := map[string]bool{}
	for _, c := range columns {
		switch c.Kind {
		case Bool, Int, Float, Text:
		default:
			return nil, fmt.Errorf("table: column %q: no kind %q: %w", c.Name, c.Kind, ErrTable)
		}
		if c.Name == "" || seen[c.Name] {
			return nil, fmt.Errorf("table: column %q: names must be given, and once each: %w",
				c.Name, ErrTable)
		}
		seen[c.Name] = true
	}
	if len(columns) == 0 {
		return nil, fmt.Errorf("table: no columns: %w", ErrTable)
	}
	// One goroutine, so that the same data give the same bytes.
	packer, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("table: %w", err)
	}
	w := &Writer{out: out, columns: columns, values: make([]column, len(columns)), packer: packer}
	return w, w.write([]byte(magic))
}

func (w *Writer) write(data []byte) error {
	n, err := w.out.Write(data)
	w.offset += int64(n)
	if err != nil {
		return fmt.Errorf("table: %w", err)
	}
	return nil
}

// Row appends a row, with one value per column.
func (w *Writer) Row(values ...any) error {
	if len(values) != len(w.columns) {
		return fmt.Errorf("table: %d values for %d columns: %w", len(values), len(w.columns),
			ErrTable)
	}
	for i, v := range values {
		if !w.columns[i].takes(v) {
			return fmt.Errorf("table: column %q: %v (%T) is not of kind %s: %w", w.columns[i].Name,
				v, v, w.columns[i].Kind, ErrTable)
		}
	}
	for i, v := range values {
		w.values[i].add(v, w.rows, w.columns[i].Optional)
	}
	if w.rows++; w.rows == groupRows {
		return w.flush()
	}
	return nil
}

// takes reports whether v is a value of a column.
func (c *Column) takes(v any) bool {
	switch v.(type) {
	case nil:
		return c.Optional
	case bool:
		return c.Kind == Bool
	case int64:
		return c.Kind == Int
	case float64:
		return c.Kind == Float
	case string:
		return c.Kind == Text
	}
	return false
}

// add appends the value of a row.
func (c *column) add(v any, row int, optional bool) {
	if optional {
		c.present = setBit(c.present, row, v != nil)
	}
	switch v := v.(type) {
	case bool:
		c.data = setBit(c.data, c.bools, v)
		c.bools++
	case int64:
		c.data = binary.LittleEndian.AppendUint64(c.data, uint64(v))
	case float64:
		c.data = binary.LittleEndian.AppendUint64(c.data, math.Float64bits(v))
	case string:
		c.data = append(binary.LittleEndian.AppendUint32(c.data, uint32(len(v))), v...)
	}
}

// setBit appends bit n; the lowest bit of a byte comes first.
func setBit(data []byte, n int, on bool) []byte {
	if n%8 == 0 {
		data = append(data, 0)
	}
	if on {
		data[n/8] |= 1 << (n % 8)
	}
	return data
}

// flush writes the group.
func (w *Writer) flush() error {
	g := group{rows: w.rows, pages: make([]page, len(w.columns))}
	for i := range w.values {
		c := &w.values[i]
		data := c.data
		if w.columns[i].Optional {
			data = append(levels(c.present), data...)
		}
		packed := w.packer.EncodeAll(data, nil)
		head := pageHeader(w.rows, len(data), len(packed))
		g.pages[i] = page{offset: w.offset, plain: int64(len(head) + len(data)),
			packed: int64(len(head) + len(packed))}
		if err := errors.Join(w.write(head), w.write(packed)); err != nil {
			return err
		}
		*c = column{data: c.data[:0], present: c.present[:0]}
	}
	w.groups, w.rows = append(w.groups, g), 0
	return nil
}

// levels returns the definition levels of an optional column, 1 for a value: their length in bytes,
// then one run of bits.
func levels(present []byte) []byte {
	run := append(binary.AppendUvarint(nil, uint64(len(present))<<1|1), present...)
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(run))), run...)
}

// Close writes the metadata and the footer. It does not close the underlying writer.
func (w *Writer) Close(metadata ...Entry) error {
	if w.rows > 0 {
		if err := w.flush(); err != nil {
			return err
		}
	}
	footer := w.footer(metadata)
	footer = binary.LittleEndian.AppendUint32(footer, uint32(len(footer)))
	return errors.Join(w.write(append(footer, magic...)), w.packer.Close())
}
