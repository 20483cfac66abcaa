package arrowfile

import (
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// Writer writes a table batch by batch. The same calls give the same bytes. After the first error every call returns
// that error: the library has paths on which a failed write is followed by a Close that succeeds.
type Writer struct {
	cols   []Column
	schema *arrow.Schema
	out    *ipc.FileWriter
	err    error
}

// NewWriter returns a Writer to w. Nothing is written before the first batch.
func NewWriter(w io.Writer, cols []Column, meta []Pair, codec Codec) (*Writer, error) {
	fields := make([]arrow.Field, len(cols))
	for i, c := range cols {
		if c.Width() <= 0 {
			return nil, fmt.Errorf("column %q has %d bytes per value", c.Name, c.Width())
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

// Write appends a batch: bufs[i] holds the rows values of column i. The buffers are free for reuse afterwards.
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
		if len(bufs[i]) != rows*c.Width() {
			return fmt.Errorf("column %q: %d bytes for %d rows of %d", c.Name, len(bufs[i]), rows, c.Width())
		}
		values := []*memory.Buffer{nil, memory.NewBufferBytes(bufs[i])}
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

// forwardOnly gives the library the Seek it wants from a stream: it only ever asks where it is.
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
