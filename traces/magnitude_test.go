package traces

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
)

// withMagnitudes gives every active unit of a trace a code of its own.
func withMagnitudes(m *Memory) *Memory {
	m.Head.HasMagnitude = true
	for i := range m.List {
		t := &m.List[i]
		t.Magnitude = make([][]byte, len(t.Active))
		for l, mask := range t.Active {
			t.Magnitude[l] = make([]byte, mask.Count())
			for k := range t.Magnitude[l] {
				t.Magnitude[l][k] = byte(mix(uint64(i)<<40 + uint64(l)<<20 + uint64(k)))
			}
		}
	}
	return m
}

func TestMagnitudeCodeOfKnownValues(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		v    float64
		want uint8
	}{
		{0, 0}, {math.SmallestNonzeroFloat32, 0}, {1.0 / 65536, 0}, {1.0 / 32768, 8}, {0.5, 120},
		{1, 128}, {-1, 128},
		{math.Nextafter(1, 0), 128}, // the float32 nearest to it is 1
		{0.999999, 127}, {math.Sqrt2 + 1e-6, 132}, {math.Sqrt2 - 1e-6, 131}, {2, 136}, {65504, 255},
		{65536, 255}, {1e30, 255}, {inf, 255}, {-inf, 255}, {math.NaN(), 255},
	} {
		if got := MagnitudeCode(float32(c.v)); got != c.want {
			t.Errorf("MagnitudeCode(%g) = %d, want %d", c.v, got, c.want)
		}
	}
	if lo, one, hi := MagnitudeFloor(0), MagnitudeFloor(128),
		MagnitudeFloor(255); lo != 1.0/65536 || one != 1 || !(hi > 60000 && hi < 65504) {
		t.Errorf("floors %g, %g, %g: every normal fp16 number lies between the first and the "+
			"last step", lo, one, hi)
	}
}

// The plain twin: the logarithm, in float64. Values so near to a step that its rounding could
// matter are left out.
func TestMagnitudeCodeAgreesWithTheLogarithm(t *testing.T) {
	compared := 0
	for k := range uint64(20000) {
		v := math.Float32frombits(uint32(mix(k)))
		at := 8 * (math.Log2(math.Abs(float64(v))) + 16)
		if math.IsNaN(at) || math.IsInf(at, 0) || math.Abs(at-math.Round(at)) < 1e-6 {
			continue
		}
		compared++
		if want := uint8(math.Max(0, math.Min(255, math.Floor(at)))); MagnitudeCode(v) != want {
			t.Fatalf("MagnitudeCode(%g) = %d, the logarithm gives %d", v, MagnitudeCode(v), want)
		}
	}
	if compared < 15000 {
		t.Errorf("only %d values were compared", compared)
	}
}

// A code's floor has the code, the float32 below it the code before: "code ≥ c" is a threshold.
func TestMagnitudeFloorIsAThreshold(t *testing.T) {
	for c := range 256 {
		v := float32(MagnitudeFloor(uint8(c)))
		if float64(v) < MagnitudeFloor(uint8(c)) {
			v = math.Nextafter32(v, math.MaxFloat32) // the floor itself is no float32
		}
		below := math.Nextafter32(v, 0)
		if got := MagnitudeCode(v); int(got) != c {
			t.Errorf("the floor of code %d has code %d", c, got)
		}
		if got := MagnitudeCode(below); int(got) != max(0, c-1) {
			t.Errorf("just below the floor of code %d is code %d", c, got)
		}
	}
}

func TestMagnitudesRoundTrip(t *testing.T) {
	for _, predicted := range []bool{false, true} {
		src := withMagnitudes(testTrace(11, predicted))
		want := collect(t, src)
		for _, opt := range []WriteOptions{{}, {BatchBytes: 1}, {BatchBytes: 700},
			{Compress: "zstd"}, {Compress: "zstd", BatchBytes: 700}} {
			r := open(t, save(t, src, opt))
			equal(t, "header", src.Head, *r.Header())
			equal(t, "tokens", want, collect(t, r))
			if opt.BatchBytes == 700 && r.Batches() < 3 { // 225 magnitudes a token
				t.Errorf("%d batches of 700 bytes", r.Batches())
			}
			equal(t, "tokens cut by batches", want, collect(t, open(t, rebatch(t, r.path, 4))))
		}
	}
}

// Rows without active units have no magnitudes, also where a whole batch has none.
func TestNoActiveUnitsNoMagnitudes(t *testing.T) {
	src := testTrace(3, false)
	for i := range src.List {
		for l := range src.List[i].Active {
			clear(src.List[i].Active[l])
		}
	}
	withMagnitudes(src)
	for _, opt := range []WriteOptions{{BatchBytes: 1}, {Compress: "zstd", BatchBytes: 1}} {
		for _, tok := range collect(t, open(t, save(t, src, opt))) {
			for l, m := range tok.Magnitude {
				if len(m) != 0 {
					t.Errorf("%+v: layer %d has magnitudes %v", opt, l, m)
				}
			}
		}
	}
}

// The Arrow library is the plain twin of our reader: column "magnitude" is an ordinary binary
// column.
func TestLibraryReadsMagnitudes(t *testing.T) {
	for _, compress := range []string{"none", "zstd"} {
		src := withMagnitudes(testTrace(9, true))
		f, err := os.Open(save(t, src, WriteOptions{Compress: compress, BatchBytes: 700}))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r, err := ipc.NewFileReader(f)
		if err != nil {
			t.Fatal(err)
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
			col := rec.Column(rec.Schema().FieldIndices("magnitude")[0]).(*array.Binary)
			for i := range col.Len() {
				got = append(got, bytes.Clone(col.Value(i)))
			}
		}
		for i := range src.List {
			want = append(want, src.List[i].Magnitude...)
		}
		equal(t, compress, want, got)
	}
}

func TestAppendRefusesWrongMagnitudes(t *testing.T) {
	w, err := Create(filepath.Join(t.TempDir(), "x.trace.arrow"),
		withMagnitudes(testTrace(1, false)).Head, WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for want, edit := range map[string]func(*Token){
		"magnitudes of 0 layers for 3": func(k *Token) { k.Magnitude = nil },
		"magnitudes of 2 layers for 3": func(k *Token) { k.Magnitude = k.Magnitude[:2] },
		"layer 1: 1 magnitudes for":    func(k *Token) { k.Magnitude[1] = k.Magnitude[1][:1] },
	} {
		bad := withMagnitudes(testTrace(1, false)).List[0]
		edit(&bad)
		if err := w.Append(&bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
	plain, err := Create(filepath.Join(t.TempDir(), "x.trace.arrow"), testHeader(false),
		WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Abort()
	if err := plain.Append(&withMagnitudes(testTrace(1, false)).List[0]); err == nil ||
		!strings.Contains(err.Error(), "has_magnitude false") {
		t.Errorf("magnitudes without the header's promise: %v", err)
	}
	huge := testHeader(false)
	huge.Layers, huge.Units, huge.HasMagnitude = 4096, 1<<18, true
	if _, err := Create(filepath.Join(t.TempDir(), "x.trace.arrow"), huge,
		WriteOptions{}); err == nil || !strings.Contains(err.Error(), "one token takes up to") {
		t.Errorf("a token of gigabytes: %v", err)
	}
}

// A8 for the new column: wrong types, and lengths that do not fit the masks.
func TestField_A8_WrongMagnitudes(t *testing.T) {
	promise := func(h *Header) { h.HasMagnitude = true }
	column := func(f arrow.Field) func([]arrow.Field) []arrow.Field {
		return func(in []arrow.Field) []arrow.Field { return append(in, f) }
	}
	one := func(v map[string][]any) {
		v["active"][1].([]byte)[0] = 1
		v["magnitude"] = []any{[]byte{}, []byte{7}, []byte{}}
	}
	binaryField := arrow.Field{Name: "magnitude", Type: arrow.BinaryTypes.Binary}
	for name, c := range map[string]struct {
		f    foreign
		want string
	}{
		"missing": {foreign{head: promise}, `column "magnitude" (binary) is missing`},
		"text": {foreign{head: promise, fields: column(arrow.Field{Name: "magnitude",
			Type: arrow.BinaryTypes.String})}, `column "magnitude" has type utf8, need binary`},
		"large": {foreign{head: promise, fields: column(arrow.Field{Name: "magnitude",
			Type: arrow.BinaryTypes.LargeBinary})}, `has type large_binary, need binary`},
		"fixed": {foreign{head: promise, fields: column(arrow.Field{Name: "magnitude",
			Type: &arrow.FixedSizeBinaryType{ByteWidth: 1}})}, `need binary`},
		"a null": {foreign{head: promise, fields: column(arrow.Field{Name: "magnitude",
			Type: arrow.BinaryTypes.Binary, Nullable: true}),
			edit: func(v map[string][]any) { one(v); v["magnitude"][1] = nil }},
			`column "magnitude" has 3 rows of 3 and 1 nulls`},
		"too few": {foreign{head: promise, fields: column(binaryField),
			edit: func(v map[string][]any) { one(v); v["active"][2].([]byte)[0] = 1 }},
			"row 2 (token 0, layer 2): magnitude does not have one byte per active unit"},
		"too many": {foreign{head: promise, fields: column(binaryField),
			edit: func(v map[string][]any) { one(v); v["magnitude"][0] = []byte{1} }},
			"row 0 (token 0, layer 0): magnitude does not have one byte per active unit"},
	} {
		if err := readAll(writeForeign(t, c.f)); !errors.Is(err, ErrFormat) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want ErrFormat with %q, got %v", name, c.want, err)
		}
	}
	r := open(t, writeForeign(t, foreign{head: promise, fields: column(binaryField), edit: one}))
	equal(t, "magnitudes", [][]byte{{}, {7}, {}}, collect(t, r)[0].Magnitude)
	// a column of that name which the header does not promise is somebody else's
	if err := readAll(writeForeign(t, foreign{fields: column(binaryField),
		edit: one})); err != nil {
		t.Errorf("a column that the header does not know: %v", err)
	}
}

// Offsets are used only after they were held against the values, whatever they say.
func TestField_A1_MagnitudeOffsetsAreNotBelieved(t *testing.T) {
	src := withMagnitudes(testTrace(1, false))
	path := save(t, src, WriteOptions{})
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := open(t, path)
	offsets := r.batches[0].cols[colMagOffsets]
	at := bytes.Index(good, offsets)
	if at < 0 || bytes.Count(good, offsets) != 1 {
		t.Fatal("the offsets are not in the file once")
	}
	for _, bad := range []uint32{1, 1 << 20, math.MaxInt32, math.MaxUint32} {
		for row := range 4 {
			b := bytes.Clone(good)
			binary.LittleEndian.PutUint32(b[at+4*row:], bad)
			p := filepath.Join(t.TempDir(), "b.trace.arrow")
			if err := os.WriteFile(p, b, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := readAll(p); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(),
				"magnitude") {
				t.Errorf("offset %d of row %d: %v", bad, row, err)
			}
		}
	}
}

// An older program's file opens, and means the same.
func TestOpenSchema10(t *testing.T) {
	r := open(t, "testdata/schema-1.0.trace.arrow")
	h := r.Header()
	if h.SchemaVersion != "1.0" || h.HasMagnitude || h.DerivedBy != "" || !r.Verified() ||
		r.Tokens() != 6 || h.Layers != 6 || h.Units != 1024 {
		t.Errorf("header %+v, %d tokens, verified %t", h, r.Tokens(), r.Verified())
	}
	active := 0
	for _, tok := range collect(t, r) {
		for _, m := range tok.Active {
			active += m.Count()
		}
		if tok.Magnitude != nil || tok.Feature != nil {
			t.Error("a trace of schema 1.0 has magnitudes or features")
		}
	}
	if want := 3841; active != want { // of the program that wrote it
		t.Errorf("%d active units, the program that wrote it counted %d", active, want)
	}
	dst := filepath.Join(t.TempDir(), "twice.trace.arrow")
	if err := Merge(t.Context(), dst, r.path, r.path); err != nil {
		t.Errorf("merge: %v", err)
	}
}

func TestCheckAndManifestKnowMagnitudes(t *testing.T) {
	src := withMagnitudes(testTrace(6, false))
	src.Head.DerivedFrom, src.Head.DerivedBy = "ab", "test"
	path := save(t, src, WriteOptions{Incomplete: true})
	rep, err := CheckFile(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if rep.Magnitude != rep.Active || rep.Active == 0 || rep.Complete {
		t.Errorf("%d magnitudes for %d active units, complete %t", rep.Magnitude, rep.Active,
			rep.Complete)
	}
	m, err := readManifest(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if !m.HasMagnitude || m.DerivedFrom != "ab" || m.DerivedBy != "test" ||
		m.SchemaVersion != "1.1" {
		t.Errorf("manifest %+v", m)
	}
}

func TestCatPrintsMagnitudes(t *testing.T) {
	src := twoTokens()
	src.Head.HasPredicted, src.Head.HasMagnitude = false, true
	for i := range src.List {
		src.List[i].Predicted = nil
	}
	src.List[0].Magnitude = [][]byte{{1, 2, 255}, {}}
	src.List[1].Magnitude = [][]byte{{9}, {10}}
	var b bytes.Buffer
	if err := WriteCSV(&b, src, CatOptions{Units: true}); err != nil {
		t.Fatal(err)
	}
	equal(t, "csv", `seq,pos,phase,token,layer,active_count,active,magnitude
0,4,prefill,11,0,3,0 63 69,1 2 255
0,4,prefill,11,1,0,,
2,0,decode,12,0,1,2,9
2,0,decode,12,1,1,3,10
`, b.String())
	b.Reset()
	if err := WriteJSONL(&b, src, CatOptions{Units: true, Count: 1}); err != nil {
		t.Fatal(err)
	}
	equal(t, "jsonl",
		`{"seq":0,"pos":4,"phase":"prefill","token":11,"layer":0,"active_count":3,"active":[0,63,69],"magnitude":[1,2,255]}
{"seq":0,"pos":4,"phase":"prefill","token":11,"layer":1,"active_count":0,"active":[],"magnitude":[]}
`, b.String())
}

func TestMergeKeepsMagnitudes(t *testing.T) {
	a, b := withMagnitudes(testTrace(4, false)), withMagnitudes(testTrace(3, false))
	dst := filepath.Join(t.TempDir(), "all.trace.arrow")
	if err := Merge(t.Context(), dst, save(t, a, WriteOptions{}),
		save(t, b, WriteOptions{Compress: "zstd"})); err != nil {
		t.Fatal(err)
	}
	var want [][][]byte
	for _, tok := range append(a.List, b.List...) {
		want = append(want, tok.Magnitude)
	}
	var got [][][]byte
	for _, tok := range collect(t, open(t, dst)) {
		got = append(got, tok.Magnitude)
	}
	equal(t, "magnitudes", want, got)
	other := filepath.Join(t.TempDir(), "no.trace.arrow")
	if err := Merge(t.Context(), other, save(t, a, WriteOptions{}), save(t, testTrace(3, false),
		WriteOptions{})); err == nil || !strings.Contains(err.Error(), "differ in has_magnitude") {
		t.Errorf("with and without magnitudes: %v", err)
	}
	derived := withMagnitudes(testTrace(3, false))
	derived.Head.DerivedBy = "test"
	if err := Merge(t.Context(), other, save(t, a, WriteOptions{}), save(t, derived,
		WriteOptions{})); err == nil || !strings.Contains(err.Error(), "differ in derived_by") {
		t.Error(fmt.Errorf("a recorded and a derived trace: %w", err))
	}
}
