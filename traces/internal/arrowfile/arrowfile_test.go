package arrowfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/google/go-cmp/cmp"
)

func testColumns() []Column {
	return []Column{
		{Name: "a", Type: Uint8}, {Name: "b", Type: Uint16}, {Name: "c", Type: Uint32},
		{Name: "d", Type: Int64},
		{Name: "e", Type: Float32}, {Name: "f", Type: Fixed, Size: 16}, {Name: "g", Type: Binary,
			Size: 5},
	}
}

// testBuffers makes n rows of every column; byte i of a column is i·7 + salt, and row i of a binary
// column has i%6 bytes.
func testBuffers(n, salt int) [][]byte {
	var bufs [][]byte
	fill := func(size int) (b []byte) {
		for k := range size {
			b = append(b, byte(7*k+salt))
		}
		return b
	}
	for _, c := range testColumns() {
		if c.Type != Binary {
			bufs = append(bufs, fill(n*c.Width()))
			continue
		}
		offsets, end := make([]byte, 4), uint32(0)
		for i := range n {
			end += uint32(i % 6)
			offsets = binary.LittleEndian.AppendUint32(offsets, end)
		}
		bufs = append(bufs, offsets, fill(int(end)))
	}
	return bufs
}

// testBytes writes batches of the given numbers of rows.
func testBytes(tb testing.TB, codec Codec, rows ...int) []byte {
	tb.Helper()
	var out bytes.Buffer
	cols := testColumns()
	w, err := NewWriter(&out, cols, []Pair{{"k", "v"}, {"empty", ""}}, codec)
	if err != nil {
		tb.Fatal(err)
	}
	for b, n := range rows {
		if err := w.Write(n, testBuffers(n, b)); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	// as a mapping would be: 8-aligned, which a byte slice need not be
	data := aligned(out.Len())
	copy(data, out.Bytes())
	return data
}

// load parses, binds and loads everything: the bytes of each column, all batches after one another;
// of a binary column every value with its length before it.
func load(data []byte, cols []Column) ([][]byte, error) {
	f, err := Parse(data)
	if err != nil {
		return nil, err
	}
	if err := f.Bind(cols); err != nil {
		return nil, err
	}
	defer f.Close()
	all, part := make([][]byte, len(cols)), make([][]byte, 2*len(cols))
	for i := range f.Batches() {
		if err := f.Load(&f.Batches()[i], part); err != nil {
			return nil, err
		}
		at := 0
		for k, c := range cols {
			if c.Type != Binary {
				all[k] = append(all[k], part[at]...)
				at++
				continue
			}
			for row := range f.Batches()[i].Rows {
				v, ok := Value(part[at], part[at+1], row)
				if !ok {
					return nil, fmt.Errorf("value %d: %w", row, ErrFormat)
				}
				all[k] = append(append(all[k], byte(len(v))), v...)
			}
			at += 2
		}
	}
	return all, nil
}

// plain is load by the Arrow library: the twin that the block reader is compared with.
func plain(tb testing.TB, data []byte) [][]byte {
	tb.Helper()
	r, err := ipc.NewFileReader(bytes.NewReader(data))
	if err != nil {
		tb.Fatal(err)
	}
	defer r.Close()
	all := make([][]byte, len(testColumns()))
	for {
		rec, err := r.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			tb.Fatal(err)
		}
		for k, col := range rec.Columns() {
			all[k] = append(all[k], columnBytes(tb, col)...)
		}
	}
}

// columnBytes encodes a column value by value.
func columnBytes(tb testing.TB, col arrow.Array) []byte {
	tb.Helper()
	var b []byte
	for i := range col.Len() {
		switch c := col.(type) {
		case *array.Uint8:
			b = append(b, c.Value(i))
		case *array.Uint16:
			b = binary.LittleEndian.AppendUint16(b, c.Value(i))
		case *array.Uint32:
			b = binary.LittleEndian.AppendUint32(b, c.Value(i))
		case *array.Int64:
			b = binary.LittleEndian.AppendUint64(b, uint64(c.Value(i)))
		case *array.Float32:
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(c.Value(i)))
		case *array.FixedSizeBinary:
			b = append(b, c.Value(i)...)
		case *array.Binary:
			b = append(append(b, byte(len(c.Value(i)))), c.Value(i)...)
		default:
			tb.Fatalf("column of type %T", col)
		}
	}
	return b
}

func TestReaderAgreesWithLibrary(t *testing.T) {
	for _, codec := range []Codec{None, Zstd} {
		for _, rows := range [][]int{{1}, {5, 3}, {64, 1, 63, 65}, {1000}, {0, 2, 0}} {
			data := testBytes(t, codec, rows...)
			got, err := load(data, testColumns())
			if err != nil {
				t.Fatalf("%s %v: %v", codec, rows, err)
			}
			if d := cmp.Diff(plain(t, data), got); d != "" {
				t.Errorf("%s %v (-library +ours):\n%s", codec, rows, d)
			}
		}
	}
}

func TestBindByName(t *testing.T) {
	data := testBytes(t, None, 9)
	cols := testColumns()
	got, err := load(data, []Column{cols[5], cols[1]})
	if err != nil {
		t.Fatal(err)
	}
	want := plain(t, data)
	if d := cmp.Diff([][]byte{want[5], want[1]}, got); d != "" {
		t.Error(d)
	}
}

func TestMeta(t *testing.T) {
	f, err := Parse(testBytes(t, None, 1))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"k": "v", "empty": ""} {
		if got, ok := f.Meta(key); !ok || string(got) != want {
			t.Errorf("%s: %q, %t", key, got, ok)
		}
	}
	if _, ok := f.Meta("none"); ok {
		t.Error("a key that is not there was found")
	}
	if !f.Has("c") || f.Has("h") {
		t.Error("Has")
	}
}

func TestLoadDoesNotCopy(t *testing.T) {
	data := testBytes(t, None, 100)
	f, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Bind(testColumns()); err != nil {
		t.Fatal(err)
	}
	cols := make([][]byte, len(testColumns())+1)
	if n := testing.AllocsPerRun(10, func() {
		if err := f.Load(&f.Batches()[0], cols); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	lo := uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	for i, c := range cols {
		if p := uintptr(unsafe.Pointer(unsafe.SliceData(c))); p < lo ||
			p+uintptr(len(c)) > lo+uintptr(len(data)) {
			t.Errorf("column %d is not a slice of the file", i)
		}
	}
}

// place finds where in the file the parts are that the crashers change.
type place struct {
	footer int // position of the footer
	blocks int // position of the first block in the file
	rows   int // position of the row count of the first batch
	buffer int // position of the first entry of the buffer list of the first batch
	fields int // position of the vector of columns
	codecs int // position of the first compressed buffer
	// position of the entries of the offsets and the values of the binary column in the buffer list
	binary int
}

func places(t *testing.T, data []byte) place {
	t.Helper()
	f, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	foot, err := f.findFooter()
	if err != nil {
		t.Fatal(err)
	}
	var p place
	p.footer = foot
	blocks, _ := f.foot.root().vector(3, 24)
	p.blocks = foot + blocks
	fields, _ := f.schema.vector(1, 4)
	p.fields = foot + fields
	b := f.blocks[0]
	msg := flat{b: data[b.offset+8 : b.offset+b.meta]}
	rec, _ := msg.root().sub(2)
	rows, _ := rec.slot(0, 8)
	bufs, _ := rec.vector(2, 16)
	p.rows = int(b.offset) + 8 + rows
	p.buffer = int(b.offset) + 8 + bufs
	p.codecs = int(b.offset + b.meta)
	p.binary = p.buffer + 16*(f.fields[6].buffer+1)
	return p
}

// The crashers: each is a change of a few bytes that makes a reader without checks panic, read
// outside the file, loop, or allocate what the file asks for.
func TestField_A1_Crashers(t *testing.T) {
	u32 := func(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }
	i64 := func(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }
	cases := []struct {
		name, want string
		codec      Codec
		at         func(place) int
		put        []byte
	}{
		{"root beyond the footer", "metadata points to", None, func(p place) int {
			return p.footer
		}, u32(1 << 20)},
		{"root beyond 2 GiB", "metadata points to", None, func(p place) int { return p.footer },
			u32(1 << 31)},
		{"root is no table", "", None, func(p place) int { return p.footer }, u32(0)},
		{"a billion columns", "metadata points to", None, func(p place) int { return p.fields - 4 },
			u32(1 << 30)},
		{"4294967295 columns", "metadata points to", None, func(p place) int {
			return p.fields -
				4
		}, u32(math.MaxUint32)},
		{"column before the footer", "metadata points to", None, func(p place) int {
			return p.fields
		}, u32(math.MaxUint32)},
		{"a billion batches", "metadata points to", None, func(p place) int { return p.blocks - 4 },
			u32(1 << 30)},
		{"block before the file", "batch 0: a block at -8+", None, func(p place) int {
			return p.blocks
		}, i64(-8)},
		{"block beyond the file", "batch 0: a block at", None, func(p place) int {
			return p.blocks
		}, i64(math.MaxInt64)},
		{"block not aligned", "batch 0: a block at", None, func(p place) int { return p.blocks },
			i64(12)},
		{"negative message", "batch 0: a block at", None, func(p place) int { return p.blocks + 8 },
			u32(math.MaxUint32 - 7)},
		{"huge message", "batch 0: a block at", None, func(p place) int { return p.blocks + 8 },
			u32(math.MaxInt32 - 7)},
		{"negative body", "batch 0: a block at", None, func(p place) int { return p.blocks + 16 },
			i64(-64)},
		{"body that overflows", "batch 0: a block at", None, func(p place) int {
			return p.blocks +
				16
		}, i64(math.MaxInt64)},
		{"same batch twice", "batch 1: a block at", None, func(p place) int {
			return p.blocks +
				24
		}, i64(8)},
		{"negative rows", "rows of -1", None, func(p place) int { return p.rows }, i64(-1)},
		{"a quintillion rows", "rows of", None, func(p place) int { return p.rows }, i64(1 << 60)},
		{"buffer before the body", "bytes -8+", None, func(p place) int { return p.buffer + 16 },
			i64(-8)},
		{"buffer beyond the body", "of a body of", None, func(p place) int { return p.buffer + 16 },
			i64(1 << 40)},
		{"buffer too long", "of a body of", None, func(p place) int { return p.buffer + 24 },
			i64(math.MaxInt64)},
		{"buffer too short", "1 bytes, need 5", None, func(p place) int { return p.buffer + 24 },
			i64(1)},
		{"buffer not aligned", "or unaligned", None, func(p place) int { return p.buffer + 16 },
			i64(1)},
		{"offsets too short", "bytes, need 24 for 5 rows", None, func(p place) int {
			return p.binary + 8
		}, i64(20)},
		{"offsets not aligned", "or unaligned", None, func(p place) int { return p.binary },
			i64(4)},
		{"values beyond the body", "of a body of", None, func(p place) int { return p.binary + 16 },
			i64(1 << 40)},
		{"values too short", "value 4", None, func(p place) int { return p.binary + 24 }, i64(8)},
		{"values too long", "of a body of", None, func(p place) int { return p.binary + 24 },
			i64(math.MaxInt64)},
		{"bomb", "bytes when decompressed", Zstd, func(p place) int { return p.codecs },
			i64(1 << 50)},
		{"negative size", "bytes when decompressed", Zstd, func(p place) int { return p.codecs },
			i64(-2)},
		{"not zstd", "zstd:", Zstd, func(p place) int { return p.codecs + 8 }, u32(0)},
	}
	for _, c := range cases {
		data := testBytes(t, c.codec, 5, 3)
		copy(data[c.at(places(t, data)):], c.put)
		_, err := load(data, testColumns())
		if !errors.Is(err, ErrFormat) && !errors.Is(err, ErrUnsupported) ||
			!strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: want an error with %q, got %v", c.name, c.want, err)
		}
	}
}

// A schema in which few bytes describe very many fields, since all children of a level are the same
// table.
func TestField_A1_SchemaBombIsRefused(t *testing.T) {
	leaf := arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Uint8}
	deep := leaf
	for range maxDepth + 2 {
		deep = arrow.Field{Name: "x", Type: arrow.ListOfNonNullable(deep.Type)}
	}
	wide := make([]arrow.Field, maxFields+1)
	for i := range wide {
		wide[i] = leaf
	}
	for name, schema := range map[string]*arrow.Schema{
		"deep": arrow.NewSchema([]arrow.Field{deep}, nil),
		"wide": arrow.NewSchema(wide, nil),
	} {
		var out bytes.Buffer
		w, err := ipc.NewFileWriter(&forwardOnly{w: &out}, ipc.WithSchema(schema))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(out.Bytes()); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: want ErrUnsupported, got %v", name, err)
		}
	}
}

// A2: after a failed write, neither another Write nor Close succeeds.
func TestField_A2_ErrorsStick(t *testing.T) {
	full := errors.New("full")
	for room := range 40 {
		w, err := NewWriter(&limitedWriter{room: room * 20, err: full}, testColumns(), nil, None)
		if err != nil {
			t.Fatal(err)
		}
		bufs := testBuffers(1, 0)
		_ = w.Write(1, bufs)
		_ = w.Write(1, bufs)
		if err := w.Close(); !errors.Is(err, full) {
			t.Errorf("room %d: %v", room, err)
		}
		if err := w.Close(); !errors.Is(err, full) {
			t.Errorf("room %d, second Close: %v", room, err)
		}
	}
	w, err := NewWriter(io.Discard, testColumns(), nil, None)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(2, make([][]byte, len(testColumns()))); err == nil {
		t.Error("two rows without values: no error")
	}
}

func TestWriteRefusesBuffersThatDoNotFit(t *testing.T) {
	for want, edit := range map[string]func([][]byte) [][]byte{
		"no values":                     func(b [][]byte) [][]byte { return b[:6] },
		"8 bytes of offsets for 2 rows": func(b [][]byte) [][]byte { b[6] = b[6][:8]; return b },
		"offsets that end at 1":         func(b [][]byte) [][]byte { b[7] = b[7][:0]; return b },
	} {
		w, err := NewWriter(io.Discard, testColumns(), nil, None)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(2, edit(testBuffers(2, 0))); err == nil || !strings.Contains(err.Error(),
			want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
	if _, err := NewWriter(io.Discard, []Column{{Name: "x", Type: Binary}}, nil, None); err == nil {
		t.Error("a binary column without a most: no error")
	}
}

// Values of a binary column are bounded by what its rows can hold, so that a small compressed file
// cannot ask for memory.
func TestField_A1_BinaryBomb(t *testing.T) {
	data := testBytes(t, Zstd, 5)
	p := places(t, data)
	f, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	values := int(f.blocks[0].offset+f.blocks[0].meta) +
		int(binary.LittleEndian.Uint64(data[p.binary+16:]))
	for _, size := range []int64{5*5 + 65, 1 << 40, -2} {
		binary.LittleEndian.PutUint64(data[values:], uint64(size))
		if _, err := load(data, testColumns()); !errors.Is(err, ErrFormat) ||
			!strings.Contains(err.Error(), "when decompressed") {
			t.Errorf("%d bytes of values for 5 rows of at most 5: %v", size, err)
		}
	}
}

type limitedWriter struct {
	room int
	err  error
}

func (l *limitedWriter) Write(b []byte) (int, error) {
	if len(b) > l.room {
		return 0, l.err
	}
	l.room -= len(b)
	return len(b), nil
}

// FuzzParse: whatever the bytes, there is an error with a kind or a table; and when the file is one
// that the writer made, the table is what the library reads.
func FuzzParse(f *testing.F) {
	for _, codec := range []Codec{None, Zstd} {
		f.Add(testBytes(f, codec, 3))
		f.Add(testBytes(f, codec, 5, 0, 3))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		data := aligned(len(b))
		copy(data, b)
		if _, err := load(data, testColumns()); err != nil && !errors.Is(err, ErrFormat) &&
			!errors.Is(err, ErrUnsupported) {
			t.Fatalf("error without a kind: %v", err)
		}
	})
}

// BenchmarkLoad measures opening a file of 64 batches and visiting its columns.
func BenchmarkLoad(b *testing.B) {
	rows := make([]int, 64)
	for i := range rows {
		rows[i] = 1000
	}
	data := testBytes(b, None, rows...)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		f, err := Parse(data)
		if err != nil {
			b.Fatal(err)
		}
		if err := f.Bind(testColumns()); err != nil {
			b.Fatal(err)
		}
		f.Close()
	}
}
