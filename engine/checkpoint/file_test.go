package checkpoint

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine/checkpoint/internal/tensor"
	"github.com/windrow-sim/windrow/internal/alloctest"
)

// raw makes a file from the text of a header and n bytes of data.
func raw(header string, n int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	b = append(b, header...)
	for i := range n {
		b = append(b, byte(i))
	}
	return b
}

func openBytes(b []byte) (*File, error) {
	return newFile(tensor.NewRaw("checkpoint", "test", bytes.NewReader(b), int64(len(b))))
}

// refused demands an error of a kind that contains every one of the texts.
func refused(t *testing.T, err, kind error, texts ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("got %v, want an error of kind %v", err, kind)
	}
	for _, s := range texts {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%q does not say %q", err, s)
		}
	}
}

func TestReadsTensorsInOrderOfTheirData(t *testing.T) {
	f,
		err := openBytes(
		raw(`{"__metadata__":{"k":"v"},"b":{"dtype":"F16","shape":[2,1],"data_offsets":[3,7]},`+
			`"B":{"shape":[3],"data_offsets":[0,3],"dtype":"U8"}}   `, 7))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, x := range f.Tensors() {
		names = append(names, x.Name)
	}
	if !slices.Equal(names, []string{"B", "b"}) {
		t.Errorf("order %v", names)
	}
	b, _ := f.Tensor("b")
	if b.Offset != f.DataOffset()+3 || b.Size != 4 || b.Elements() != 2 || b.DType != F16 {
		t.Errorf("b is %+v", b)
	}
	dst := make([]byte, 4)
	if err := f.ReadTensor("b", dst); err != nil || !bytes.Equal(dst, []byte{3, 4, 5, 6}) {
		t.Errorf("b holds %v, %v", dst, err)
	}
	s, err := f.Section("B")
	if err != nil {
		t.Fatal(err)
	}
	if all, err := io.ReadAll(s); err != nil || !bytes.Equal(all, []byte{0, 1, 2}) {
		t.Errorf("B holds %v, %v", all, err)
	}
	if f.Metadata()["k"] != "v" {
		t.Errorf("metadata %v", f.Metadata())
	}
	if err := f.ReadTensor("b", make([]byte, 5)); err == nil {
		t.Error("a buffer of the wrong size was accepted")
	}
	if err := f.ReadTensor("x", nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing tensor: %v", err)
	}
}

func TestRefusesBrokenHeaders(t *testing.T) {
	one := func(s string) string { return `{"a":` + s + `}` }
	for name, c := range map[string]struct {
		header string
		data   int
		want   string
	}{
		"no object":     {`[]`, 0, "not a JSON object"},
		"leading space": {` {}`, 0, "not a JSON object"},
		"text after":    {`{}{}`, 0, "after the end"},
		"cut":           {`{"a":{"dtype":"U8"`, 0, "unexpected EOF"},
		"trailing comma": {`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},}`, 1,
			"invalid character"},
		"half a character": {`{"\ud800":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1,
			"surrogate"},
		"not UTF-8": {"{\"\xff\":{}}", 0, "UTF-8"},
		"unknown field": {one(`{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1}`), 1,
			`unknown field "x"`},
		"case of a field": {one(`{"DType":"U8","shape":[1],"data_offsets":[0,1]}`), 1,
			"unknown field"},
		"no shape": {one(`{"dtype":"U8","data_offsets":[0,1]}`), 1, "are needed"},
		"three offsets": {one(`{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}`), 1,
			"are needed"},
		"fraction": {one(`{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}`), 1,
			"whole number"},
		"text as number": {one(`{"dtype":"U8","shape":["1"],"data_offsets":[0,1]}`), 1,
			"whole number"},
		"hole in front": {one(`{"dtype":"U8","shape":[1],"data_offsets":[1,2]}`), 2,
			"belong to no tensor"},
		"data after": {one(`{"dtype":"U8","shape":[1],"data_offsets":[0,1]}`), 2,
			"after the last tensor"},
		"metadata": {`{"__metadata__":{"a":1}}`, 0, "not a string"},
		"overlap": {
			`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 3, "inside tensor"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := openBytes(raw(c.header, c.data))
			refused(t, err, ErrFormat, c.want)
		})
	}
	_, err := openBytes([]byte("short"))
	refused(t, err, ErrFormat, "5 bytes")
}

func TestField_M11_GitLFSPointer(t *testing.T) {
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("0", 64) +
		"\nsize 4000\n"
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := os.WriteFile(path, []byte(pointer), 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), path)
	refused(t, err, ErrFormat, path, "Git LFS pointer", "git lfs pull")
}

func TestField_M12_TruncatedFile(t *testing.T) {
	whole := raw(`{"a":{"dtype":"U8","shape":[8192],"data_offsets":[0,8192]}}`, 8192)
	_, err := openBytes(whole[:len(whole)-4096])
	refused(t, err, ErrFormat, "truncated", fmt.Sprint(len(whole)), fmt.Sprint(len(whole)-4096))
	_, err = openBytes(whole[:30])
	refused(t, err, ErrFormat, "truncated", "the file has 30")

	path := filepath.Join(t.TempDir(), "a.safetensors")
	if err := os.WriteFile(path, whole, 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Truncate(path, int64(len(whole)-1)); err != nil {
		t.Skip(err)
	}
	refused(t, f.ReadTensor("a", make([]byte, 8192)), ErrFormat, "truncated", "since it was opened")
}

func TestField_M14_HeaderLengthAndDuplicates(t *testing.T) {
	_, err := openBytes(append(bytes.Repeat([]byte{0xFF}, 8), "{}"...))
	refused(t, err, ErrFormat, "header length 18446744073709551615")
	info := `{"dtype":"U8","shape":[1],"data_offsets":[0,1]}`
	_, err = openBytes(raw(`{"a":`+info+`,"a":`+info+`}`, 1))
	refused(t, err, ErrFormat, `"a" occurs twice`)
	_, err = openBytes(raw(`{"a":{"dtype":"U8","shape":[1],"shape":[1],"data_offsets":[0,1]}}`, 1))
	refused(t, err, ErrFormat, `"shape" occurs twice`)
	_, err = openBytes(raw(`{"__metadata__":{"k":"1","\u006b":"2"}}`, 0))
	refused(t, err, ErrFormat, `"k" occurs twice`)
}

func TestField_M16_OffsetsShapesAndTypes(t *testing.T) {
	for name, c := range map[string]struct {
		info string
		kind error
		want string
	}{
		"negative offset": {`{"dtype":"U8","shape":[1],"data_offsets":[-1,0]}`, ErrFormat,
			"-1 is not a whole number from 0"},
		"reversed offsets": {`{"dtype":"U8","shape":[1],"data_offsets":[1,0]}`, ErrFormat,
			"reversed"},
		"a large shape": {`{"dtype":"F32","shape":[1000,1000],"data_offsets":[0,4]}`,
			ErrFormat, "4000000 bytes"},
		"an overflowing shape": {
			`{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}`, ErrFormat,
			"more than a file can hold"},
		"overflow to 4": {
			`{"dtype":"U8","shape":[9223372036854775807,9223372036854775807,4],"data_offsets":[0,4]}`, ErrFormat, "more than"},
		"unknown type": {`{"dtype":"Q4_0","shape":[4],"data_offsets":[0,4]}`,
			ErrUnsupported, `dtype "Q4_0"`},
		"beyond 63 bits": {
			`{"dtype":"U8","shape":[1],"data_offsets":[9223372036854775807,9223372036854775808]}`,
			ErrFormat, "whole number"},
		"at the end of space": {
			`{"dtype":"U8","shape":[9223372036854775807],"data_offsets":[0,9223372036854775807]}`,
			ErrFormat, "truncated"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := openBytes(raw(`{"x":`+c.info+`}`, 4))
			refused(t, err, c.kind, c.want)
		})
	}
}

func TestField_M17_EmptyAndScalarTensors(t *testing.T) {
	f, err := openBytes(raw(`{"scaled_fp8":{"dtype":"F8_E4M3","shape":[0],"data_offsets":[0,0]},`+
		`"scalar":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"late":{"dtype":"U8","shape":[7,0],"data_offsets":[4,4]}}`, 4))
	if err != nil {
		t.Fatal(err)
	}
	if x, _ := f.Tensor("scalar"); x.Elements() != 1 || len(x.Shape) != 0 {
		t.Errorf("scalar is %+v", x)
	}
	if err := f.ReadTensor("scaled_fp8", nil); err != nil {
		t.Error(err)
	}
	if f, err := openBytes(raw(`{}`, 0)); err != nil || len(f.Tensors()) != 0 {
		t.Errorf("a file without tensors: %v", err)
	}
}

func TestOpenRefusesAFolder(t *testing.T) {
	_, err := Open(t.Context(), t.TempDir())
	if err == nil {
		t.Fatal("a folder was opened")
	}
	_, err = Open(t.Context(), filepath.Join(t.TempDir(), "none"))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// Opening a file of n bytes may allocate this much in all. The bytes that a test holds as the file
// are not among them.
const (
	allocPerByte = 4
	// the File, the scanners, the text of an error, and the fuzzing engine's own work
	allocFixed = 1 << 16
)

// TestOpeningTakesMemoryInProportion opens files that hold as many tensors, dimensions and metadata
// in their bytes as JSON can, and files whose error has much to name.
func TestOpeningTakesMemoryInProportion(t *testing.T) {
	const n = 1 << 17
	word := func(i int) string { return strconv.FormatInt(int64(i), 36) }
	long := strings.Repeat("a", 20*n)
	object := func(n int, member func(i int) string) string {
		var out strings.Builder
		for i := range n {
			out.WriteString(",")
			out.WriteString(member(i))
		}
		return "{" + out.String()[1:] + "}"
	}
	scalar := func(i int) string {
		return fmt.Sprintf(`"%s":{"dtype":"U8","shape":[],"data_offsets":[%d,%d]}`, word(i), i, i+1)
	}
	shaped := func(shape string) func(i int) string {
		return func(i int) string {
			return fmt.Sprintf(`"%s":{"dtype":"U8","shape":[%s],"data_offsets":[0,0]}`, word(i),
				shape)
		}
	}
	dims := strings.Repeat("0,", maxRank-1) + "0"
	for name, c := range map[string]struct {
		header string
		data   int
		want   string // of the error
	}{
		"scalars":    {object(n, scalar), n, ""},
		"reversed":   {object(n, func(i int) string { return scalar(n - 1 - i) }), n, ""},
		"empty":      {object(n, shaped("0")), 0, ""},
		"dimensions": {object(n, shaped(dims)), 0, ""},
		"escaped names": {object(n, func(i int) string { return `"\n` + shaped("0")(i)[1:] }), 0,
			""},
		"types": {object(n, func(i int) string {
			return strings.ReplaceAll(shaped("0")(i), "U8", []string{"F8_E4M3", "\\u00498"}[i%2])
		}), 0, ""},
		"metadata": {`{"__metadata__":` + object(n, func(i int) string {
			return `"` +
				word(i) + `":""`
		}) + `}`, 0, ""},
		"escaped metadata": {`{"__metadata__":` + object(n, func(i int) string {
			return `"\t` +
				word(i) + `":"\n"`
		}) + `}`, 0, ""},
		"a long value":     {`{"__metadata__":{"a":"` + long + `"}}`, 0, ""},
		"an escaped value": {`{"__metadata__":{"a":"` + strings.Repeat(`\"`, n) + `"}}`, 0, ""},
		"a long name": {`{"` + long + `":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, 0,
			""},
		"an escaped name": {`{"\n` + long + `":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`,
			0, ""},
		"a long name twice": {`{"` + long + `":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"` +
			long + `":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, 0, "occurs twice"},
		"a name twice": {object(n, func(i int) string { return scalar(i % (n - 1)) }), n,
			`"0" occurs twice`},
		"metadata twice": {`{"__metadata__":` + object(n, func(i int) string {
			return `"` +
				word(i%(n-1)) + `":""`
		}) + `}`, 0, `"0" occurs twice`},
		"an error": {`{"` + long + `":{"` + long + `":1}}`, 0, "unknown field"},
		"a type": {`{"` + long + `":{"dtype":"` + long +
			`","shape":[],"data_offsets":[0,0]}}`, 0, `dtype "aaa`},
		"a number": {`{"` + long + `":{"shape":[` + strings.Repeat("1", 20*n) + `]}}`, 0,
			"not a whole number"},
		"many dimensions": {object(1, shaped(strings.Repeat("0,", n)+"0")), 0,
			"more than 24 numbers"},
		"the last brace":    {strings.TrimSuffix(object(n, scalar), "}"), n, "unexpected EOF"},
		"nothing but lists": {strings.Repeat(`{"":`, n), 0, "unknown field"},
	} {
		t.Run(name, func(t *testing.T) {
			file := raw(c.header, c.data)
			alloctest.InProportion(t, len(file), allocPerByte, 0, c.want, func() error {
				_, err := openBytes(file)
				return err
			})
		})
	}
}

// FuzzHeader: opening takes memory in proportion to the file; a header that is accepted describes
// the file completely, means the same to encoding/json, and survives being written again.
func FuzzHeader(f *testing.F) {
	f.Add(
		[]byte(
			`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"F16","shape":[1,1],"data_offsets":[2,4]}} `), uint16(4))
	f.Add([]byte(`{"__metadata__":{"k":"v"},"s":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}`),
		uint16(4))
	f.Add(
		[]byte(
			`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`), uint16(1))
	f.Fuzz(func(t *testing.T, header []byte, n uint16) {
		whole := raw(string(header), int(n))
		var file *File
		var err error
		if used := alloctest.Bytes(func() { file, err = openBytes(whole) }); used > uint64(
			allocPerByte*len(whole)+allocFixed) {
			t.Fatalf("%d bytes allocated for a file of %d", used, len(whole))
		}
		if err != nil {
			if !errors.Is(err, ErrFormat) && !errors.Is(err, ErrUnsupported) {
				t.Fatalf("no kind: %v", err)
			}
			return
		}
		end := file.DataOffset()
		for _, x := range file.Tensors() {
			if x.Offset != end {
				t.Fatalf("%+v does not start at %d", x, end)
			}
			end += x.Size
		}
		if end != file.Size() {
			t.Fatalf("tensors end at %d of %d", end, file.Size())
		}
		sameAsPlain(t, header, file)
		placed, again, err := encodeHeader(file.Tensors(), file.Metadata(), WriterOptions{
			HeaderAlign: 64})
		if err != nil {
			t.Fatal(err)
		}
		if len(again)%64 != 0 {
			t.Fatalf("header of %d bytes is not aligned", len(again))
		}
		got, err := parseHeader(again[8:], int64(len(again)))
		if err != nil {
			t.Fatalf("%v in %s", err, again)
		}
		if fmt.Sprint(got.tensors, got.metadata()) != fmt.Sprint(placed, file.Metadata()) {
			t.Fatalf("wrote %v\nread  %v", placed, got.tensors)
		}
	})
}

// sameAsPlain compares with the obvious use of encoding/json.
func sameAsPlain(t *testing.T, header []byte, file *File) {
	plain := map[string]json.RawMessage{}
	if err := json.Unmarshal(header, &plain); err != nil {
		t.Fatalf("encoding/json refuses %q: %v", header, err)
	}
	delete(plain, metadataKey)
	if len(plain) != len(file.Tensors()) {
		t.Fatalf("%d tensors, encoding/json finds %d", len(file.Tensors()), len(plain))
	}
	for name, text := range plain {
		var want struct {
			DType   DType   `json:"dtype"`
			Shape   []int64 `json:"shape"`
			Offsets []int64 `json:"data_offsets"`
		}
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		got, ok := file.Tensor(name)
		if !ok || got.DType != want.DType || !slices.Equal(got.Shape, want.Shape) ||
			got.Offset != file.DataOffset()+want.Offsets[0] ||
			got.Size != want.Offsets[1]-want.Offsets[0] {
			t.Fatalf("tensor %q is %+v, encoding/json reads %+v", name, got, want)
		}
	}
}

// TestField_F16_LongHeaders: a header may be longer than the reference library's limit of 100 MB.
// A length that no file has is not a safetensors file.
func TestField_F16_LongHeaders(t *testing.T) {
	write := func(length uint64, header string, pad int) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), "x.safetensors")
		text := binary.LittleEndian.AppendUint64(nil, length)
		text = append(append(text, header...), bytes.Repeat([]byte(" "), pad)...)
		if err := os.WriteFile(path, text, 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const header, long = `{"__metadata__":{"a":"b"}}`, 101_000_000
	f, err := Open(t.Context(), write(long, header, long-len(header)))
	if err != nil {
		t.Fatal(err)
	}
	if f.Metadata()["a"] != "b" {
		t.Errorf("metadata %v", f.Metadata())
	}
	f.Close()
	for length, want := range map[uint64]string{
		1 << 40:       "this is not a safetensors file",
		maxHeader + 1: "this is not a safetensors file",
		maxHeader:     "truncated: the header alone needs",
	} {
		_, err := Open(t.Context(), write(length, header, 0))
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes: %v", length, err)
		}
	}
	// A file that is as large as it says: holes take no disk.
	path := write(maxHeader+1, header, 0)
	if err := os.Truncate(path, maxHeader+64); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), path); !errors.Is(err, ErrUnsupported) {
		t.Errorf("a header beyond the limit: %v", err)
	}
}
