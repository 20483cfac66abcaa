package traces

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// foreign describes an Arrow file written by the library with changes to our schema.
type foreign struct {
	fields func([]arrow.Field) []arrow.Field
	head   func(*Header)
	meta   func(map[string]string)
	empty  bool // no batches
	opts   []ipc.Option
	edit   func(rec map[string][]any) // values by column, one per row
}

// writeForeign writes one token of the test model that way and returns the path. Values follow the
// type of the field.
func writeForeign(t *testing.T, f foreign) string {
	t.Helper()
	h := testHeader(false)
	if f.head != nil {
		f.head(&h)
	}
	u32 := arrow.PrimitiveTypes.Uint32
	fields := []arrow.Field{
		{Name: "seq", Type: u32}, {Name: "pos", Type: u32}, {Name: "phase",
			Type: arrow.PrimitiveTypes.Uint8},
		{Name: "token", Type: u32}, {Name: "layer", Type: arrow.PrimitiveTypes.Uint16},
		{Name: "active", Type: &arrow.FixedSizeBinaryType{ByteWidth: 24}},
	}
	if f.fields != nil {
		fields = f.fields(fields)
	}
	pairs, err := headerMeta(&h)
	if err != nil {
		t.Fatal(err)
	}
	meta := map[string]string{}
	for _, p := range pairs {
		meta[p.Key] = p.Value
	}
	if f.meta != nil {
		f.meta(meta)
	}
	md := arrow.MetadataFrom(meta)
	schema := arrow.NewSchema(fields, &md)
	path := filepath.Join(t.TempDir(), "foreign.trace.arrow")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := ipc.NewFileWriter(file, append(f.opts, ipc.WithSchema(schema))...)
	if err != nil {
		t.Fatal(err)
	}
	if !f.empty {
		rec := foreignRecord(t, schema, f.edit)
		if err := w.Write(rec); err != nil {
			t.Fatal(err)
		}
		rec.Release()
	}
	if err := errors.Join(w.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

func foreignRecord(t *testing.T, schema *arrow.Schema, edit func(map[string][]any)) arrow.Record {
	t.Helper()
	values := map[string][]any{}
	for l := range 3 {
		for k, v := range map[string]any{"seq": 0, "pos": 0, "phase": 1, "token": 7, "layer": l} {
			values[k] = append(values[k], v)
		}
		values["active"] = append(values["active"], make([]byte, 24))
	}
	if edit != nil {
		edit(values)
	}
	b := array.NewRecordBuilder(memory.NewGoAllocator(), schema)
	defer b.Release()
	for i, fd := range schema.Fields() {
		for row := range 3 {
			v := any(0)
			if col := values[fd.Name]; col != nil {
				v = col[row]
			}
			appendValue(t, b.Field(i), v)
		}
	}
	return b.NewRecord()
}

func appendValue(t *testing.T, b array.Builder, v any) {
	t.Helper()
	switch b := b.(type) {
	case *array.FixedSizeBinaryBuilder:
		if raw, ok := v.([]byte); ok {
			b.Append(raw[:b.Type().(*arrow.FixedSizeBinaryType).ByteWidth])
			return
		}
		b.AppendNull()
	case *array.BinaryBuilder:
		if raw, ok := v.([]byte); ok {
			b.Append(raw)
			return
		}
		if v == nil {
			b.AppendNull()
			return
		}
		b.Append([]byte("x"))
	case *array.ListBuilder:
		b.Append(true)
		appendValue(t, b.ValueBuilder(), 3)
	default:
		if v == nil {
			b.AppendNull()
			return
		}
		if err := b.AppendValueFromString(fmt.Sprint(v)); err != nil {
			t.Fatal(err)
		}
	}
}

// rebatch rewrites a file with the library, with other batches and some empty ones.
func rebatch(t *testing.T, path string, rows int) string {
	t.Helper()
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	r, err := ipc.NewFileReader(in)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "cut.trace.arrow")
	f, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	w, err := ipc.NewFileWriter(f, ipc.WithSchema(r.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	for {
		rec, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for from := int64(0); from < rec.NumRows(); from += int64(rows) {
			parts := []arrow.Record{rec.NewSlice(from, min(from+int64(rows), rec.NumRows()))}
			// of a binary column, the library cannot write an empty slice
			if !r.Schema().HasField("magnitude") {
				parts = append(parts, rec.NewSlice(from, from))
			}
			for _, part := range parts {
				if err := w.Write(part); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return out
}
