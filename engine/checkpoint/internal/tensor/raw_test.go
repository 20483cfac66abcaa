package tensor

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRawReadsItsFile: any range, the ends of the file, and what is behind it.
func TestRawReadsItsFile(t *testing.T) {
	path := written(t, "0123456789")
	f, err := Open(t.Context(), "owner", path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Name() != path || f.Size() != 10 {
		t.Errorf("%s of %d bytes", f.Name(), f.Size())
	}
	for _, c := range []struct {
		at   int64
		n    int
		want string
		err  error
	}{{0, 10, "0123456789", nil}, {3, 4, "3456", nil}, {8, 2, "89", nil}, {8, 5, "89", io.EOF},
		{10, 1, "", io.EOF}, {4, 0, "", nil}} {
		p := make([]byte, c.n)
		n, err := f.ReadAt(p, c.at)
		if string(p[:n]) != c.want || err != c.err {
			t.Errorf("%d bytes at %d: %q, %v", c.n, c.at, p[:n], err)
		}
	}
	for n, want := range map[int64]string{0: "", 4: "0123", 99: "0123456789"} {
		if got, err := f.Start(n); string(got) != want || err != nil {
			t.Errorf("the first %d bytes: %q, %v", n, got, err)
		}
	}
}

// TestRawThatShrinks: a file that became shorter is broken, and the error says where it ends.
func TestRawThatShrinks(t *testing.T) {
	path := written(t, "0123456789")
	f, err := Open(t.Context(), "owner", path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Truncate(path, 6); err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 5)
	n, err := f.ReadAt(p, 3)
	if n != 3 || !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "at byte 6") ||
		!strings.HasPrefix(err.Error(), "owner: "+path) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if _, err := f.Start(10); !errors.Is(err, ErrFormat) {
		t.Errorf("the start: %v", err)
	}
	if _, err := f.ReadAt(p[:2], 1); err != nil {
		t.Errorf("what is left cannot be read: %v", err)
	}
}

// TestRawRefuses what is not there, no file, or the pointer of Git LFS. Errors that are no end of a
// file keep their kind.
func TestRawRefuses(t *testing.T) {
	if _, err := Open(t.Context(), "owner", filepath.Join(t.TempDir(), "none")); !errors.Is(err,
		fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "owner: ") {
		t.Errorf("%v", err)
	}
	if _, err := Open(t.Context(), "owner", t.TempDir()); !errors.Is(err, ErrFormat) ||
		!strings.Contains(err.Error(), "is a folder") {
		t.Errorf("a folder: %v", err)
	}
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"
	if _, err := Open(t.Context(), "owner", written(t, pointer)); !errors.Is(err, ErrFormat) ||
		!strings.Contains(err.Error(), "git lfs pull") {
		t.Errorf("a pointer: %v", err)
	}
	short, err := Open(t.Context(), "owner", written(t, ""))
	if err != nil {
		t.Fatalf("an empty file: %v", err)
	}
	short.Close()
	if _, err := short.ReadAt(make([]byte, 1), 0); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	broken := errors.New("broken")
	f := NewRaw("owner", "x", readerAt(func([]byte, int64) (int, error) { return 1, broken }), 9)
	if n, err := f.ReadAt(make([]byte, 2), 0); n != 1 || !errors.Is(err, broken) ||
		err.Error() != "owner: x: broken" {
		t.Errorf("%d, %v", n, err)
	}
	if err := f.Close(); err != nil {
		t.Errorf("there is nothing to close: %v", err)
	}
	memory := NewRaw("owner", "x", bytes.NewReader([]byte("abc")), 3)
	if all, err := memory.Start(3); string(all) != "abc" || err != nil {
		t.Errorf("%q, %v", all, err)
	}
}

type readerAt func(p []byte, off int64) (int, error)

func (f readerAt) ReadAt(p []byte, off int64) (int, error) { return f(p, off) }

// TestTypes: the name of a known type is that of the constant, others are clipped, and a tensor has
// as many elements as its size says.
func TestTypes(t *testing.T) {
	for name, size := range map[string]int64{"BOOL": 1, "U8": 1, "F8_E4M3": 1, "BF16": 2, "F16": 2,
		"I32": 4, "F32": 4, "F64": 8, "C64": 8, "Q4_0": 0, "f16": 0, "": 0} {
		d := NamedType([]byte(name))
		if string(d) != name || d.Size() != size {
			t.Errorf("%s is %s of %d bytes", name, d, d.Size())
		}
		want := int64(0)
		if size > 0 {
			want = 24 / size
		}
		if n := (Info{DType: d, Size: 24}).Elements(); n != want {
			t.Errorf("24 bytes of %s are %d elements", name, n)
		}
	}
	if d := NamedType(bytes.Repeat([]byte("long"), 1000)); len(d) > 110 || d.Size() != 0 {
		t.Errorf("a long name keeps %d bytes", len(d))
	}
}

// TestClip cuts between characters and says that it did.
func TestClip(t *testing.T) {
	long := strings.Repeat("a", 99) + "é" + "b" // the hundredth byte is inside the é
	if got := Clip(long); got != strings.Repeat("a", 99)+"…" {
		t.Errorf("%q", got)
	}
	if exact := strings.Repeat("x", 100); Clip(exact) != exact || Clip("") != "" {
		t.Error("a text that is short enough was changed")
	}
}
