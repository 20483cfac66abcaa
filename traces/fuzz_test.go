package traces

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/windrow-sim/windrow/internal/alloctest"
)

// FuzzManifest opens a good trace beside any manifest. That takes memory in proportion to the text,
// besides the trace's own. A manifest that is accepted names this trace, and means the same when it
// is written again.
func FuzzManifest(f *testing.F) {
	path := save(f, testTrace(2, true), WriteOptions{})
	good, err := os.ReadFile(ManifestPath(path))
	if err != nil {
		f.Fatal(err)
	}
	trace, err := Open(f.Context(), path)
	if err != nil {
		f.Fatal(err)
	}
	defer trace.Close()
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add([]byte(`{"sha256":"` + trace.SHA256() + `"}`))
	own := alloctest.Bytes(func() { closing(f, path) })
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(ManifestPath(path), text, 0o600); err != nil {
			t.Fatal(err)
		}
		var r *Reader
		var err error
		if used := alloctest.Bytes(func() { r, err = Open(t.Context(), path) }); used > own+uint64(
			8*len(text)+1<<16) {
			t.Fatalf("%d bytes allocated for a manifest of %d", used, len(text))
		}
		if err != nil {
			if !errors.Is(err, ErrFormat) && !errors.Is(err, ErrUnsupported) {
				t.Fatalf("no kind: %v", err)
			}
			return
		}
		defer r.Close()
		if !r.Verified() || r.SHA256() != trace.SHA256() || r.Tokens() != trace.Tokens() {
			t.Fatalf("verified %v, %d tokens of %s", r.Verified(), r.Tokens(), r.SHA256())
		}
		var m Manifest
		if err := json.Unmarshal(text, &m); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(m)
		if err == nil {
			err = os.WriteFile(ManifestPath(path), again, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		second, err := Open(t.Context(), path)
		if err != nil {
			t.Fatalf("%v in %s", err, again)
		}
		defer second.Close()
		if second.Complete() != r.Complete() || !reflect.DeepEqual(second.Warnings(),
			r.Warnings()) {
			t.Fatalf("complete %v, %q; again %v, %q", r.Complete(), r.Warnings(), second.Complete(),
				second.Warnings())
		}
	})
}

func closing(tb testing.TB, path string) {
	tb.Helper()
	r, err := Open(tb.Context(), path)
	if err == nil {
		err = r.Close()
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// FuzzRunManifest reads a good Run beside any metadata. What is accepted is this Run.
func FuzzRunManifest(f *testing.F) {
	path := filepath.Join(f.TempDir(), "x.run.arrow")
	if err := WriteRun(path, testRun()); err != nil {
		f.Fatal(err)
	}
	good, err := os.ReadFile(RunMetaPath(path))
	if err != nil {
		f.Fatal(err)
	}
	var run *Run
	own := alloctest.Bytes(func() { run, err = ReadRun(f.Context(), path) })
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(RunMetaPath(path), text, 0o600); err != nil {
			t.Fatal(err)
		}
		var got *Run
		var err error
		used := alloctest.Bytes(func() { got, err = ReadRun(t.Context(), path) })
		if used > own+uint64(64*len(text)+1<<16) {
			t.Fatalf("%d bytes allocated for metadata of %d", used, len(text))
		}
		if err != nil {
			if !errors.Is(err, ErrFormat) && !errors.Is(err, ErrUnsupported) {
				t.Fatalf("no kind: %v", err)
			}
			return
		}
		if !reflect.DeepEqual(got, run) {
			t.Fatalf("another run: %+v", got.Meta)
		}
	})
}
