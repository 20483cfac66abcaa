package input

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
)

func file(t testing.TB, size int) (path string, data []byte) {
	t.Helper()
	data = make([]byte, size)
	for i := range data {
		data[i] = byte(i * 7 / 5)
	}
	path = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path, data
}

// Every way of reading gives the bytes of the file, below and above the size of one read.
func TestSameBytes(t *testing.T) {
	for _, size := range []int{0, 1, chunk - 1, chunk, 2*chunk + 3} {
		path, want := file(t, size)
		ctx, cancel := context.WithCancel(t.Context())
		got, err := ReadFile(ctx, path, Limit{Most: units.Bytes(size)})
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("ReadFile of %d bytes: %d, %v", size, len(got), err)
		}
		s, err := OpenStream(ctx, path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(s); err != nil || !bytes.Equal(got, want) {
			t.Errorf("stream of %d bytes: %d, %v", size, len(got), err)
		}
		f, err := Open(ctx, path)
		if err != nil {
			t.Fatal(err)
		}
		if f.Size() != int64(size) || f.Name() != path {
			t.Errorf("%s has %d bytes, want %s, %d", f.Name(), f.Size(), path, size)
		}
		got = make([]byte, size)
		if n, err := f.ReadAt(got, 0); n != size || err != nil && err != io.EOF ||
			!bytes.Equal(got, want) {
			t.Errorf("file of %d bytes: %d, %v", size, n, err)
		}
		if n, err := f.ReadAt(make([]byte, 2), f.Size()-1); size > 0 && (n != 1 || err != io.EOF) {
			t.Errorf("a read beyond the end: %d, %v", n, err)
		}
		// The end of the context ends what is open.
		cancel()
		if _, err := f.ReadAt(make([]byte, 1), 0); !errors.Is(err, context.Canceled) {
			t.Errorf("file: %v", err)
		}
		if _, err := s.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
			t.Errorf("stream: %v", err)
		}
		if err := errors.Join(f.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	}
}

// A limit names the file, its size, the limit and what raises it, before anything is read.
func TestLimit(t *testing.T) {
	path, _ := file(t, 3000)
	_, err := ReadFile(t.Context(), path, Limit{Most: 2 * units.KiB, Field: "MaxInput"})
	if !errors.Is(err, ErrTooLarge) || !errors.Is(err, refusal.ErrInput) {
		t.Fatalf("%v", err)
	}
	text := refusal.Text(err, func(field string) string { return "--" + field })
	for _, says := range []string{path, "3000 bytes", "2KiB", "--MaxInput"} {
		if !strings.Contains(text, says) {
			t.Errorf("%q does not name %s", text, says)
		}
	}
	_, err = ReadFile(t.Context(), path, Limit{Most: 2999})
	if !errors.Is(err, ErrTooLarge) || strings.Contains(err.Error(), "raise") {
		t.Errorf("%v", err)
	}
}

// Folders and files that are not there are errors of every way.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]error{dir: ErrKind,
		filepath.Join(dir, "missing"): os.ErrNotExist} {
		for name, read := range ways() {
			if err := read(t.Context(), path); !errors.Is(err, want) {
				t.Errorf("%s of %s: %v, want %v", name, path, err, want)
			}
		}
	}
}

// ways are the ways to read a file as far as 1 MiB.
func ways() map[string]func(ctx context.Context, path string) error {
	return map[string]func(ctx context.Context, path string) error{
		"ReadFile": func(ctx context.Context, path string) error {
			_, err := ReadFile(ctx, path, Limit{Most: units.MiB})
			return err
		},
		"OpenStream": func(ctx context.Context, path string) error {
			s, err := OpenStream(ctx, path)
			if err != nil {
				return err
			}
			defer s.Close()
			_, err = io.CopyN(io.Discard, s, int64(units.MiB))
			return err
		},
		"Open": func(ctx context.Context, path string) error {
			f, err := Open(ctx, path)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = io.Copy(io.Discard, io.NewSectionReader(f, 0, f.Size()))
			return err
		},
	}
}
