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

// Open opens a regular file, to be read until the context ends, and refuses the kinds of
// input.Foreign. owner is the package in front of every error.
func Open(ctx context.Context, owner, path string) (*Raw, error) {
	f, err := input.Open(ctx, path)
	if errors.Is(err, input.ErrKind) {
		return nil, fmt.Errorf("%s: %w: %w", owner, err, ErrFormat)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", owner, err)
	}
	raw := &Raw{owner: owner, name: path, r: f, size: f.Size(), f: f}
	if err := raw.refuseForeign(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return raw, nil
}

// NewRaw is a Raw over bytes that are somewhere else than in a file.
func NewRaw(owner, name string, r io.ReaderAt, size int64) *Raw {
	return &Raw{owner: owner, name: name, r: r, size: size}
}

// torchMagic begins the checkpoints of PyTorch, which are ZIP archives.
const torchMagic = "PK\x03\x04"

// refuseForeign refuses what is no file of tensors: compressed files, pointers of Git LFS.
func (f *Raw) refuseForeign() error {
	start, err := f.Start(input.HeadBytes)
	if err != nil || bytes.HasPrefix(start, []byte(torchMagic)) {
		return err
	}
	if err := input.Foreign(f.name, start, input.Other); err != nil {
		return fmt.Errorf("%s: %s: %w: %w", f.owner, f.name, err, ErrFormat)
	}
	return nil
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
