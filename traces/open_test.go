package traces

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOpenRefusesWhatIsNotATrace(t *testing.T) {
	dir := t.TempDir()
	good, err := os.ReadFile(save(t, testTrace(3, false), WriteOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	contents := map[string][]byte{
		"the file is empty":           {},
		"too few for an Arrow file":   good[:20],
		"cut short":                   good[:len(good)-9],
		"this is a Parquet file":      append([]byte("PAR1PAR1"), good[8:]...),
		"no Arrow magic at the start": append([]byte("Arrow 10"), good[8:]...),
		"this is an Arrow stream":     append([]byte{0xff, 0xff, 0xff, 0xff}, good[4:]...),
		"a footer of 4294967295 bytes": append(append([]byte{}, good[:len(good)-10]...),
			"\xff\xff\xff\xffARROW1"...),
		"a footer of 0 bytes in a file ": append(append([]byte{}, good[:len(good)-10]...),
			"\x00\x00\x00\x00ARROW1"...),
	}
	path := filepath.Join(dir, "x.trace.arrow")
	for want, b := range contents {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), path); !errors.Is(err, ErrFormat) ||
			!strings.Contains(err.Error(),
				want) {
			t.Errorf("want ErrFormat with %q, got %v", want, err)
		}
	}
	for cut := 0; cut < len(good); cut += 61 {
		if err := os.WriteFile(path, good[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenWith(t.Context(), path, OpenOptions{SkipHash: true}); !errors.Is(err,
			ErrFormat) {
			t.Fatalf("the first %d of %d bytes: want ErrFormat, got %v", cut, len(good), err)
		}
	}
	if _, err := Open(t.Context(), dir); !errors.Is(err, ErrFormat) {
		t.Errorf("a folder: want ErrFormat, got %v", err)
	}
	if _, err := Open(t.Context(), filepath.Join(dir, "none.trace.arrow")); !errors.Is(err,
		fs.ErrNotExist) {
		t.Errorf("no file: want ErrNotExist, got %v", err)
	}
}

func TestOpenWithoutPermission(t *testing.T) {
	if os.Geteuid() <= 0 {
		t.Skip("root may read everything, and Windows has no mode bits")
	}
	path := save(t, testTrace(1, false), WriteOptions{})
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), path); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("want ErrPermission, got %v", err)
	}
}

func TestManifestMismatch(t *testing.T) {
	edits := map[string]func(string) string{
		"line 6: sha256: ": swapHash,
		"line 5: bytes: 1 is not": func(m string) string {
			return replaceField(m, "bytes",
				"1")
		},
		"line 8: tokens: 4 is not": func(m string) string {
			return replaceField(m, "tokens",
				"4")
		},
		"64 hexadecimal digits": func(m string) string {
			return replaceField(m, "sha256",
				`"abc"`)
		},
		"line 6: sha256: is not JSON": func(m string) string { return m[:len(m)/2] },
		"line 1: is not an object":    func(string) string { return "[]" },
		"bytes are more than the limit of 16MiB": func(m string) string {
			return m + strings.Repeat(" ",
				maxMeta)
		},
	}
	for want, edit := range edits {
		path := save(t, testTrace(3, false), WriteOptions{})
		m, err := os.ReadFile(ManifestPath(path))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(ManifestPath(path), []byte(edit(string(m))), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), path); !errors.Is(err, ErrFormat) ||
			!strings.Contains(err.Error(),
				want) {
			t.Errorf("want ErrFormat with %q, got %v", want, err)
		}
	}
}

// replaceField replaces the value of a field of indented JSON.
func replaceField(m, name, value string) string {
	before, rest, _ := strings.Cut(m, `"`+name+`": `)
	_, after, _ := strings.Cut(rest, "\n")
	return before + `"` + name + `": ` + value + ",\n" + after
}

// swapHash puts another hash into a manifest.
func swapHash(m string) string { return replaceField(m, "sha256", `"`+strings.Repeat("0", 64)+`"`) }

func TestSkipHashIsNotVerifiedUntilVerify(t *testing.T) {
	path := save(t, testTrace(3, false), WriteOptions{})
	r, err := OpenWith(t.Context(), path, OpenOptions{SkipHash: true})
	if err != nil {
		t.Fatal(err)
	}
	if r.Verified() || len(r.Warnings()) != 1 || len(r.SHA256()) != 64 {
		t.Errorf("verified %t, warnings %q, hash %q", r.Verified(), r.Warnings(), r.SHA256())
	}
	if err := r.Verify(); err != nil || !r.Verified() {
		t.Errorf("Verify: %v, verified %t", err, r.Verified())
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.Verify(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Verify after Close: %v", err)
	}
	var tok Token
	if err := r.Token(0, &tok); err == nil {
		t.Error("Token after Close: no error")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[300] ^= 1 // in the schema message, which the reader does not use
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err = OpenWith(t.Context(), path, OpenOptions{SkipHash: true}); err != nil {
		t.Fatal(err)
	}
	if err := r.Verify(); !errors.Is(err, ErrFormat) || r.Verified() {
		t.Errorf("Verify of a changed file: %v, verified %t", err, r.Verified())
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if err := os.Remove(ManifestPath(path)); err != nil {
		t.Fatal(err)
	}
	if err := open(t, path).Verify(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Verify without manifest: %v", err)
	}
}

// A Reader ends with its context: no pass over a trace goes on.
func TestReaderEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, err := Open(ctx, save(t, testTrace(3, false), WriteOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var token Token
	if err := r.Token(0, &token); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := r.Token(1, &token); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
	if _, err := ReadRun(ctx, r.path); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
}
