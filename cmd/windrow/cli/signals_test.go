//go:build unix

package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/windrow-sim/windrow/internal/rng"
)

// odd are the kinds of files that are put in the place of an input. make makes one at a path; it
// gets the file that would be there, if any.
var odd = []struct {
	name string
	make func(t testing.TB, path, instead string)
}{
	{"a pipe without a writer", func(t testing.TB, path, _ string) { makePipe(t, path) }},
	{"a pipe whose writer never finishes", func(t testing.TB, path, instead string) {
		makePipe(t, path)
		w, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { w.Close() })
		if text, err := os.ReadFile(instead); err == nil {
			if _, err := w.Write(text[:min(len(text)/2, 4096)]); err != nil {
				t.Fatal(err)
			}
		}
	}},
	{"a device without an end", func(t testing.TB, path, _ string) {
		if err := os.Symlink("/dev/zero", path); err != nil {
			t.Fatal(err)
		}
	}},
}

// makePipe makes a named pipe. At the end of the test, who still waits for its writer is freed.
func makePipe(t testing.TB, path string) {
	t.Helper()
	if err := unix.Mkfifo(path, 0o644); err != nil {
		t.Skipf("no named pipes here: %v", err)
	}
	t.Cleanup(func() {
		if f, err := os.OpenFile(path, os.O_RDWR, 0); err == nil {
			f.Close()
		}
	})
}

// scope cleans up after one command line, so that the files of all of them are not open at once.
type scope struct {
	testing.TB
	undo []func()
}

func (s *scope) Cleanup(f func()) { s.undo = append(s.undo, f) }

func (s *scope) end() {
	for _, f := range s.undo {
		f()
	}
}

// replaced returns a line of readers with something odd in place of its i-th input.
func replaced(t testing.TB, line string, i int, put func(t testing.TB, path,
	instead string)) string {
	t.Helper()
	at := inBraces.FindAllStringIndex(line, -1)[i]
	input := strings.Trim(line[at[0]:at[1]], "{}")
	dir, err := os.MkdirTemp(".", "odd-")
	if err != nil {
		t.Fatal(err)
	}
	path, name, inFolder := strings.Cut(input, ":")
	if !inFolder {
		odd := filepath.Join(dir, filepath.Base(path))
		put(t, odd, path)
		return writesTo(dir, plainLine(line[:at[0]])+odd+plainLine(line[at[1]:]))
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == name {
			continue
		}
		if err := os.Link(filepath.Join(path, e.Name()), filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(dir, name), filepath.Join(path, name))
	return writesTo(dir, plainLine(line[:at[0]])+dir+plainLine(line[at[1]:]))
}

// writesTo gives the outputs of a line a folder: lines run side by side.
func writesTo(dir, line string) string {
	return strings.NewReplacer(" -o ", " -o "+dir+"/", " --dir ", " --dir "+dir+"/").Replace(line)
}

// runs are command lines that run side by side, for most of them only wait.
type runs struct {
	sync.WaitGroup
	free chan struct{}
}

func newRuns() *runs {
	n := 8
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil && files.Cur < 256 {
		n = 1 // eight verbs side by side have more open than that
	}
	return &runs{free: make(chan struct{}, n)}
}

// longest is how long a verb may take to return after its context ended, on a machine as busy as it
// gets. Only a verb that does not return at all takes so long.
const longest = time.Minute

// start runs a command line, whose context ends somehow. check gets the outcome.
func (r *runs) start(t *testing.T, line string, ctx context.Context, what string,
	check func(o outcome)) {
	args := words(t, line)
	r.free <- struct{}{}
	r.Add(1)
	go func() {
		defer func() { <-r.free; r.Done() }()
		done := make(chan outcome, 1)
		go func() { done <- commandContext(ctx, nil, args...) }()
		select {
		case o := <-done:
			check(o)
			return
		case <-ctx.Done():
		}
		select {
		case o := <-done:
			check(o)
		case <-time.After(longest):
			t.Errorf("%s (%s): does not return", line, what)
		}
	}()
}

// TestSignalsWhileReading: every verb ends when it is interrupted while it reads a file that has
// nothing to say, or no end. Before that it may refuse the file.
func TestSignalsWhileReading(t *testing.T) {
	readerWorkspace(t)
	all := newRuns()
	for _, line := range readers {
		for i := range inBraces.FindAllString(line, -1) {
			for _, kind := range odd {
				here := &scope{TB: t}
				line := replaced(here, line, i, kind.make)
				ctx, cancel := context.WithCancel(t.Context())
				// Who reads the file is waiting by then, on most machines.
				time.AfterFunc(300*time.Millisecond, cancel)
				all.start(t, line, ctx, kind.name, func(o outcome) {
					defer here.end()
					// The temporary files of some machines are in memory, which probe refuses.
					memory := o.code == exitHost && strings.Contains(o.stderr, "tmpfs is memory")
					if !memory && o.code != exitInterrupted && o.code != exitInput {
						t.Errorf("%s (%s): exit %d\n%s%s", line, kind.name, o.code, o.stdout,
							o.stderr)
					}
				})
			}
		}
	}
	all.Wait()
}

// looked is a context that ends after a number of calls of Err, or half a second.
type looked struct {
	context.Context
	left   atomic.Int64
	cancel context.CancelFunc
}

func endsAfter(parent context.Context, looks int64) *looked {
	ctx, cancel := context.WithCancel(parent)
	l := &looked{Context: ctx, cancel: cancel}
	l.left.Store(looks)
	if looks == 0 {
		cancel()
	}
	// A verb that looks less often is interrupted too, at any other moment: what it computes to its
	// end is tested elsewhere.
	time.AfterFunc(500*time.Millisecond, cancel)
	return l
}

// Err implements context.Context.
func (l *looked) Err() error {
	if l.left.Add(-1) <= 0 {
		l.cancel()
	}
	return l.Context.Err()
}

// TestSignalsAtAnyMoment: a verb that is interrupted before it begins says so and prints nothing.
// Interrupted later it returns too, with the same exit code if it did not finish before.
func TestSignalsAtAnyMoment(t *testing.T) {
	readerWorkspace(t)
	random := rng.Stream(rng.DefaultSeed, "signals")
	all := newRuns()
	for i, line := range slices.Concat(readers, readNothing) {
		reads := strings.Contains(line, "{")
		for _, looks := range []int64{0, 1 + random.Int64N(200)} {
			dir := fmt.Sprintf("out-%d-%d", i, looks)
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			line := writesTo(dir, plainLine(line))
			what := fmt.Sprintf("after %d looks", looks)
			all.start(t, line, endsAfter(t.Context(), looks), what, func(o outcome) {
				early := looks == 0 && reads && (o.code != exitInterrupted || o.stdout != "")
				if early || strings.Contains(o.stderr, "context canceled") {
					t.Errorf("%s (%s): exit %d, want %d in our words\n%s%s", line, what, o.code,
						exitInterrupted, o.stdout, o.stderr)
				}
			})
		}
	}
	all.Wait()
}
