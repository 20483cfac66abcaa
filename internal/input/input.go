package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
)

// ErrTooLarge is in the chain of errors about a file that is larger than its limit.
var ErrTooLarge = errors.New("too large")

// ErrKind is in the chain of errors about a folder, and about a pipe or device where a regular file
// is needed.
var ErrKind = errors.New("of another kind")

// refused is a refusal.ErrInput that is one of the two as well, and prints as its text alone.
type refused struct {
	error
	kind error
}

func (r *refused) Is(target error) bool { return target == r.kind }
func (r *refused) Unwrap() error        { return r.error }

// chunk is the most bytes of one read: between two of them the context is looked at.
const chunk = 1 << 20

// Limit is the largest size of a file.
type Limit struct {
	Most units.Bytes
	// Field is the field of the caller's configuration that raises the limit, without braces;
	// empty = the limit is fixed.
	Field string
}

// passed says that a file is larger than the limit. size is negative for a file without a size.
func (l Limit) passed(path string, size int64) error {
	remedy := "is it the right file?"
	if l.Field != "" {
		remedy = "raise the limit with {" + l.Field + "}"
	}
	if size < 0 {
		return &refused{refusal.Input("%s holds more than the limit of %v; "+remedy, path,
			l.Most), ErrTooLarge}
	}
	return &refused{refusal.Input("%s: %d bytes are more than the limit of %v; "+remedy, path,
		size, l.Most), ErrTooLarge}
}

// ReadFile reads a whole file of any kind but a folder. Errors wrap ErrTooLarge, ErrKind, the
// context's error, or are those of the file system.
func ReadFile(ctx context.Context, path string, limit Limit) ([]byte, error) {
	return Await(ctx, path, func() ([]byte, error) { return readFile(ctx, path, limit) }, nil)
}

func readFile(ctx context.Context, path string, limit Limit) ([]byte, error) {
	info, err := stat(path)
	if err != nil {
		return nil, err
	}
	most := int64(limit.Most)
	if info.Size() > most {
		return nil, limit.passed(path, info.Size())
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// One byte more than is expected finds the end without growing.
	data := make([]byte, 0, info.Size()+1)
	for {
		if ctx.Err() != nil {
			return nil, ended(ctx, path)
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := f.Read(data[len(data):min(cap(data), len(data)+chunk)])
		data = data[:len(data)+n]
		switch {
		case int64(len(data)) > most:
			return nil, limit.passed(path, -1)
		case err == io.EOF:
			return data, nil
		case err != nil:
			return nil, err
		}
	}
}

// stat describes a file that is no folder.
func stat(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	if at := new(fs.PathError); errors.As(err, &at) {
		at.Op = "open" // the operation that the caller asked for
	}
	if err == nil && info.IsDir() {
		err = &refused{refusal.Input("%s is a folder; name a file", path), ErrKind}
	}
	return info, err
}

// OpenStream opens a file of any kind but a folder, to be read once from its start. Reads fail with
// the context's error when it ends, however long the file has nothing to say. The stream is not
// safe for concurrent use.
func OpenStream(ctx context.Context, path string) (io.ReadCloser, error) {
	f, err := Await(ctx, path, func() (*os.File, error) {
		if _, err := stat(path); err != nil {
			return nil, err
		}
		return os.Open(path)
	}, closeLate)
	if err != nil {
		return nil, err
	}
	return &stream{ctx: ctx, f: f, buf: make([]byte, 64<<10)}, nil
}

// stream reads into a buffer of its own: a read that is left behind must not write into the
// caller's.
type stream struct {
	ctx context.Context
	f   *os.File
	buf []byte
	err error // of the context: buf may still be written to
}

func (s *stream) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	buf := s.buf[:min(len(p), len(s.buf))]
	n, err := Await(s.ctx, s.f.Name(), func() (int, error) { return s.f.Read(buf) }, nil)
	if s.ctx.Err() != nil {
		s.err = ended(s.ctx, s.f.Name())
		return 0, s.err
	}
	copy(p, buf[:n])
	return n, err
}

func (s *stream) Close() error { return s.f.Close() }

// Await returns what do returns, or the context's error as soon as it ends. do is then left behind,
// and late, if any, gets its value. path is the file that do reads or works on.
func Await[T any](ctx context.Context, path string, do func() (T, error), late func(T)) (T, error) {
	if ctx.Done() == nil { // a context that never ends
		return do()
	}
	var none T
	if ctx.Err() != nil {
		return none, ended(ctx, path)
	}
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		v, err := do()
		answers <- answer{v, err}
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		if late != nil {
			go func() {
				if a := <-answers; a.err == nil {
					late(a.value)
				}
			}()
		}
		return none, ended(ctx, path)
	}
}

func ended(ctx context.Context, path string) error {
	return fmt.Errorf("reading %s: %w", path, ctx.Err())
}

// closeLate closes a file whose opening ended after its context.
func closeLate(f *os.File) { _ = f.Close() }
