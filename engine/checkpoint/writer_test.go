package checkpoint

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/windrow-sim/windrow/internal/output"
	"github.com/windrow-sim/windrow/internal/output/outputtest"
)

func sample() []TensorInfo {
	return []TensorInfo{
		{Name: "norm <&>", DType: F32, Shape: []int64{3}},
		{Name: "none", DType: F16, Shape: []int64{0, 4}},
		{Name: "bundles", DType: F16, Shape: []int64{2, 5}},
		{Name: "scalar", DType: U8},
	}
}

// write writes every tensor of a file with bytes that tell its index, and commits.
func write(path string, tensors []TensorInfo, meta map[string]string, opt WriterOptions) error {
	w, err := NewWriter(path, tensors, meta, opt)
	if err != nil {
		return err
	}
	defer w.Abort()
	for i, x := range w.Tensors() {
		if err := w.Begin(x.Name); err != nil {
			return err
		}
		half := bytes.Repeat([]byte{byte(i + 1)}, int(x.Size/2))
		if _, err := w.Write(half); err != nil {
			return err
		}
		if _, err := w.Write(bytes.Repeat([]byte{byte(i + 1)}, int(x.Size)-len(half))); err != nil {
			return err
		}
	}
	return w.Commit()
}

// onlyIn demands that a folder holds these files and nothing else.
func onlyIn(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("the folder holds %v, want %v", got, want)
	}
}

func TestWriterRoundTripAlignedAndRepeatable(t *testing.T) {
	dir := t.TempDir()
	meta := map[string]string{"z": "1", "a": "<json>\"\n", "m": "x"}
	opt := WriterOptions{HeaderAlign: 4096, AlignTensor: "bundles"}
	path := filepath.Join(dir, "x.safetensors")
	if err := write(path, sample(), meta, opt); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i, x := range sample() {
		got, ok := f.Tensor(x.Name)
		if !ok || got.DType != x.DType {
			t.Fatalf("tensor %q: %+v", x.Name, got)
		}
		data := make([]byte, got.Size)
		if err := f.ReadTensor(x.Name, data); err != nil ||
			!bytes.Equal(data, bytes.Repeat([]byte{byte(i + 1)}, len(data))) {
			t.Errorf("tensor %q holds %v, %v", x.Name, data, err)
		}
	}
	if b, _ := f.Tensor("bundles"); b.Offset%4096 != 0 {
		t.Errorf("bundles start at %d", b.Offset)
	}
	for k, v := range meta {
		if f.Metadata()[k] != v {
			t.Errorf("metadata %q is %q", k, f.Metadata()[k])
		}
	}
	if err := write(path, sample(), meta, opt); err != nil {
		t.Fatal(err)
	}
	if second, _ := os.ReadFile(path); !bytes.Equal(first, second) {
		t.Error("the same input gave another file")
	}
	onlyIn(t, dir, "x.safetensors")
}

func TestWriterRefusesWhatItWasNotTold(t *testing.T) {
	for name, c := range map[string]struct {
		misuse func(w *Writer) error
		want   string
	}{
		"order": {func(w *Writer) error { return w.Begin("bundles") },
			`"norm <&>" is next`},
		"before Begin": {func(w *Writer) error { _, err := w.Write([]byte{1}); return err },
			"more than the current"},
		"too much": {func(w *Writer) error {
			w.Begin("norm <&>")
			_,
				err := w.Write(make([]byte, 13))
			return err
		}, "1 bytes more"},
		"too little": {func(w *Writer) error { w.Begin("norm <&>"); return w.Begin("none") },
			"12 bytes are missing"},
		"commit early": {func(w *Writer) error { return w.Commit() },
			`"norm <&>" was not written`},
		"commit partial": {func(w *Writer) error { w.Begin("norm <&>"); return w.Commit() },
			"12 bytes are missing"},
		"after abort": {func(w *Writer) error { w.Abort(); return w.Commit() }, "aborted"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			w, err := NewWriter(filepath.Join(dir, "x"), sample(), nil, WriterOptions{})
			if err != nil {
				t.Fatal(err)
			}
			err = c.misuse(w)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if again := w.Commit(); again == nil || again.Error() != err.Error() {
				t.Errorf("the error was forgotten: %v", again)
			}
			onlyIn(t, dir)
		})
	}
}

func TestWriterRefusesBadPlans(t *testing.T) {
	u8 := func(name string) TensorInfo {
		return TensorInfo{Name: name, DType: U8, Shape: []int64{
			1}}
	}
	for name, c := range map[string]struct {
		tensors []TensorInfo
		meta    map[string]string
		opt     WriterOptions
	}{
		"name twice":    {tensors: []TensorInfo{u8("a"), u8("a")}},
		"reserved name": {tensors: []TensorInfo{u8("__metadata__")}},
		"no type":       {tensors: []TensorInfo{{Name: "a", DType: "X"}}},
		"negative":      {tensors: []TensorInfo{{Name: "a", DType: U8, Shape: []int64{-1}}}},
		"too large": {tensors: []TensorInfo{{Name: "a", DType: U8, Shape: []int64{1 << 62}},
			{Name: "b", DType: U8, Shape: []int64{1 << 62}}}},
		"many dims": {tensors: []TensorInfo{{Name: "a", DType: U8, Shape: slices.Repeat([]int64{
			1}, maxRank+1)}}},
		"no such align": {tensors: []TensorInfo{u8("a")}, opt: WriterOptions{AlignTensor: "b"}},
		"not UTF-8":     {tensors: []TensorInfo{u8("\xff")}},
		"bad metadata":  {meta: map[string]string{"a": "\xff"}},
		"bad alignment": {opt: WriterOptions{HeaderAlign: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if _, err := NewWriter(filepath.Join(dir, "x"), c.tensors, c.meta, c.opt); err == nil {
				t.Error("accepted")
			}
			onlyIn(t, dir)
		})
	}
}

func TestFullDiskLeavesNothingAndKeepsTheOldFile(t *testing.T) {
	for name, disk := range map[string]output.FS{
		"in the header": &outputtest.Full{Room: 10, Err: syscall.ENOSPC},
		"in the data":   &outputtest.Full{Room: 400, Err: syscall.ENOSPC},
		// open, write twice, sync, close
		"at sync":  &outputtest.Faults{At: 4, Err: syscall.EIO},
		"at close": &outputtest.Faults{At: 5, Err: syscall.EDQUOT},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "x")
			if err := os.WriteFile(path, []byte("old"), 0o666); err != nil {
				t.Fatal(err)
			}
			outputtest.Use(t, disk)
			err := write(path, []TensorInfo{{Name: "a", DType: U8, Shape: []int64{1000}}}, nil,
				WriterOptions{})
			if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EIO) &&
				!errors.Is(err, syscall.EDQUOT) {
				t.Errorf("got %v", err)
			}
			onlyIn(t, dir, "x")
			if old, _ := os.ReadFile(path); string(old) != "old" {
				t.Errorf("the old file became %q", old)
			}
		})
	}
}

func TestWriterWhereItCannotWrite(t *testing.T) {
	dir := t.TempDir()
	if err := write(filepath.Join(dir, "none", "x"), sample(), nil,
		WriterOptions{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing folder: %v", err)
	}
	target := filepath.Join(dir, "folder")
	if err := os.MkdirAll(filepath.Join(target, "full"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := write(target, sample(), nil, WriterOptions{}); err == nil {
		t.Error("a folder was replaced")
	}
	onlyIn(t, dir, "folder")
}

func TestTwoWritersOfOneFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	w, err := NewWriter(path, nil, nil, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewWriter(path, nil, nil, WriterOptions{}); !errors.Is(err, output.ErrBusy) {
		t.Errorf("a second writer: %v", err)
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	onlyIn(t, dir, "x")
}
