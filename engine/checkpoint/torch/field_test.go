package torch

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const top = math.MaxInt64

func TestField_M11_GitLFSPointer(t *testing.T) {
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("0", 64) +
		"\nsize 4000\n"
	path := filepath.Join(t.TempDir(), "pytorch_model.bin")
	if err := os.WriteFile(path, []byte(pointer), 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), path)
	refused(t, err, errFormat, path, "Git LFS pointer", "git lfs pull")
}

func TestField_M12_TruncatedFile(t *testing.T) {
	whole := archived(t, one("HalfStorage", "0", 4096, 0, []int64{4096}, []int64{1}), "data/0",
		strings.Repeat("ab", 4096))
	_, err := openBytes(whole[:len(whole)-4096])
	refused(t, err, errFormat, "truncated", fmt.Sprint(len(whole)-4096), "download it again")

	// A whole directory behind incomplete data: the result of a download that was patched together.
	cut := bytes.Replace(whole, []byte(strings.Repeat("ab", 2048)), nil, 1)
	_, err = openBytes(cut)
	refused(t, err, errFormat)

	// A directory that promises more than is there: both sizes of the last entry, 2000 instead of
	// 4.
	long := archived(t, one("HalfStorage", "0", 1000, 0, []int64{1000}, []int64{1}), "data/0",
		"abcd")
	entry := long[bytes.LastIndex(long, []byte("PK\x01\x02")):]
	binary.LittleEndian.PutUint32(entry[20:], 2000)
	binary.LittleEndian.PutUint32(entry[24:], 2000)
	_, err = openBytes(long)
	refused(t, err, errFormat, `truncated: the zip entry "x/data/0" promises 2000 bytes`,
		fmt.Sprint(len(long)))

	path := filepath.Join(t.TempDir(), "a.bin")
	if err := os.WriteFile(path, whole, 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Truncate(path, 1000); err != nil {
		t.Skip(err)
	}
	s, err := f.Section("a")
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.ReadAt(make([]byte, 8192), 0)
	refused(t, err, errFormat, "truncated", "since it was opened")
}

func TestField_M14_LengthsAndDuplicates(t *testing.T) {
	a := func(p *pickler) *pickler {
		return p.text("a").tensor("HalfStorage", "0", 2, 0, []int64{2}, []int64{1})
	}
	for name, pickle := range map[string]string{
		"at once": a(a(newPickle().op("}("))).op("u.").String(),
		"later":   a(a(newPickle().op("}")).op("s")).op("s.").String(),
	} {
		_, err := openBytes(archived(t, pickle, "data/0", "abcd"))
		if refused(t, err, errFormat, `"a" occurs twice`); t.Failed() {
			t.Log(name)
		}
	}
	// Lengths of 2^32−1 and 2^64−1 where the pickle ends.
	_, err := openBytes(archived(t, "\x80\x02X\xff\xff\xff\xffabc"))
	refused(t, err, errFormat, "4294967295 bytes are needed, the pickle has 3 left")
	_, err = openBytes(archived(t, one("HalfStorage", "0", math.MaxInt64, 0, []int64{2},
		[]int64{1}), "data/0", "abcd"))
	refused(t, err, errFormat, "more than a file can hold")
	// One storage under two descriptions.
	for want, second := range map[string]struct {
		class    string
		elements int64
	}{`storage "0" is 2 F16 and 1 F32`: {"FloatStorage", 1}, `storage "0" is 2 F16 and 2 BF16`: {
		"BFloat16Storage", 2}} {
		twice := newPickle().op("}(").text("a").tensor("HalfStorage", "0", 2, 0, []int64{2},
			[]int64{1}).
			text("b").tensor(second.class, "0", second.elements, 0, []int64{1},
			[]int64{1}).op("u.").String()
		_, err = openBytes(archived(t, twice, "data/0", "abcd"))
		refused(t, err, errFormat, want)
	}
}

func TestField_M16_OffsetsShapesAndTypes(t *testing.T) {
	for name, c := range map[string]struct {
		class           string
		elements, start int64
		shape, strides  []int64
		kind            error
		want            string
	}{
		"negative offset": {"FloatStorage", 1, -1, []int64{1}, []int64{1}, errFormat,
			"starts at element -1"},
		"negative stride": {"FloatStorage", 1, 0, []int64{1}, []int64{-1}, errFormat,
			"strides [-1]"},
		"negative shape": {"FloatStorage", 1, 0, []int64{-1}, []int64{1}, errFormat,
			"negative dimension"},
		"negative storage": {"FloatStorage", -1, 0, []int64{1}, []int64{1}, errFormat,
			"elements the number -1"},
		"a large shape": {"FloatStorage", 1, 0, []int64{1000, 1000}, []int64{1000, 1},
			errFormat, "reaches element 999999, the storage has 1"},
		"the end": {"FloatStorage", 1, 1, []int64{1}, []int64{1}, errFormat,
			"reaches element 1"},
		"an overflowing shape": {"FloatStorage", 1, 0, []int64{1 << 32, 1 << 32}, []int64{0, 0},
			errFormat, "more than a file can hold"},
		"strides that wrap": {"FloatStorage", 1, 0, []int64{3}, []int64{top}, errFormat,
			"reaches element"},
		"strides that wrap 64": {"FloatStorage", 1, 0, []int64{5, 5}, []int64{top, top}, errFormat,
			"strides"},
		"offset and strides": {"FloatStorage", 1, top, []int64{3}, []int64{top}, errFormat,
			"strides"},
		"expanded": {"FloatStorage", 1, 0, []int64{1000, 1000}, []int64{0, 0},
			errUnsupported, "expanded"},
		"rank": {"FloatStorage", 1, 0, []int64{1}, []int64{1, 1}, errFormat,
			"1 dimensions with 2 strides"},
		"unknown type": {"QInt8Storage", 4, 0, []int64{4}, []int64{1}, errUnsupported,
			`"torch.QInt8Storage"`},
		"more than the entry": {"FloatStorage", 2, 0, []int64{1}, []int64{1}, errFormat,
			"4 bytes, the pickle says 8"},
		"less than the entry": {"HalfStorage", 1, 0, []int64{1}, []int64{1}, errFormat,
			"4 bytes, the pickle says 2"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := openBytes(archived(t, one(c.class, "0", c.elements, c.start, c.shape,
				c.strides), "data/0", "abcd"))
			refused(t, err, c.kind, c.want)
		})
	}
	// The last element is at 2·(2^63−1) + 2 = 2^64, which wraps to 0.
	_, err := openBytes(archived(t, one("ByteStorage", "0", 16, 0, []int64{3, 3}, []int64{top, 1}),
		"data/0", "0123456789abcdef"))
	refused(t, err, errFormat, "strides [9223372036854775807 1]")
}

func TestField_M17_EmptyAndScalarTensors(t *testing.T) {
	pickle := newPickle().op("}(").text("empty").tensor("HalfStorage", "0", 0, 0, []int64{0},
		[]int64{1}).
		text("late").tensor("HalfStorage", "1", 1, top, []int64{7, 0}, []int64{1, 1}).
		text("scalar").tensor("HalfStorage", "1", 1, 0, nil, nil).op("u.").String()
	f, err := openBytes(archived(t, pickle, "data/0", "", "data/1", "ab"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"empty": "", "late": "", "scalar": "ab"} {
		s, err := f.Section(name)
		if err != nil {
			t.Fatal(err)
		}
		everyRange(t, name, s, []byte(want))
		if x, _ := f.Tensor(name); x.Size != int64(len(want)) {
			t.Errorf("%+v", x)
		}
	}
	if f, err := openBytes(archived(t, newPickle().op("}.").String())); err != nil ||
		len(f.Tensors()) != 0 {
		t.Errorf("a file without tensors: %v", err)
	}
}
