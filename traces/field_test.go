package traces

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/google/go-cmp/cmp"

	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/output"
	"github.com/windrow-sim/windrow/internal/output/outputtest"
	"github.com/windrow-sim/windrow/internal/rng"
)

// readAll opens a file without its hash and reads all tokens.
func readAll(path string) error {
	r, err := OpenWith(context.Background(), path, OpenOptions{SkipHash: true})
	if err != nil {
		return err
	}
	var tok Token
	for i := range r.Tokens() {
		if err := r.Token(i, &tok); err != nil {
			return errors.Join(err, r.Close())
		}
	}
	return r.Close()
}

// A1: small mutations of a file made the Arrow reader panic or run out of memory. Ours gives a kind
// of error, or reads the file when only values changed.
func TestField_A1_MutatedFilesAreErrors(t *testing.T) {
	for _, compress := range []string{"none", "zstd"} {
		good, err := os.ReadFile(save(t, every(2), WriteOptions{Compress: compress}))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "m.trace.arrow")
		g := rng.Stream(1, "a1")
		refused := 0
		for range 150 {
			b := slices.Clone(good)
			for range 1 + g.IntN(3) {
				b[g.IntN(len(b))] = byte(g.Uint64())
			}
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := readAll(path); err != nil {
				refused++
				if !errors.Is(err, ErrFormat) && !errors.Is(err, ErrUnsupported) {
					t.Fatalf("error without a kind: %v", err)
				}
			}
		}
		// Most of the bytes of a small file are metadata or masks with spare bits; a reader that
		// accepts nearly everything does not look.
		if refused < 15 {
			t.Errorf("%s: only %d of 150 mutations were refused", compress, refused)
		}
	}
}

// A1: a file without a checksum is never reported as verified; one with a checksum does not open
// after any change.
func TestField_A1_ChecksumFindsEveryMutation(t *testing.T) {
	path := save(t, testTrace(3, false), WriteOptions{})
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	g := rng.Stream(2, "a1")
	for range 100 {
		b := slices.Clone(good)
		b[g.IntN(len(b))] ^= 1 << g.IntN(8)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), path); !errors.Is(err, ErrFormat) {
			t.Fatalf("a changed file opened: %v", err)
		}
	}
	if err := errors.Join(os.WriteFile(path, good, 0o600),
		os.Remove(ManifestPath(path))); err != nil {
		t.Fatal(err)
	}
	if r := open(t, path); r.Verified() || len(r.Warnings()) != 1 ||
		!strings.HasPrefix(r.Warnings()[0], "unverified") {
		t.Errorf("verified %t, warnings %q", r.Verified(), r.Warnings())
	}
}

func FuzzOpen(f *testing.F) {
	for _, opt := range []WriteOptions{{}, {Compress: "zstd"}, {BatchBytes: 1}} {
		b, err := os.ReadFile(save(f, testTrace(2, true), opt))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)/2])
		sized, err := os.ReadFile(save(f, withMagnitudes(testTrace(2, opt.BatchBytes == 1)), opt))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(sized)
		full, err := os.ReadFile(save(f, every(2), opt))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(full)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "f.trace.arrow")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := readAll(path); err != nil && !errors.Is(err, ErrFormat) &&
			!errors.Is(err, ErrUnsupported) {
			t.Fatalf("error without a kind: %v", err)
		}
	})
}

// A2: after a failed write, the Arrow library's Close can return nil and leave a file that looks
// whole. Wherever the disk fills up, there must be an error and no file.
func TestField_A2_FailedWriteLeavesNothing(t *testing.T) {
	src := testTrace(9, true)
	whole := int64(0)
	written := save(t, src, WriteOptions{BatchBytes: 700})
	for _, name := range []string{written, ManifestPath(written)} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		whole += info.Size()
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "x.trace.arrow")
	for room := int64(0); room < whole; room += 331 {
		for _, interrupt := range []bool{false, true} {
			disk := &outputtest.Full{Room: room, Err: syscall.ENOSPC}
			if err := recordOn(disk, path, src, interrupt); !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("room %d: want ENOSPC, got %v", room, err)
			}
			if left := names(t, dir); len(left) != 0 {
				t.Fatalf("room %d: left %q", room, left)
			}
		}
	}
	empty := func() {
		for _, name := range names(t, dir) {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, interrupt := range []bool{false, true} {
		outputtest.Each(t, syscall.EIO, func() error {
			return recordOn(nil, path, src, interrupt)
		}, func(fired string, err error) {
			left := names(t, dir)
			// A trace whose manifest could not be written is whole, and read without it.
			if len(left) == 1 && strings.HasSuffix(left[0], traceExt) {
				err = errors.Join(err, readAll(filepath.Join(dir, left[0])))
				left = nil
			}
			if len(left) == 2 && strings.Contains(fired, "sync "+filepath.Base(dir)) {
				left = nil // only the folder's sync failed
			}
			if !errors.Is(err, syscall.EIO) || len(left) != 0 {
				t.Errorf("%s: %v, left %q", fired, err, left)
			}
			empty()
		})
		empty()
	}
	disk := &outputtest.Full{Room: whole, Err: syscall.ENOSPC}
	if err := recordOn(disk, path, src, false); err != nil {
		t.Errorf("a disk with just enough room: %v", err)
	}
}

// recordOn writes a trace to a disk as a caller that drops the errors of Append: it must still not
// get a file.
func recordOn(disk output.FS, path string, src *Memory, interrupt bool) error {
	if disk != nil {
		defer output.Use(disk)()
	}
	w, err := Create(path, src.Head, WriteOptions{BatchBytes: 700})
	if err != nil {
		return err
	}
	for i := range src.List {
		_ = w.Append(&src.List[i])
	}
	if interrupt {
		_, err = w.Interrupt()
		return err
	}
	return w.Close()
}

// A2: an earlier trace of the same name survives a failed recording.
func TestField_A2_OldTraceSurvives(t *testing.T) {
	src := testTrace(9, false)
	path := save(t, src, WriteOptions{})
	defer output.Use(&outputtest.Full{Room: 10, Err: syscall.ENOSPC})()
	w, err := Create(path, src.Head, WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Append(&src.List[0]); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err == nil {
		t.Fatal("no error from a full disk")
	}
	equal(t, "tokens", src.List, collect(t, open(t, path)))
}

// A4: LZ4 bodies are refused by common readers: ours are uncompressed by default, zstd on request,
// and a foreign LZ4 file is refused by name.
func TestField_A4_LZ4IsRefused(t *testing.T) {
	path := writeForeign(t, foreign{opts: []ipc.Option{ipc.WithLZ4()}})
	if err := readAll(path); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(),
		"LZ4") {
		t.Errorf("want ErrUnsupported naming LZ4, got %v", err)
	}
	if r := open(t, save(t, testTrace(2, false), WriteOptions{})); r.Compress() != "none" {
		t.Errorf("the default is %s, want none", r.Compress())
	}
}

// A6: readers leaked per batch. Reading thousands of batches must not make the heap grow.
func TestField_A6_BoundedMemoryOverManyBatches(t *testing.T) {
	const limit = 1 << 20
	src := testTrace(5000, false)
	path := save(t, src, WriteOptions{BatchBytes: 1})
	src = nil
	r := open(t, path)
	if r.Batches() != 5000 {
		t.Fatalf("%d batches, want 5000", r.Batches())
	}
	var tok Token
	before := heap()
	for i := range r.Tokens() {
		if err := r.Token(i, &tok); err != nil {
			t.Fatal(err)
		}
	}
	if grown := heap() - before; grown > limit {
		t.Errorf("the heap grew by %d bytes over 5000 mapped batches", grown)
	}

	z := open(t, save(t, testTrace(300, false), WriteOptions{Compress: "zstd", BatchBytes: 1}))
	if err := z.Token(0, &tok); err != nil {
		t.Fatal(err)
	}
	before = heap()
	for range 5 {
		for i := range z.Tokens() {
			if err := z.Token(i, &tok); err != nil {
				t.Fatal(err)
			}
		}
	}
	if grown := heap() - before; grown > limit {
		t.Errorf("the heap grew by %d bytes over 1500 decompressed batches", grown)
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func replace(name string, f arrow.Field) func([]arrow.Field) []arrow.Field {
	return func(in []arrow.Field) []arrow.Field {
		for i := range in {
			if in[i].Name == name {
				in[i] = f
			}
		}
		return in
	}
}

// N44: columns that may be null and are not, as pandas, Polars and DuckDB write them, are read as
// the others are, compressed or not. A null among the values is refused with its column.
func TestField_N44_NullableWithoutNulls(t *testing.T) {
	nullable := func(in []arrow.Field) []arrow.Field {
		for i := range in {
			in[i].Nullable = true
		}
		return in
	}
	for name, opts := range map[string][]ipc.Option{"plain": nil, "zstd": {ipc.WithZstd()}} {
		var read [2]Token
		for i, f := range []foreign{{opts: opts}, {opts: opts, fields: nullable}} {
			r, err := Open(t.Context(), writeForeign(t, f))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if err := r.Token(0, &read[i]); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			r.Close()
		}
		if d := cmp.Diff(read[0], read[1]); d != "" {
			t.Errorf("%s (-not null +nullable):\n%s", name, d)
		}
		for column := range 6 {
			name := []string{"seq", "pos", "phase", "token", "layer", "active"}[column]
			err := readAll(writeForeign(t, foreign{opts: opts, fields: nullable,
				edit: func(v map[string][]any) { v[name][2] = nil }}))
			if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(),
				fmt.Sprintf("column %q has 3 rows of 3 and 1 nulls", name)) {
				t.Errorf("a null in %s: %v", name, err)
			}
		}
	}
}

// A8: files with a wrong schema. Each error names the column and what it must be.
func TestField_A8_WrongSchemas(t *testing.T) {
	i32, i64 := arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64
	cases := map[string]struct {
		f    foreign
		kind error
		want string
	}{
		"missing column": {foreign{fields: func(in []arrow.Field) []arrow.Field { return in[1:] }},
			ErrFormat, `column "seq" (uint32) is missing`},
		"renamed column": {foreign{fields: replace("token", arrow.Field{Name: "token_id",
			Type: arrow.PrimitiveTypes.Uint32})},
			ErrFormat, `column "token" (uint32) is missing`},
		"signed": {foreign{fields: replace("pos", arrow.Field{Name: "pos", Type: i32})},
			ErrFormat, `column "pos" has type int32, need uint32`},
		"wider": {foreign{fields: replace("layer", arrow.Field{Name: "layer", Type: i64})},
			ErrFormat, `column "layer" has type int64, need uint16`},
		"timestamp": {foreign{fields: replace("pos", arrow.Field{Name: "pos",
			Type: arrow.FixedWidthTypes.Timestamp_ns}),
			edit: func(v map[string][]any) {
				v["pos"] = []any{"2024-01-01", "2024-01-01",
					"2024-01-01"}
			}},
			ErrFormat, `column "pos" has type timestamp, need uint32`},
		"mask width": {foreign{fields: replace("active", arrow.Field{Name: "active",
			Type: &arrow.FixedSizeBinaryType{ByteWidth: 16}})},
			ErrFormat,
			`column "active" has type fixed_size_binary[16], need fixed_size_binary[24]`},
		"nulls": {foreign{edit: func(v map[string][]any) { v["seq"][1] = nil }},
			ErrFormat, `column "seq" has 3 rows of 3 and 1 nulls`},
		"twice": {foreign{fields: func(in []arrow.Field) []arrow.Field {
			return append(in,
				in[0])
		}},
			ErrFormat, `column "seq" is there 2 times`},
		"predicted promised": {foreign{head: func(h *Header) { h.HasPredicted = true }},
			ErrFormat, `column "predicted" (fixed_size_binary[24]) is missing`},
		"predicted denied": {foreign{fields: func(in []arrow.Field) []arrow.Field {
			return append(in, arrow.Field{Name: "predicted", Type: in[5].Type})
		}}, ErrFormat, `column "predicted" but the header says has_predicted false`},
		"no batches": {foreign{empty: true}, ErrFormat, "no rows"},
		"newer major": {foreign{head: func(h *Header) { h.SchemaVersion = "2.0" }},
			ErrUnsupported, "schema_version 2.0, this program reads 1.x"},
		"no version": {foreign{head: func(h *Header) { h.SchemaVersion = "" }}, ErrFormat,
			`schema_version "" is not major.minor`},
		"no header": {foreign{meta: func(m map[string]string) { delete(m, metaKey) }},
			ErrFormat, `no key "windrow"`},
		"broken header": {foreign{meta: func(m map[string]string) { m[metaKey] = "{" }}, ErrFormat,
			`metadata "windrow"`},
		"layers too few": {foreign{head: func(h *Header) { h.Layers = 2 }}, ErrFormat,
			"3 rows are not a multiple of 2 layers"},
		"no layers": {foreign{head: func(h *Header) { h.Layers = 0 }}, ErrFormat, "layers: 0 "},
		"layer order": {foreign{edit: func(v map[string][]any) {
			v["layer"][1], v["layer"][2] = 2,
				1
		}},
			ErrFormat, "row 1 (token 0, layer 1): layers are not 0..layers-1 in order"},
		"phase": {foreign{edit: func(v map[string][]any) { v["phase"][0] = 9 }}, ErrFormat,
			"row 0 (token 0, layer 0): phase"},
		"half a token": {foreign{edit: func(v map[string][]any) { v["pos"][2] = 1 }}, ErrFormat,
			"row 2 (token 0, layer 2): seq, pos"},
		"not ascending": {foreign{head: func(h *Header) { h.Layers = 1 },
			edit: func(v map[string][]any) { v["layer"] = []any{0, 0, 0} }},
			ErrFormat, "row 1 (token 1, layer 0): sequence and position do not ascend"},
		"spare bits": {foreign{edit: func(v map[string][]any) {
			v["active"][2].([]byte)[23] = 0x80
		}},
			ErrFormat, "row 2 (token 0, layer 2): active has bits beyond the last unit"},
	}
	for name, c := range cases {
		err := readAll(writeForeign(t, c.f))
		if !errors.Is(err, c.kind) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want %v with %q, got %v", name, c.kind, c.want, err)
		}
	}
}

// A8: what is harmless is accepted: columns in another order, further columns of any common type
// (also before ours, so that buffers must be counted right), a newer minor version, several batches
// that cut a token in two.
func TestField_A8_HarmlessDifferences(t *testing.T) {
	extra := []arrow.Field{
		{Name: "note", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "magnitude", Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Uint8)},
		{Name: "when", Type: arrow.FixedWidthTypes.Timestamp_us, Nullable: true},
		{Name: "flag", Type: arrow.FixedWidthTypes.Boolean},
	}
	cases := map[string]foreign{
		"as ours": {},
		"reordered": {fields: func(in []arrow.Field) []arrow.Field {
			slices.Reverse(in)
			return in
		}},
		"extra after": {fields: func(in []arrow.Field) []arrow.Field {
			return append(in,
				extra...)
		}},
		"extra before": {fields: func(in []arrow.Field) []arrow.Field {
			return append(slices.Clone(extra), in...)
		}},
		"newer minor": {head: func(h *Header) { h.SchemaVersion = "1.7" }},
		"zstd":        {opts: []ipc.Option{ipc.WithZstd()}},
		"zstd or not": {opts: []ipc.Option{ipc.WithZstd(), ipc.WithMinSpaceSavings(0.9)}},
	}
	want := Token{Phase: Decode, ID: 7, Active: []mask.Mask{{0, 0, 0}, {0, 0, 0}, {1 << 63, 0, 1}}}
	for name, f := range cases {
		f.edit = func(v map[string][]any) {
			v["active"][2].([]byte)[7] = 0x80
			v["active"][2].([]byte)[16] = 1
			for _, k := range []string{"note", "magnitude", "when", "flag"} {
				v[k] = []any{"1", "1", "1"}
			}
			v["when"] = []any{"2024-01-01", "2024-01-01", "2024-01-01"}
		}
		r, err := Open(t.Context(), writeForeign(t, f))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		equal(t, name, []Token{want}, collect(t, r))
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A token that is cut in two by a batch boundary is put together.
func TestBatchesMayCutTokens(t *testing.T) {
	src := testTrace(11, true)
	whole := save(t, src, WriteOptions{})
	for _, rows := range []int{1, 2, 4, 7} {
		equal(t, fmt.Sprintf("%d rows per batch", rows), src.List,
			collect(t, open(t, rebatch(t, whole, rows))))
	}
}
