package torch

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/windrow-sim/windrow/engine/checkpoint/internal/tensor"
)

// expected has PyTorch's reading of the fixtures; see testdata/make.py.
func expected(t testing.TB) map[string]map[string]struct {
	DType tensor.DType
	Shape []int64
	Hex   string
} {
	t.Helper()
	var doc struct {
		Files map[string]map[string]struct {
			DType tensor.DType
			Shape []int64
			Hex   string
		}
	}
	data, err := os.ReadFile("testdata/expected.json")
	if err == nil {
		err = json.Unmarshal(data, &doc)
	}
	if err != nil || len(doc.Files) < 5 {
		t.Fatalf("%d files, %v", len(doc.Files), err)
	}
	return doc.Files
}

func TestReadsWhatPyTorchReads(t *testing.T) {
	for file, tensors := range expected(t) {
		t.Run(file, func(t *testing.T) {
			f, err := Open(t.Context(), filepath.Join("testdata", file))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if len(f.Tensors()) != len(tensors) || len(f.Notes()) != 0 {
				t.Errorf("%d tensors, want %d; notes %q", len(f.Tensors()), len(tensors), f.Notes())
			}
			for name, want := range tensors {
				got, ok := f.Tensor(name)
				if !ok || got.DType != want.DType || !slices.Equal(got.Shape, want.Shape) ||
					got.Size != int64(len(want.Hex)/2) {
					t.Errorf("%s is %+v, want %s%v", name, got, want.DType, want.Shape)
					continue
				}
				plain, err := hex.DecodeString(want.Hex)
				if err != nil {
					t.Fatal(err)
				}
				s, err := f.Section(name)
				if err != nil {
					t.Fatal(err)
				}
				if err := iotest.TestReader(s, plain); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				everyRange(t, name, s, plain)
			}
		})
	}
}

// everyRange reads every piece of a tensor by itself.
func everyRange(t *testing.T, name string, s io.ReaderAt, plain []byte) {
	t.Helper()
	for from := range plain {
		for to := from; to <= len(plain); to++ {
			p := make([]byte, to-from)
			if n, err := s.ReadAt(p, int64(from)); n != len(p) || !bytes.Equal(p, plain[from:to]) {
				t.Fatalf("%s, bytes %d to %d: %x, want %x; %v", name, from, to, p, plain[from:to],
					err)
			}
		}
	}
}

func TestTensorsKnowHowTheyAreStored(t *testing.T) {
	f, err := Open(t.Context(), "testdata/views.bin")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, want := range map[string]string{"whole": "", "tied": "", "rows": "", "vector": "",
		"parameter": "",
		"columns":   "strided", "transposed": "strided", "part": "strided", "batch": "strided",
		"one": "strided", "half": "strided"} {
		if got, _ := f.Tensor(name); got.Encoding != want {
			t.Errorf("%s: encoding %q, want %q", name, got.Encoding, want)
		}
	}
	whole, _ := f.Tensor("whole")
	tied, _ := f.Tensor("tied")
	rows, _ := f.Tensor("rows")
	if tied.Offset != whole.Offset || rows.Offset != whole.Offset+2*5*4 {
		t.Errorf("tied at %d, rows at %d, the storage at %d", tied.Offset, rows.Offset,
			whole.Offset)
	}
	if _, err := f.Section("none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing tensor: %v", err)
	}
}

func TestBigEndianFiles(t *testing.T) {
	pickle := newPickle().op("}(").text("a").tensor("FloatStorage", "0", 4, 0, []int64{2, 2},
		[]int64{2, 1}).
		text("t").tensor("FloatStorage", "0", 4, 0, []int64{2, 2}, []int64{1, 2}).
		text("b").tensor("ByteStorage", "1", 2, 0, []int64{2}, []int64{1}).op("u.").String()
	data := "\x00\x01\x02\x03\x10\x11\x12\x13\x20\x21\x22\x23\x30\x31\x32\x33"
	f, err := openBytes(archived(t, pickle, "byteorder", "big", "data/0", data, "data/1",
		"\x07\x08"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"a": "\x03\x02\x01\x00\x13\x12\x11\x10\x23\x22\x21\x20\x33\x32\x31\x30",
		"t": "\x03\x02\x01\x00\x23\x22\x21\x20\x13\x12\x11\x10\x33\x32\x31\x30",
		"b": "\x07\x08",
	} {
		s, err := f.Section(name)
		if err != nil {
			t.Fatal(err)
		}
		everyRange(t, name, s, []byte(want))
	}
	for name, want := range map[string]string{"a": "big-endian", "t": "strided big-endian",
		"b": ""} {
		if got, _ := f.Tensor(name); got.Encoding != want {
			t.Errorf("%s: encoding %q, want %q", name, got.Encoding, want)
		}
	}
	_, err = openBytes(archived(t, pickle, "byteorder", "middle", "data/0", data, "data/1",
		"\x07\x08"))
	refused(t, err, errFormat, `byte order "middle"`)
}

func TestRefusesWhatIsNotADictionaryOfTensors(t *testing.T) {
	for file, texts := range map[string][]string{
		"legacy.bin":       {"before 1.6", "torch.save it again"},
		"protocol4.bin":    {"protocol 2", "pickle_protocol"},
		"permuted.bin":     {"shape [4 2 3]", "strides [1 12 4]", ".contiguous()"},
		"expanded.bin":     {"expanded", "shape [1000]"},
		"nested.bin":       {`"state_dict" is a dictionary`},
		"float8.bin":       {"torch._utils._rebuild_tensor_v3"},
		"list.bin":         {"a list, not a dictionary"},
		"whole_module.bin": {"torch.nn.modules.linear.Linear", "was not run"},
		"script.bin":       {"TorchScript"},
	} {
		_, err := Open(t.Context(), filepath.Join("testdata", file))
		refused(t, err, errUnsupported, append(texts, file)...)
	}
	f, err := Open(t.Context(), "testdata/extras.bin")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if notes := strings.Join(f.Notes(), ""); len(f.Tensors()) != 1 || !strings.HasSuffix(notes,
		"epoch, list, none, note") {
		t.Errorf("%d tensors, notes %q", len(f.Tensors()), notes)
	}
}

func TestRefusesWhatIsNotThePlainArchive(t *testing.T) {
	whole := archived(t, one("HalfStorage", "0", 2, 0, []int64{2}, []int64{1}), "data/0", "abcd")
	if _, err := openBytes(whole); err != nil {
		t.Fatal(err)
	}
	packed, err := os.ReadFile("testdata/module.bin")
	if err != nil {
		t.Fatal(err)
	}
	// The method of a compressed entry is 8, in the local header and in the directory.
	deflated := bytes.ReplaceAll(packed, []byte("PK\x01\x02\x00\x00\x00\x00\x08\x08\x00\x00"),
		[]byte("PK\x01\x02\x00\x00\x00\x00\x08\x08\x08\x00"))
	if bytes.Equal(packed, deflated) {
		t.Fatal("the directory of module.bin has another form than this test knows")
	}
	_, err = openBytes(deflated)
	refused(t, err, errUnsupported, "compressed or encrypted")

	end := bytes.LastIndex(whole, []byte(endMagic))
	for name, c := range map[string]struct {
		at   int // behind the start of the last record
		put  string
		want string
	}{
		"fewer entries":      {10, "\x01\x00", "bytes behind its 1 entries"},
		"more entries":       {10, "\x03\x00", "3 entries in"},
		"a longer directory": {12, "\xff\xff\x00\x00", "zip directory: 65535 bytes"},
		"another place":      {16, "\x00\x00\x00\x00", "at byte 0, but it ends at byte"},
		"a comment": {20, "\x01\x00", "0 bytes after the end of the zip archive, which " +
			"says 1"},
	} {
		broken := slices.Clone(whole)
		copy(broken[end+c.at:], c.put)
		_, err := openBytes(broken)
		if refused(t, err, errFormat, c.want); t.Failed() {
			t.Log(name)
		}
	}
	commented := append(slices.Clone(whole), "comment"...)
	commented[end+20] = byte(len("comment"))
	if _, err := openBytes(commented); err != nil {
		t.Error(err)
	}
	// module.bin has the numbers in 32 and in 64 bits; the copy in front must say the same.
	contradicting := slices.Clone(packed)
	contradicting[bytes.Index(packed, []byte(end64Magic))+32]--
	_, err = openBytes(contradicting)
	refused(t, err, errFormat, "contradict each other: 9 and")
	several := bytes.Clone(packed)
	several[bytes.LastIndex(packed, []byte(locator64Magic))+6] = 'Z' // of the number of the disk
	_, err = openBytes(several)
	refused(t, err, errFormat, "on disk 5898240 of 1")

	_, err = openBytes([]byte("not a checkpoint at all"))
	refused(t, err, errFormat, "not a file of torch.save")
	_, err = openBytes(nil)
	refused(t, err, errFormat, "0 bytes")
	_, err = openArchive(tensor.NewRaw("torch", "test", bytes.NewReader(whole), int64(len(whole))),
		newBudget(0), 100)
	refused(t, err, errFormat, "a zip directory of more than 100 bytes")
	_, err = openBytes(bytes.ReplaceAll(whole, []byte("data.pkl"), []byte("data.zip")))
	refused(t, err, errFormat, "0 entries NAME/data.pkl")
	_, err = openBytes(bytes.Replace(whole, []byte("PK\x03\x04\x14\x00\x08\x00\x00\x00"),
		[]byte("PK\x03\x04\x14\x00\x08\x00\x08\x00"), 1))
	if err != nil { // of the local header only its length counts
		t.Error(err)
	}
	second := bytes.LastIndex(whole, []byte(localMagic))
	_, err = openBytes(append(append(slices.Clone(whole[:second]), "NONE"...), whole[second+4:]...))
	refused(t, err, errFormat, `zip entry "x/data/0"`)
	_, err = openBytes(archived(t, "", "data.pkl", ""))
	refused(t, err, errFormat, "occurs twice")
	_, err = openBytes(archived(t, one("HalfStorage", "0", 2, 0, []int64{2}, []int64{1})))
	refused(t, err, errFormat, `no zip entry "x/data/0"`)
	_, err = Open(t.Context(), t.TempDir())
	refused(t, err, errFormat, "is a folder")
	_, err = Open(t.Context(), filepath.Join(t.TempDir(), "none"))
	refused(t, err, fs.ErrNotExist)
}
