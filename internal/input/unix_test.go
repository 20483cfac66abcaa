//go:build unix

package input

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/windrow-sim/windrow/internal/units"
)

// pipe makes a named pipe. At the end of the test, writers and readers that wait for it are freed.
func pipe(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(path, 0o644); err != nil {
		t.Skipf("no named pipes here: %v", err)
	}
	t.Cleanup(func() {
		if f, err := os.OpenFile(path, os.O_RDWR, 0); err == nil {
			f.Close()
		}
	})
	return path
}

// returns fails the test when do does not return long after its context ended.
func returns(t *testing.T, do func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-time.After(time.Minute): // of a machine as busy as it gets
		t.Fatal("did not return")
		return nil
	}
}

// One pipe has no writer. The writer of the other has written a little and does not go on.
func TestEndsWithItsContext(t *testing.T) {
	silent, slow := pipe(t), pipe(t)
	w, err := os.OpenFile(slow, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for name, read := range ways() {
		for _, path := range []string{silent, slow} {
			if _, err := w.WriteString("a little"); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			stop := time.AfterFunc(20*time.Millisecond, cancel)
			want := context.Canceled
			if name == "Open" {
				want = ErrKind // without opening it
			}
			err := returns(t, func() error { return read(ctx, path) })
			if !errors.Is(err, want) {
				t.Errorf("%s of %s: %v, want %v", name, filepath.Base(path), err, want)
			}
			stop.Stop()
			cancel()
		}
	}
}

// A device without an end has a limit, and ends with its context.
func TestEndless(t *testing.T) {
	const zero = "/dev/zero"
	if _, err := os.Stat(zero); err != nil {
		t.Skip(err)
	}
	if _, err := ReadFile(t.Context(), zero, Limit{Most: units.MiB}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%v, want %v", err, ErrTooLarge)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	err := returns(t, func() error {
		s, err := OpenStream(ctx, zero)
		if err != nil {
			return err
		}
		defer s.Close()
		buf := make([]byte, 1<<10)
		for err == nil {
			_, err = s.Read(buf)
		}
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// A pipe with an end is read like a file.
func TestPipe(t *testing.T) {
	path := pipe(t)
	go os.WriteFile(path, []byte("words"), 0)
	got, err := ReadFile(t.Context(), path, Limit{Most: 5})
	if err != nil || string(got) != "words" {
		t.Errorf("%q, %v", got, err)
	}
}
