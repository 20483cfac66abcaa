package sweep

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/windrow-sim/windrow/internal/alloctest"
)

// Reading a file of results may allocate this much in all: a Result has more fields than a short
// line has bytes.
const (
	allocPerByte = 16
	allocPerLine = 4 << 10
	allocFixed   = 1 << 17
)

// FuzzResults reads any file of results. That takes memory in proportion to its lines. Results that
// are accepted are the same when they are written again.
func FuzzResults(f *testing.F) {
	path := filepath.Join(f.TempDir(), "r.jsonl")
	h := &Header{}
	if err := sweepTo(f, path, h, false, 1000); err != nil {
		f.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	lines := bytes.SplitAfter(good, []byte("\n"))
	f.Add(bytes.Join(lines[:3], nil))
	f.Add(bytes.Join(append([][]byte{lines[0]}, lines[len(lines)-3:]...), nil))
	f.Add(bytes.Join(lines[:2], nil)[:len(lines[0])+50])
	f.Fuzz(func(t *testing.T, file []byte) {
		h, results, err := readAll(t, file)
		if err != nil {
			if !errors.Is(err, ErrResults) {
				t.Fatalf("no kind: %v", err)
			}
			return
		}
		var again bytes.Buffer
		enc := json.NewEncoder(&again)
		if err := enc.Encode(h); err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			if err := enc.Encode(r); err != nil {
				t.Fatal(err)
			}
		}
		h2, results2, err := readAll(t, again.Bytes())
		if err != nil || !reflect.DeepEqual(h, h2) || !reflect.DeepEqual(results, results2) {
			t.Fatalf("%v\nread  %+v %+v\nagain %+v %+v", err, h, results, h2, results2)
		}
	})
}

func readAll(t *testing.T, file []byte) (h *Header, results []Result, err error) {
	t.Helper()
	used := alloctest.Bytes(func() {
		h, err = Read(bytes.NewReader(file), func(*Result) error { return nil })
	})
	if lines := bytes.Count(file, []byte("\n")); used > uint64(
		allocPerByte*len(file)+allocPerLine*lines+allocFixed) {
		t.Fatalf("%d bytes allocated for %d bytes in %d lines", used, len(file), lines)
	}
	if err != nil {
		return h, nil, err
	}
	h, err = Read(bytes.NewReader(file), func(r *Result) error {
		results = append(results, *r)
		return nil
	})
	return h, results, err
}

// FuzzResume goes on with any file of an interrupted sweep. What stays are whole results of this
// sweep from its beginning, as they were; a file of something else is refused and not touched.
func FuzzResume(f *testing.F) {
	path := filepath.Join(f.TempDir(), "r.jsonl")
	h := &Header{}
	if err := sweepTo(f, path, h, false, 1000); err != nil {
		f.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil {
		f.Fatal(err)
	}
	head := good[:bytes.IndexByte(good, '\n')+1]
	f.Add(good[len(head):][:5000])
	f.Add([]byte(`{"configuration":0}` + "\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		file := append(bytes.Clone(head), body...)
		if err := os.WriteFile(Partial(path), file, 0o600); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(Partial(path))
		out, err := Create(path, h, true)
		if err != nil {
			t.Fatal(err) // the header is right
		}
		left, err := os.ReadFile(Partial(path))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(file, left) || bytes.Count(left, []byte("\n")) != 1+out.Done() {
			t.Fatalf("%d results in %q of %q", out.Done(), left, file)
		}
		out.Abort()
		_, results, err := readAll(t, left)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range results {
			if r.Index != i {
				t.Fatalf("result %d is of configuration %d", i, r.Index)
			}
		}
	})
}
