package traces

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/traces/internal/arrowfile"
)

// changes are ways in which another program may change a file while it is read.
var changes = map[string]func(t *testing.T, path string, size int64){
	"emptied": func(t *testing.T, path string, _ int64) { truncate(t, path, 0) },
	"halved":  func(t *testing.T, path string, size int64) { truncate(t, path, size/2&^4095) },
	// The rest of the last page reads as zeros.
	"cut inside a page": func(t *testing.T, path string, size int64) {
		truncate(t, path, size-100)
	},
	"written to": func(t *testing.T, path string, _ int64) {
		then := time.Now().Add(time.Hour) // file systems count in ticks
		if err := os.Chtimes(path, then, then); err != nil {
			t.Fatal(err)
		}
	},
}

func truncate(t *testing.T, path string, size int64) {
	t.Helper()
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

// changedWhileRead checks the error about a file that another program changed.
func changedWhileRead(t *testing.T, name, path string, err error) {
	t.Helper()
	if err == nil || !errors.Is(err, refusal.ErrInput) || !strings.Contains(err.Error(),
		filepath.Base(path)) || !strings.Contains(err.Error(), "truncated or written to") {
		t.Errorf("%s: %v, want an error about %s that was truncated or written to", name, err, path)
	}
}

// TestTraceShrinksWhileRead: a trace that is truncated after it was opened is an error of all
// goroutines that read it. It was SIGBUS, which nothing can catch.
func TestTraceShrinksWhileRead(t *testing.T) {
	for name, change := range changes {
		for _, compress := range []string{"none", "zstd"} {
			path := save(t, testTrace(400, true), WriteOptions{Compress: compress,
				BatchBytes: 8 << 10})
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			r := open(t, path)
			var token Token
			if err := r.Token(0, &token); err != nil {
				t.Fatal(err)
			}
			change(t, path, info.Size())
			var wait sync.WaitGroup
			failed := make([]error, 3)
			for g := range failed {
				wait.Go(func() {
					var own Token
					for i := r.Tokens() - 1; i >= 0 && failed[g] == nil; i-- {
						failed[g] = r.Token(i, &own)
					}
				})
			}
			wait.Wait()
			for _, err := range failed {
				changedWhileRead(t, name+", "+compress, path, err)
			}
			if err := r.Verify(); err == nil {
				t.Errorf("%s, %s: is verified", name, compress)
			}
		}
	}
}

// TestRunShrinksWhileRead is the same for a Run, which is read in one go.
func TestRunShrinksWhileRead(t *testing.T) {
	for name, change := range changes {
		path := filepath.Join(t.TempDir(), "a.run.arrow")
		if err := WriteRun(path, testRun()); err != nil {
			t.Fatal(err)
		}
		mapping, err := mapRegular(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		change(t, path, int64(len(mapping.Data())))
		if _, err := parseRun(t.Context(), path, mapping); err != arrowfile.ErrChanged {
			t.Errorf("%s: %v, want %v", name, err, arrowfile.ErrChanged)
		}
		if err := mapping.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOtherPanicsPass: a fault that is not in the mapping stays a panic, and the goroutine keeps
// its own setting of faults.
func TestOtherPanicsPass(t *testing.T) {
	r := open(t, save(t, testTrace(2, false), WriteOptions{}))
	defer func() {
		if recover() != "mine" {
			t.Error("a panic inside was swallowed")
		}
	}()
	func() (err error) {
		defer r.mapping.End(r.mapping.Begin(), &err)
		panic("mine")
	}()
}
