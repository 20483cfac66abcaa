package tensor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/windrow-sim/windrow/internal/input"
)

// Raw is an open file of a known size. Its methods are safe for concurrent use.
type Raw struct {
	owner string // the package that errors name
	name  string
	r     io.ReaderAt
	size  int64
	f     io.Closer // nil for NewRaw
}

// Open opens a regular file, to be read until the context ends, and refuses the pointer that Git
// LFS leaves in place of a file. owner is the package in front of every error.
func Open(ctx context.Context, owner, path string) (*Raw, error) {
	f, err := input.Open(ctx, path)
	if errors.Is(err, input.ErrKind) {
		return nil, fmt.Errorf("%s: %w: %w", owner, err, ErrFormat)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", owner, err)
	}
	raw := &Raw{owner: owner, name: path, r: f, size: f.Size(), f: f}
	if err := raw.refusePointer(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return raw, nil
}

// NewRaw is a Raw over bytes that are somewhere else than in a file.
func NewRaw(owner, name string, r io.ReaderAt, size int64) *Raw {
	return &Raw{owner: owner, name: name, r: r, size: size}
}

func (f *Raw) refusePointer() error {
	start, err := f.Start(32)
	if err == nil && bytes.HasPrefix(start, []byte("version https://git-lfs")) {
		err = fmt.Errorf("%s: %s: %w: this is a Git LFS pointer, not the weights; run git lfs pull",
			f.owner, f.name, ErrFormat)
	}
	return err
}

// Name is the path the file was opened by.
func (f *Raw) Name() string { return f.name }

// Size is the length of the file in bytes.
func (f *Raw) Size() int64 { return f.size }

// Start returns the first n bytes, or all of a shorter file.
func (f *Raw) Start(n int64) ([]byte, error) {
	start := make([]byte, min(n, f.size))
	_, err := f.ReadAt(start, 0)
	return start, err
}

// ReadAt implements io.ReaderAt over the whole file. A file that became shorter since it was opened
// is an ErrFormat.
func (f *Raw) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.r.ReadAt(p, off)
	switch {
	case n == len(p):
		return n, nil
	case errors.Is(err, io.EOF) && off+int64(len(p)) <= f.size:
		err = fmt.Errorf("%w: truncated at byte %d since it was opened", ErrFormat, off+int64(n))
	case errors.Is(err, io.EOF):
		return n, io.EOF
	}
	return n, fmt.Errorf("%s: %s: %w", f.owner, f.name, err)
}

// Close closes the file.
func (f *Raw) Close() error {
	if f.f == nil {
		return nil
	}
	return f.f.Close()
}
