package gguf

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/windrow-sim/windrow/engine/checkpoint/internal/tensor"
	"github.com/windrow-sim/windrow/internal/alloctest"
)

type expectation struct {
	GGUF, Type    string
	DType         tensor.DType
	Shape         []int64
	SHA256, Start string
}

// expected has gguf-py's reading of a fixture; see tools/gguf_vectors.
func expected(t testing.TB, fixture string) map[string]expectation {
	t.Helper()
	doc := map[string]expectation{}
	data, err := os.ReadFile("testdata/" + fixture + ".json")
	if err == nil {
		err = json.Unmarshal(data, &doc)
	}
	if err != nil || len(doc) < 10 {
		t.Fatalf("%d tensors, %v", len(doc), err)
	}
	return doc
}

func openFixture(t testing.TB) *File {
	t.Helper()
	f, err := Open(t.Context(), "testdata/llama.gguf")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestReadsWhatGGUFPyWrites(t *testing.T) {
	f := openFixture(t)
	want := expected(t, "llama")
	if f.Version() != 3 || len(f.Tensors()) != len(want) || len(f.Notes()) != 0 {
		t.Errorf("version %d, %d tensors, notes %q", f.Version(), len(f.Tensors()), f.Notes())
	}
	for _, e := range want {
		got, ok := f.Tensor(e.GGUF)
		if !ok || got.DType != e.DType || !slices.Equal(got.Shape, e.Shape) {
			t.Errorf("%s is %+v, want %+v", e.GGUF, got, e)
		}
		if quantised := strings.HasPrefix(e.Type, "Q"); (got.Encoding == e.Type) != quantised ||
			!quantised && got.Encoding != "" {
			t.Errorf("%s: encoding %q, want %s", e.GGUF, got.Encoding, e.Type)
		}
		if strings.Contains(e.GGUF, "attn_q.") || strings.Contains(e.GGUF, "attn_k.") {
			continue // permuted: TestLlamaRestoresTheOriginal
		}
		s, err := f.Section(e.GGUF)
		if err != nil {
			t.Fatal(err)
		}
		sameBytes(t, e, s)
	}
	if _, err := f.Section("none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing tensor: %v", err)
	}
}

// sameHash compares a tensor with its hash and returns its bytes.
func sameHash(t *testing.T, e expectation, s *io.SectionReader) []byte {
	t.Helper()
	all, err := io.ReadAll(s)
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(all); hex.EncodeToString(sum[:]) != e.SHA256 {
		t.Errorf("%s starts with %x, want %s", e.GGUF, all[:64], e.Start)
	}
	return all
}

// sameBytes compares a tensor, read in any pieces, with its hash.
func sameBytes(t *testing.T, e expectation, s *io.SectionReader) {
	t.Helper()
	all := sameHash(t, e, s)
	if err := iotest.TestReader(io.NewSectionReader(s, 0, s.Size()), all); err != nil {
		t.Errorf("%s: %v", e.GGUF, err)
	}
}

func TestMetadataOfEveryType(t *testing.T) {
	f := openFixture(t)
	meta := f.Metadata()
	for key, want := range map[string]any{
		"u8": uint8(200), "i8": int8(-5), "u16": uint16(60000), "i16": int16(-3),
		"u32": uint32(4000000000), "i32": int32(-7), "f32": float32(0.5),
		"u64": uint64(1 << 63), "i64": int64(-1 << 62), "f64": 0.1, "yes": true, "text": "grüß",
		"ints": []int32{1, -2, 3}, "floats": []float32{0.5, 1.5}, "flags": []bool{true, false},
		"nested": []any{[]int32{1, 2}, []int32{3}},
	} {
		if got := meta["test."+key]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %v (%T), want %v (%T)", key, got, got, want, want)
		}
	}
	for key, want := range map[string]int64{"u8": 200, "i8": -5, "u16": 60000, "i16": -3,
		"u32": 4000000000, "i32": -7, "i64": -1 << 62} {
		if got, ok, err := f.Int("test." + key); got != want || !ok || err != nil {
			t.Errorf("%s is %d, %v, %v", key, got, ok, err)
		}
	}
	_, _, err := f.Int("test.u64")
	refused(t, err, errFormat, "test.u64", "uint64")
	_, _, err = Get[string](f, "test.u8")
	refused(t, err, errFormat, "test.u8", "not of type string")
	if _, ok, err := f.Int("none"); ok || err != nil {
		t.Errorf("a missing key: %v, %v", ok, err)
	}
}

func TestVersion2AndAlignment(t *testing.T) {
	data := make([]byte, 128)
	data[64] = 7
	w := header(2, 1).keyU32(alignmentKey, 64).tensor("a", 1, 0, 3, 2).tensor("b", 0, 64, 1)
	b := w.data(64, data[:68])
	b[4] = 2
	f, err := openBytes(b)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := f.Tensor("a")
	if f.Version() != 2 || a.Offset%64 != 0 || !slices.Equal(a.Shape, []int64{2, 3}) {
		t.Errorf("version %d, a is %+v", f.Version(), a)
	}
	s, err := f.Section("b")
	if err != nil {
		t.Fatal(err)
	}
	if p, err := io.ReadAll(s); err != nil || !bytes.Equal(p, []byte{7, 0, 0, 0}) {
		t.Errorf("%v, %v", p, err)
	}
	if f, err := openBytes(append(b, make([]byte, 200)...)); err != nil || len(f.Notes()) != 1 {
		t.Errorf("bytes after the end: %v", err)
	}
}

func TestRefusesBrokenFiles(t *testing.T) {
	for name, c := range map[string]struct {
		file []byte
		kind error
		want string
	}{
		"empty":          {nil, errFormat, "truncated"},
		"another format": {[]byte("not a gguf file at all"), errFormat, `starts with "not "`},
		"version 1":      {[]byte("GGUF\x01\x00\x00\x00"), errUnsupported, "version 1"},
		"version 4":      {[]byte("GGUF\x04\x00\x00\x00"), errUnsupported, "version 4"},
		"keys":           {header(0, 1<<40).b, errFormat, "1099511627776 keys"},
		"tensors":        {header(1<<40, 0).b, errFormat, "1099511627776 tensors"},
		"a long key": {header(0, 1).u64(1 << 63).u64(0).b, errFormat,
			"9223372036854775808 bytes at byte 32, the file has 40"},
		"an empty key": {header(0, 1).keyU32("", 1).b, errFormat, "empty"},
		"a key twice": {header(0, 2).keyU32("a", 1).keyU32("a", 1).b, errFormat,
			`"a" occurs twice`},
		"a type of value": {header(0, 1).text("a").u32(13).u64(0).b, errFormat, "value of type 13"},
		"truth": {append(header(0, 1).text("a").u32(kindBool).b, 2), errFormat,
			"2 as a truth value"},
		"array type": {header(0, 1).text("a").u32(kindArray).u32(99).u64(0).b, errFormat,
			"value of type 99"},
		"array length": {header(0, 1).text("a").u32(kindArray).u32(kindF64).u64(1 << 61).b,
			errFormat, "2305843009213693952 numbers"},
		"texts": {header(0, 1).text("a").u32(kindArray).u32(kindText).u64(1 << 61).b,
			errFormat, "texts"},
		"nesting":        {deep().b, errFormat, "nested deeper"},
		"alignment 0":    {header(0, 1).keyU32(alignmentKey, 0).b, errFormat, "power of two"},
		"alignment 24":   {header(0, 1).keyU32(alignmentKey, 24).b, errFormat, "power of two"},
		"alignment text": {header(0, 1).keyText(alignmentKey, "32").b, errFormat, "power of two"},
		"unknown type": {header(1, 0).tensor("a", 16, 0, 256).data(32, nil), errUnsupported,
			"type IQ2_XXS"},
		"no type": {header(1, 0).tensor("a", 4, 0, 256).data(32, nil), errUnsupported,
			"type number 4"},
		"a large type": {header(1, 0).tensor("a", 42, 0, 256).data(32, nil), errUnsupported,
			"type number 42"},
		"part of a block": {header(1, 0).tensor("a", 2, 0, 33).data(32, make([]byte, 64)),
			errFormat, "rows of 33 elements"},
		"part of 256": {header(1, 0).tensor("a", 14, 0, 32).data(32, make([]byte, 256)),
			errFormat, "rows of 32 elements"},
		"scalar block": {header(1, 0).tensor("a", 8, 0).data(32, make([]byte, 64)), errFormat,
			"rows of 1 elements"},
		"misaligned": {header(1, 0).tensor("a", 0, 4, 1).data(32, make([]byte, 64)), errFormat,
			"alignment 32"},
		"a hole in front": {header(1, 0).tensor("a", 0, 32, 1).data(32, make([]byte, 64)),
			errFormat, "belong to no tensor"},
		"a hole": {header(2, 0).tensor("a", 0, 0, 1).tensor("b", 0, 64, 1).data(32,
			make([]byte, 96)), errFormat, "32 bytes before tensor"},
		"overlap": {header(2, 0).tensor("a", 0, 0, 16).tensor("b", 0, 32, 1).data(32,
			make([]byte, 96)), errFormat, "overlaps"},
		"same place": {header(2, 0).tensor("a", 0, 0, 1).tensor("b", 0, 0, 1).data(32,
			make([]byte, 96)), errFormat, "overlaps"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := openBytes(c.file)
			refused(t, err, c.kind, c.want)
		})
	}
	_, err := Open(t.Context(), t.TempDir())
	refused(t, err, errFormat, "is a folder")
	_, err = Open(t.Context(), filepath.Join(t.TempDir(), "none"))
	refused(t, err, fs.ErrNotExist)
}

func deep() *writer {
	w := header(0, 1).text("a").u32(kindArray)
	for range 1000 {
		w.u32(kindArray).u64(1)
	}
	return w
}

// Opening a file of n bytes may allocate this much in all. The bytes that a test holds as the file
// are not among them.
const (
	allocPerByte = 4
	// half is the reader's buffer; the rest is the File, errors, and the fuzzing engine's own work
	allocFixed = 1 << 17
)

// TestOpeningTakesMemoryInProportion opens files that hold as many keys, values and tensors in
// their bytes as the format can, and files whose lengths lie.
func TestOpeningTakesMemoryInProportion(t *testing.T) {
	const n = 1 << 17
	word := func(i int) string { return strconv.FormatInt(int64(i), 36) }
	keys := func(value func(w *writer)) []byte {
		w := header(0, n)
		for i := range n {
			value(w.text(word(i)))
		}
		return w.b
	}
	array := func(kind uint32, element func(w *writer)) []byte {
		w := header(0, 1).text("a").u32(kindArray).u32(kind).u64(n)
		for range n {
			element(w)
		}
		return w.b
	}
	inner := func(kind uint32, data string) []byte {
		return array(kindArray, func(w *writer) { w.u32(kind).u64(1).b = append(w.b, data...) })
	}
	tensors := func(at func(i int) int, dims ...uint64) []byte {
		w := header(n, 1).keyU32(alignmentKey, leastAlignment)
		for i := range n {
			w.tensor(word(i), 0, uint64(at(i)*leastAlignment), dims...)
		}
		return w.data(leastAlignment, make([]byte, n*leastAlignment))
	}
	forward, backward := func(i int) int { return i }, func(i int) int { return n - 1 - i }
	long := strings.Repeat("a", 20*n)
	// Keys with lists in lists, each of which says that a share of the file is its own; the rest of
	// the file is zeros.
	const room = 64 * n
	lies := func(share int) []byte {
		w := header(0, uint64(room/share/leastPair)).text("a").u32(kindArray)
		for range maxNesting - 1 {
			w.u32(kindArray).u64(uint64(room / share / leastArray))
		}
		w.u32(kindText).u64(uint64(room / share / leastText))
		return append(w.b, make([]byte, room)...)
	}
	for name, c := range map[string]struct {
		file []byte
		want string // of the error
	}{
		"keys of bytes": {keys(func(w *writer) { w.u32(kindU8).b = append(w.b, 200) }), ""},
		"keys of words": {keys(func(w *writer) { w.u32(kindU16).b = append(w.b, 200, 200) }),
			""},
		"keys of doubles":     {keys(func(w *writer) { w.u32(kindF64).u64(1 << 62) }), ""},
		"keys of texts":       {keys(func(w *writer) { w.u32(kindText).text("") }), ""},
		"keys of short texts": {keys(func(w *writer) { w.u32(kindText).text("ab") }), ""},
		"keys of arrays":      {keys(func(w *writer) { w.u32(kindArray).u32(kindU8).u64(0) }), ""},
		"texts":               {array(kindText, func(w *writer) { w.text("") }), ""},
		"short texts":         {array(kindText, func(w *writer) { w.text("a") }), ""},
		"medium texts": {array(kindText, func(w *writer) {
			w.text(strings.Repeat("a", 33))
		}), ""},
		"numbers":             {array(kindU64, func(w *writer) { w.u64(1) }), ""},
		"bytes":               {array(kindU8, func(w *writer) { w.b = append(w.b, 1) }), ""},
		"truths":              {array(kindBool, func(w *writer) { w.b = append(w.b, 1) }), ""},
		"empty arrays":        {array(kindArray, func(w *writer) { w.u32(kindU8).u64(0) }), ""},
		"arrays of one byte":  {inner(kindU8, "a"), ""},
		"arrays of one truth": {inner(kindBool, "\x01"), ""},
		"arrays of one word":  {inner(kindU16, "ab"), ""},
		"arrays of one float": {inner(kindF32, "abcd"), ""},
		"arrays of one text":  {inner(kindText, "\x00\x00\x00\x00\x00\x00\x00\x00"), ""},
		"arrays of one array": {
			inner(kindArray, "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), ""},
		"tensors":           {tensors(forward), ""},
		"tensors, backward": {tensors(backward), ""},
		"tensors of rank 1": {tensors(forward, 2), ""},
		"tensors of rank 4": {tensors(forward, 1, 1, 1, 1), ""},
		"one place":         {tensors(func(int) int { return 0 }), "overlaps"},
		"one name": {append(header(n, 0).b, bytes.Repeat(header(0, 0).tensor("a", 0,
			0).b[24:], 2*n)...), "occurs twice"},
		"one key": {append(header(0, n).b, bytes.Repeat(header(0, 0).keyU32("a",
			1).b[24:], n)...), "occurs twice"},
		"a long key":       {header(0, 1).keyU32(long, 1).b, "too long"},
		"a long text":      {header(0, 1).keyText("a", long).b, ""},
		"a long alignment": {header(0, 1).keyTexts(alignmentKey, long).b, "of type []string"},
		"lying lengths":    {lies(maxNesting + 1), "a key of 0 bytes"},
		"longer lists":     {lies(2), "arrays at byte"},
		"the whole file":   {lies(1), "arrays at byte"},
		"lying tensors": {append(header(room/(leastTensor+leastData), 0).b,
			make([]byte, room)...), "empty"},
	} {
		t.Run(name, func(t *testing.T) {
			alloctest.InProportion(t, len(c.file), allocPerByte, 0, c.want, func() error {
				_, err := openBytes(c.file)
				return err
			})
		})
	}
}

// readsAll demands that every tensor has as many bytes as it says.
func readsAll(t *testing.T, f interface {
	Tensors() []tensor.Info
	Section(name string) (*io.SectionReader, error)
}) {
	t.Helper()
	for _, x := range f.Tensors() {
		s, err := f.Section(x.Name)
		if err != nil {
			t.Fatal(err)
		}
		if size, err := tensor.ByteSize(x.DType, x.Shape); err != nil || size != x.Size {
			t.Fatalf("%+v, but %d bytes, %v", x, size, err)
		}
		if n, err := s.ReadAt(make([]byte, x.Size), 0); int64(n) != x.Size {
			t.Fatalf("%+v: %d bytes, %v", x, n, err)
		}
	}
}

// FuzzParse: whatever the file, no panic, memory in proportion to it, an error with a kind or
// tensors that cover the file and can be read.
func FuzzParse(f *testing.F) {
	fixture, err := os.ReadFile("testdata/llama.gguf")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(fixture[:3000])
	f.Add(small(5, 3).epsilon().keyText("tokenizer.ggml.model",
		"gpt2").keyTexts("tokenizer.ggml.tokens", "a", "b").
		keyTexts("tokenizer.ggml.merges", "a b").keyU32("tokenizer.ggml.bos_token_id", 1).
		tensor("token_embd.weight", 1, 0, 8, 2).tensor("blk.0.attn_q.weight", 2, 32, 32,
		4).tensor("blk.0.attn_k.bias", 0, 128, 4).data(32, make([]byte, 144)))
	f.Add(header(2, 2).keyU32(alignmentKey, 64).keyTexts("t", "a", "b").tensor("a", 2, 0, 64,
		2).tensor("b", 30, 128, 3).data(64, make([]byte, 140)))
	f.Add(header(1, 1).text("a").u32(kindArray).u32(kindArray).u64(1).u32(kindBool).u64(1).b)
	f.Add(header(1, 0).tensor("s", 8, 0, 32, 1, 1, 2).data(32, make([]byte, 68)))
	f.Fuzz(func(t *testing.T, b []byte) {
		var file *File
		var err error
		if used := alloctest.Bytes(func() { file, err = openBytes(b) }); used > uint64(
			allocPerByte*len(b)+allocFixed) {
			t.Fatalf("%d bytes allocated for a file of %d", used, len(b))
		}
		if err != nil {
			if !errors.Is(err, errFormat) && !errors.Is(err, errUnsupported) {
				t.Fatalf("no kind: %v", err)
			}
			return
		}
		for _, x := range file.Tensors() {
			// Q2_K makes 1,024 bytes of 84.
			if x.Size <= 0 || x.Size > 13*int64(len(b)) {
				t.Fatalf("%+v in a file of %d bytes", x, len(b))
			}
		}
		readsAll(t, file)
		original, err := NewOriginal(file)
		if err != nil && !errors.Is(err, errFormat) && !errors.Is(err, errUnsupported) {
			t.Fatalf("no kind: %v", err)
		}
		if err == nil {
			readsAll(t, original)
		}
		if _, err := file.Vocabulary(); err != nil && !errors.Is(err, errFormat) &&
			!errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("no kind: %v", err)
		}
	})
}
