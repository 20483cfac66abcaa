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

// unsummed takes the hashes off the lines of results, so that a fuzzer can change them.
func unsummed(results []byte) []byte {
	const tail = len(sumKey) + 16 + len("\"}\n")
	var list []byte
	for line := range bytes.Lines(results) {
		list = append(append(list, line[:max(len(line)-tail, 0)]...), "}\n"...)
	}
	return list
}

// summed gives each whole line its hash.
func summed(results []byte) []byte {
	var list []byte
	for line := range bytes.Lines(results) {
		if text, whole := bytes.CutSuffix(line, []byte("\n")); whole && len(text) > 0 {
			line = withSum(bytes.Clone(text))
		}
		list = append(list, line...)
	}
	return list
}

// swept returns a whole file of results, its header and its text.
func swept(f *testing.F) (path string, h *Header, text []byte) {
	path, h = filepath.Join(f.TempDir(), "r.jsonl"), &Header{}
	if err := sweepTo(f, path, h, false, 1000); err != nil {
		f.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	return path, h, text
}

// FuzzResults reads any header and any results behind it, whose lines get their hashes if sum. That
// takes memory in proportion to the lines. Results that are accepted are the same when they are
// written again.
func FuzzResults(f *testing.F) {
	_, _, good := swept(f)
	lines := bytes.SplitAfter(good, []byte("\n"))
	f.Add(lines[0], unsummed(bytes.Join(lines[1:3], nil)), true)
	f.Add(lines[0], unsummed(bytes.Join(lines[len(lines)-3:], nil)), true)
	f.Add(lines[0], lines[1][:50], false)
	f.Fuzz(func(t *testing.T, head, body []byte, sum bool) {
		if sum {
			body = summed(body)
		}
		file := append(bytes.Clone(head), body...)
		h, results, err := readAll(t, file)
		if err != nil {
			if !errors.Is(err, ErrResults) {
				t.Fatalf("no kind: %v", err)
			}
			return
		}
		var again bytes.Buffer
		if err := json.NewEncoder(&again).Encode(h); err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			line, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			again.Write(withSum(line))
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
// sweep from its beginning, as they were; a file of anything else is refused and not touched.
func FuzzResume(f *testing.F) {
	path, h, good := swept(f)
	if err := os.Remove(path); err != nil {
		f.Fatal(err)
	}
	head := good[:bytes.IndexByte(good, '\n')+1]
	f.Add(unsummed(good[len(head):])[:5000], true)
	f.Add([]byte(`{"configuration":0}`+"\n"), true)
	f.Add(good[len(head):][:5000], false)
	f.Fuzz(func(t *testing.T, body []byte, sum bool) {
		if sum {
			body = summed(body)
		}
		file := append(bytes.Clone(head), body...)
		if err := os.WriteFile(Partial(path), file, 0o600); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(Partial(path))
		out, err := Create(path, h, true)
		left, readErr := os.ReadFile(Partial(path))
		if readErr != nil {
			t.Fatal(readErr)
		}
		if err != nil {
			if !errors.Is(err, ErrResults) || !bytes.Equal(left, file) {
				t.Fatalf("%v, and %q is left of %q", err, left, file)
			}
			return
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
