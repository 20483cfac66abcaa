package traces

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
)

// withFeatures gives every layer of a trace a feature of its own: patterns of float16 numbers that
// are finite.
func withFeatures(m *Memory, width int) *Memory {
	m.Head.FeatureKind, m.Head.FeatureWidth = FFNInput, width
	for i := range m.List {
		t := &m.List[i]
		t.Feature = make([][]byte, len(t.Active))
		for l := range t.Active {
			for k := range width {
				bits := uint16(mix(uint64(i)<<40+uint64(l)<<20+uint64(k))) &^ 0x4000
				t.Feature[l] = binary.LittleEndian.AppendUint16(t.Feature[l], bits)
			}
		}
	}
	return m
}

// every is a trace with all columns.
func every(n int) *Memory { return withFeatures(withMagnitudes(testTrace(n, true)), 9) }

func TestFeaturesRoundTrip(t *testing.T) {
	for name, src := range map[string]*Memory{
		"alone":           withFeatures(testTrace(11, false), 8),
		"odd":             withFeatures(testTrace(11, false), 1),
		"with predicted":  withFeatures(testTrace(11, true), 7),
		"with magnitudes": withFeatures(withMagnitudes(testTrace(11, false)), 7),
		"with all":        every(11),
	} {
		want := collect(t, src)
		for _, opt := range []WriteOptions{{}, {BatchBytes: 1}, {BatchBytes: 700},
			{Compress: "zstd"}, {Compress: "zstd", BatchBytes: 700}} {
			r := open(t, save(t, src, opt))
			equal(t, name+": header", src.Head, *r.Header())
			equal(t, name+": tokens", want, collect(t, r))
			equal(t, name+": tokens cut by batches", want,
				collect(t, open(t, rebatch(t, r.path, 4))))
		}
	}
}

// The kind of the features is in the file, in its flat metadata and in the manifest, and traces of
// two kinds are not merged.
func TestFeatureKindsRoundTrip(t *testing.T) {
	paths := map[string]string{}
	for _, kind := range FeatureKinds() {
		src := withFeatures(testTrace(3, false), 4)
		src.Head.FeatureKind = kind
		paths[kind] = save(t, src, WriteOptions{})
		r := open(t, paths[kind])
		equal(t, kind, src.Head, *r.Header())
		equal(t, kind, collect(t, src), collect(t, r))
		if flat, _ := r.file.Meta("feature_kind"); string(flat) != kind {
			t.Errorf("the metadata of %s say %q", kind, flat)
		}
		if m, err := readManifest(t.Context(), paths[kind]); err != nil || m.FeatureKind != kind {
			t.Errorf("the manifest of %s: %+v, %v", kind, m, err)
		}
	}
	err := Merge(t.Context(), filepath.Join(t.TempDir(), "x.trace.arrow"), paths[AttentionOutput],
		paths[Residual])
	if err == nil || !strings.Contains(err.Error(), "differ in feature_kind (attention_output "+
		"and residual)") {
		t.Errorf("two kinds are merged: %v", err)
	}
}

// Wide features make rows large: a batch ends after as few tokens as keep it within its bytes, so
// that the writer's memory stays bounded.
func TestFeaturesEndBatches(t *testing.T) {
	const width, tokens = 1000, 40 // 6 KB a token
	src := withFeatures(testTrace(tokens, false), width)
	path := filepath.Join(t.TempDir(), "x.trace.arrow")
	w, err := Create(path, src.Head, WriteOptions{BatchBytes: 32 << 10})
	if err != nil {
		t.Fatal(err)
	}
	room := 0
	for i := range src.List {
		if err := w.Append(&src.List[i]); err != nil {
			t.Fatal(err)
		}
		room = 0
		for _, b := range w.bufs {
			room += cap(b)
		}
		if room > 32<<10 {
			t.Fatalf("after token %d the writer holds %d bytes", i, room)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if r := open(t, path); r.Batches() != tokens/5 || room == 0 {
		t.Errorf("%d batches of 32 KiB, want %d of 5 tokens", r.Batches(), tokens/5)
	}
	if size := src.Head.TokenBytes(); size != 3*(15+24+2*width) {
		t.Errorf("a token is said to take %d bytes", size)
	}
}

// The Arrow library is the plain twin of our reader: column "feature" is an ordinary column of
// bytes.
func TestLibraryReadsFeatures(t *testing.T) {
	for _, compress := range []string{"none", "zstd"} {
		src := every(9)
		f, err := os.Open(save(t, src, WriteOptions{Compress: compress, BatchBytes: 700}))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r, err := ipc.NewFileReader(f)
		if err != nil {
			t.Fatal(err)
		}
		md := r.Schema().Metadata()
		if kind, _ := md.GetValue("feature_kind"); kind != FFNInput {
			t.Errorf("the metadata say feature_kind %q", kind)
		}
		if width, _ := md.GetValue("feature_width"); width != "9" {
			t.Errorf("the metadata say feature_width %q", width)
		}
		var got, want [][]byte
		for {
			rec, err := r.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			col := rec.Column(rec.Schema().FieldIndices("feature")[0]).(*array.FixedSizeBinary)
			for i := range col.Len() {
				got = append(got, bytes.Clone(col.Value(i)))
			}
		}
		for i := range src.List {
			want = append(want, src.List[i].Feature...)
		}
		equal(t, compress, want, got)
	}
}

// A Token that is used with several sources has what the last one has, and ties none to another.
func TestTokenOfSeveralSources(t *testing.T) {
	full, plain := every(2), testTrace(2, false)
	want := bytes.Clone(full.List[0].Feature[0])
	var tok Token
	for _, src := range []Source{full, open(t, save(t, every(2), WriteOptions{})), plain,
		open(t, save(t, plain, WriteOptions{}))} {
		if err := src.Token(0, &tok); err != nil {
			t.Fatal(err)
		}
		if (tok.Feature != nil) != (src.Header().FeatureKind != "") {
			t.Errorf("features %v of a trace of kind %q", tok.Feature, src.Header().FeatureKind)
		}
		for l := range tok.Feature {
			tok.Feature[l] = nil
		}
	}
	equal(t, "the first source's feature", want, full.List[0].Feature[0])
}

func TestAppendRefusesWrongFeatures(t *testing.T) {
	create := func(edit func(*Header)) (*Writer, error) {
		h := testHeader(false)
		edit(&h)
		return Create(filepath.Join(t.TempDir(), "x.trace.arrow"), h, WriteOptions{})
	}
	w, err := create(func(h *Header) { h.FeatureKind, h.FeatureWidth = FFNInput, 4 })
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for want, edit := range map[string]func(*Token){
		"features of 0 layers for 3": func(k *Token) {
			k.Feature = nil
		},
		"features of 2 layers for 3": func(k *Token) {
			k.Feature = k.Feature[:2]
		},
		"layer 1: a feature of 6 bytes, need 8 for 4 numbers": func(k *Token) {
			k.Feature[1] = k.Feature[1][:6]
		},
		"layer 2: a feature of 9 bytes, need 8 for 4 numbers": func(k *Token) {
			k.Feature[2] = append(k.Feature[2], 0)
		},
		"layer 0: a feature of 0 bytes, need 8 for 4 numbers": func(k *Token) {
			k.Feature[0] = nil
		},
		"has magnitudes, but the header says has_magnitude false": func(k *Token) {
			k.Magnitude = [][]byte{}
		},
	} {
		bad := withFeatures(testTrace(1, false), 4).List[0]
		edit(&bad)
		if err := w.Append(&bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
	plain, err := create(func(*Header) {})
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Abort()
	if err := plain.Append(&withFeatures(testTrace(1, false), 4).List[0]); err == nil ||
		!strings.Contains(err.Error(), "names no feature_kind") {
		t.Errorf("features without the header's promise: %v", err)
	}
	for want, edit := range map[string]func(*Header){
		`features of kind "attention"`: func(h *Header) {
			h.FeatureKind,
				h.FeatureWidth = "attention", 4
		},
		"feature_width: 0 is not from 1": func(h *Header) { h.FeatureKind = FFNInput },
		"feature_width: -1 is not from 1": func(h *Header) {
			h.FeatureKind,
				h.FeatureWidth = FFNInput, -1
		},
		"feature_width: 1048577": func(h *Header) {
			h.FeatureKind,
				h.FeatureWidth = FFNInput, 1<<20+1
		},
		"does not say what": func(h *Header) { h.FeatureWidth = 8 },
		"one token takes up to": func(h *Header) {
			h.FeatureKind, h.FeatureWidth,
				h.Layers = FFNInput, 1<<20, 300
		},
	} {
		if _, err := create(edit); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

// A8 for this column: wrong types and sizes, and headers that promise what is not there.
func TestField_A8_WrongFeatures(t *testing.T) {
	promise := func(h *Header) { h.FeatureKind, h.FeatureWidth = FFNInput, 2 }
	column := func(name string, kind arrow.DataType,
		nullable bool) func([]arrow.Field) []arrow.Field {
		return func(in []arrow.Field) []arrow.Field {
			return append([]arrow.Field{{Name: name, Type: kind, Nullable: nullable}}, in...)
		}
	}
	values := func(v map[string][]any) {
		v["feature"] = []any{[]byte{1, 2, 3, 4}, []byte{5, 6, 7, 8}, []byte{9, 10, 11, 12}}
	}
	fixed := func(n int) arrow.DataType { return &arrow.FixedSizeBinaryType{ByteWidth: n} }
	for name, c := range map[string]struct {
		f    foreign
		want string
	}{
		"missing": {foreign{head: promise}, `column "feature" (fixed_size_binary[4]) is missing`},
		"narrow": {foreign{head: promise, fields: column("feature", fixed(2), false),
			edit: values}, `has type fixed_size_binary[2], need fixed_size_binary[4]`},
		"binary": {foreign{head: promise, fields: column("feature", arrow.BinaryTypes.Binary,
			false), edit: values}, `has type binary, need fixed_size_binary[4]`},
		"a null": {foreign{head: promise, fields: column("feature", fixed(4), true),
			edit: func(v map[string][]any) { values(v); v["feature"][1] = nil }},
			`column "feature" has 3 rows of 3 and 1 nulls`},
		"width": {foreign{head: func(h *Header) { h.FeatureKind = FFNInput }},
			"feature_width: 0 "},
		"huge": {foreign{head: func(h *Header) {
			h.FeatureKind, h.FeatureWidth = FFNInput,
				1<<40
		}}, "feature_width: 1099511627776"},
		"no kind": {foreign{head: func(h *Header) { h.FeatureWidth = 2 }},
			"does not say what"},
		"unknown": {foreign{head: func(h *Header) { promise(h); h.FeatureKind = "key" }},
			`features of kind "key", need one of ffn_input, attention_output, residual`},
		"older": {foreign{head: func(h *Header) {
			promise(h)
			h.FeatureKind,
				h.SchemaVersion = "key", "1.0"
		}}, `features of kind "key"`},
	} {
		if err := readAll(writeForeign(t, c.f)); !errors.Is(err, ErrFormat) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want ErrFormat with %q, got %v", name, c.want, err)
		}
	}
	r := open(t, writeForeign(t, foreign{head: promise, fields: column("feature", fixed(4), false),
		edit: values}))
	equal(t, "features", [][]byte{{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}},
		collect(t, r)[0].Feature)
	// a kind of a later version is read, a column of that name which the header does not promise is
	// somebody else's
	later := func(h *Header) { promise(h); h.FeatureKind, h.SchemaVersion = "key", "1.9" }
	if err := readAll(writeForeign(t, foreign{head: later, fields: column("feature", fixed(4),
		false), edit: values})); err != nil {
		t.Errorf("another kind: %v", err)
	}
	if err := readAll(writeForeign(t, foreign{fields: column("feature", fixed(4), false),
		edit: values})); err != nil {
		t.Errorf("a column that the header does not know: %v", err)
	}
}

// A reader that looks for the older columns only finds them, whether or not features stand between.
func TestFeaturesAreIgnoredByOlderReaders(t *testing.T) {
	src := every(6)
	r := open(t, save(t, src, WriteOptions{BatchBytes: 700}))
	older := r.head
	older.FeatureKind, older.FeatureWidth = "", 0
	r.head = older
	r.batches, r.starts, r.rows = nil, nil, 0
	if err := r.file.Bind(traceColumns(&older)); err != nil {
		t.Fatal(err)
	}
	for i := range r.file.Batches() {
		l := loaded{index: i, rows: r.file.Batches()[i].Rows}
		if err := r.load(&l); err != nil {
			t.Fatal(err)
		}
		r.batches, r.starts, r.rows = append(r.batches, l), append(r.starts, r.rows), r.rows+l.rows
	}
	want := collect(t, src)
	for i := range want {
		want[i].Feature = nil
	}
	equal(t, "tokens", want, collect(t, r))
}

func TestCheckAndManifestKnowFeatures(t *testing.T) {
	src := withFeatures(testTrace(6, false), 5)
	rep, err := CheckFile(t.Context(), save(t, src, WriteOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	if rep.Feature != 6*3*5 || rep.NotFinite != 0 || len(rep.Warnings) != 0 {
		t.Errorf("%d numbers of features, %d not finite, warnings %q", rep.Feature, rep.NotFinite,
			rep.Warnings)
	}
	for k, bits := range []uint16{0x7C00, 0xFC00, 0x7E01} { // +Inf, −Inf, NaN
		binary.LittleEndian.PutUint16(src.List[k].Feature[k][2*k:], bits)
	}
	path := save(t, src, WriteOptions{})
	if rep, err = CheckFile(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if rep.NotFinite != 3 || len(rep.Warnings) != 1 || !strings.HasPrefix(rep.Warnings[0],
		"3 of 90 numbers of features are infinite") {
		t.Errorf("%d not finite, warnings %q", rep.NotFinite, rep.Warnings)
	}
	m, err := readManifest(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if m.FeatureKind != FFNInput || m.FeatureWidth != 5 || m.SchemaVersion != "1.1" {
		t.Errorf("manifest %+v", m)
	}
}

// A trace without features says nothing of them, so that it has the bytes it had.
func TestTracesWithoutFeaturesSayNothingOfThem(t *testing.T) {
	path := save(t, testTrace(2, true), WriteOptions{})
	for _, p := range []string{path, ManifestPath(path)} {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("feature")) {
			t.Errorf("%s speaks of features", filepath.Base(p))
		}
	}
}

// Features are thousands of numbers: the printed rows are those of the trace without them.
func TestCatLeavesFeaturesOut(t *testing.T) {
	for _, write := range []func(io.Writer, Source, CatOptions) error{WriteCSV, WriteJSONL} {
		var with, without bytes.Buffer
		if err := errors.Join(write(&with, every(3), CatOptions{Units: true}), write(&without,
			withMagnitudes(testTrace(3, true)), CatOptions{Units: true})); err != nil {
			t.Fatal(err)
		}
		if with.Len() == 0 || with.String() != without.String() {
			t.Errorf("printed\n%s\nand without features\n%s", with.String(), without.String())
		}
	}
}

func TestMergeKeepsFeatures(t *testing.T) {
	a, b := every(4), every(3)
	dst := filepath.Join(t.TempDir(), "all.trace.arrow")
	if err := Merge(t.Context(), dst, save(t, a, WriteOptions{}),
		save(t, b, WriteOptions{Compress: "zstd"})); err != nil {
		t.Fatal(err)
	}
	var want, got [][][]byte
	for _, tok := range append(a.List, b.List...) {
		want = append(want, tok.Feature)
	}
	for _, tok := range collect(t, open(t, dst)) {
		got = append(got, tok.Feature)
	}
	equal(t, "features", want, got)
	other := filepath.Join(t.TempDir(), "no.trace.arrow")
	for want, c := range map[string]*Memory{
		"differ in feature_kind (ffn_input and )": withMagnitudes(testTrace(3, true)),
		"differ in feature_width (9 and 8)": withFeatures(withMagnitudes(testTrace(3, true)),
			8),
	} {
		if err := Merge(t.Context(), other, save(t, a, WriteOptions{}),
			save(t, c, WriteOptions{})); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}
