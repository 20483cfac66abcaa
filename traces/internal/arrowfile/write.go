package arrowfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// Writer writes a table batch by batch. The same calls give the same bytes. After the first error
// every call returns that error: in the library, a Close after a failed write may succeed.
type Writer struct {
	cols   []Column
	schema *arrow.Schema
	out    *ipc.FileWriter
	err    error
}

// NewWriter returns a Writer to w. It writes nothing before the first batch.
func NewWriter(w io.Writer, cols []Column, meta []Pair, codec Codec) (*Writer, error) {
	fields := make([]arrow.Field, len(cols))
	for i, c := range cols {
		if c.Width() <= 0 || c.Type == Binary && c.Size <= 0 {
			return nil, fmt.Errorf("column %q has %d bytes per value", c.Name, min(c.Width(),
				c.Size))
		}
		fields[i] = arrow.Field{Name: c.Name, Type: c.arrowType()}
	}
	keys, values := make([]string, len(meta)), make([]string, len(meta))
	for i, p := range meta {
		keys[i], values[i] = p.Key, p.Value
	}
	md := arrow.NewMetadata(keys, values)
	schema := arrow.NewSchema(fields, &md)
	opts := []ipc.Option{ipc.WithSchema(schema), ipc.WithAllocator(memory.NewGoAllocator())}
	if codec == Zstd {
		opts = append(opts, ipc.WithZstd())
	}
	out, err := ipc.NewFileWriter(&forwardOnly{w: w}, opts...)
	if err != nil {
		return nil, err
	}
	return &Writer{cols: cols, schema: schema, out: out}, nil
}

// Write appends a batch of rows. bufs holds the buffers of each column in order (see
// Column.Buffers). The caller may reuse them afterwards.
func (w *Writer) Write(rows int, bufs [][]byte) error {
	if w.err == nil {
		w.err = w.write(rows, bufs)
	}
	return w.err
}

func (w *Writer) write(rows int, bufs [][]byte) (err error) {
	defer recovered(&err)
	arrs := make([]arrow.Array, len(w.cols))
	for i, c := range w.cols {
		if len(bufs) < c.Buffers() {
			return fmt.Errorf("column %q: no values", c.Name)
		}
		values, err := c.values(rows, bufs[:c.Buffers()])
		if err != nil {
			return fmt.Errorf("column %q: %w", c.Name, err)
		}
		bufs = bufs[c.Buffers():]
		data := array.NewData(c.arrowType(), rows, values, nil, 0, 0)
		arrs[i] = array.MakeFromData(data)
		data.Release()
	}
	rec := array.NewRecord(w.schema, arrs, int64(rows))
	defer rec.Release()
	for _, a := range arrs {
		a.Release()
	}
	return w.out.Write(rec)
}

// values checks the buffers of a column with the given number of rows and returns them as Arrow
// buffers, without a validity bitmap.
func (c Column) values(rows int, bufs [][]byte) ([]*memory.Buffer, error) {
	if c.Type != Binary {
		if len(bufs[0]) != rows*c.Width() {
			return nil, fmt.Errorf("%d bytes for %d rows of %d", len(bufs[0]), rows, c.Width())
		}
		return []*memory.Buffer{nil, memory.NewBufferBytes(bufs[0])}, nil
	}
	if len(bufs[0]) != (rows+1)*offsetWidth {
		return nil, fmt.Errorf("%d bytes of offsets for %d rows", len(bufs[0]), rows)
	}
	if last := binary.LittleEndian.Uint32(bufs[0][rows*offsetWidth:]); int(last) != len(bufs[1]) {
		return nil, fmt.Errorf("offsets that end at %d for %d bytes", last, len(bufs[1]))
	}
	return []*memory.Buffer{nil, memory.NewBufferBytes(bufs[0]), memory.NewBufferBytes(bufs[1])},
		nil
}

// Close writes the footer. It does not close the underlying writer.
func (w *Writer) Close() error {
	if w.err == nil {
		w.err = func() (err error) {
			defer recovered(&err)
			return w.out.Close()
		}()
		if w.err == nil {
			w.err = errors.New("the file is already complete")
			return nil
		}
	}
	return w.err
}

// recovered turns a panic of the Arrow library into an error.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the Arrow library failed: %v", p)
	}
}

// forwardOnly gives the library the Seek that it wants. The library only asks for the current
// position.
type forwardOnly struct {
	w   io.Writer
	pos int64
	err error
}

func (f *forwardOnly) Write(p []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	n, err := f.w.Write(p)
	f.pos += int64(n)
	f.err = err
	return n, err
}

func (f *forwardOnly) Seek(offset int64, whence int) (int64, error) {
	if offset != 0 || whence != io.SeekCurrent {
		return 0, errors.New("seek in a forward-only file")
	}
	return f.pos, f.err
}
