package checkpoint

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/windrow-sim/windrow/engine/checkpoint/internal/tensor"
)

// File is an open safetensors file. Its methods are safe for concurrent use; the results of Tensors
// and Metadata are copies.
type File struct {
	raw  *tensor.Raw
	data int64 // offset of the first tensor's first byte
	header
}

// Open opens a safetensors file and checks its header against the size of the file; it reads no
// tensor. A file that breaks the format is an ErrFormat; an unknown type of element is an
// ErrUnsupported.
func Open(ctx context.Context, path string) (*File, error) {
	raw, err := tensor.Open(ctx, "checkpoint", path)
	if err != nil {
		return nil, err
	}
	file, err := newFile(raw)
	if err != nil {
		raw.Close()
		return nil, fmt.Errorf("checkpoint: %s: %w", path, err)
	}
	return file, nil
}

// newFile reads the header of a file.
func newFile(raw *tensor.Raw) (*File, error) {
	text, err := readHeader(raw)
	if err != nil {
		return nil, err
	}
	f := &File{raw: raw, data: 8 + int64(len(text))}
	if f.header, err = parseHeader(text, f.data); err != nil {
		return nil, err
	}
	if err := checkLength(f.tensors, f.data, raw.Size()); err != nil {
		return nil, err
	}
	return f, nil
}

// readHeader checks the header's length against the file and maxHeader before it allocates.
func readHeader(raw *tensor.Raw) ([]byte, error) {
	size := raw.Size()
	if size < 8 {
		return nil, fmt.Errorf("%w: truncated: %d bytes are too few for a safetensors file",
			ErrFormat, size)
	}
	start, err := raw.Start(8)
	if err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(start)
	if n > maxHeader && n > uint64(size) {
		return nil, fmt.Errorf("%w: header length %d is far beyond the file's %d bytes; "+
			"this is not a safetensors file", ErrFormat, n, size)
	}
	if n > maxHeader {
		return nil, fmt.Errorf("%w: the header has %d bytes; up to %d are read. Save the model "+
			"in several files", ErrUnsupported, n, maxHeader)
	}
	if int64(n) > size-8 {
		return nil, fmt.Errorf("%w: truncated: the header alone needs %d bytes, the file has "+
			"%d; download it again", ErrFormat, n+8, size)
	}
	header := make([]byte, n)
	if got, err := raw.ReadAt(header, 8); got < len(header) {
		return nil, fmt.Errorf("header: %w", err)
	}
	return header, nil
}

// checkLength demands that the file ends where the last tensor does.
func checkLength(tensors []TensorInfo, data, size int64) error {
	want := data
	if n := len(tensors); n > 0 {
		want = tensors[n-1].Offset + tensors[n-1].Size
	}
	switch {
	case want > size || want < data: // the sum of two offsets can pass 2^63
		return fmt.Errorf("%w: truncated: the header promises %d bytes, the file has %d; "+
			"download it again", ErrFormat, uint64(want), size)
	case want < size:
		return fmt.Errorf("%w: %d bytes after the last tensor belong to no tensor", ErrFormat,
			size-want)
	}
	return nil
}

// Name is the path the file was opened by.
func (f *File) Name() string { return f.raw.Name() }

// Size is the length of the file in bytes.
func (f *File) Size() int64 { return f.raw.Size() }

// DataOffset returns the offset of the data, behind the header.
func (f *File) DataOffset() int64 { return f.data }

// Metadata returns the strings of `__metadata__`; empty, not nil, when there are none.
func (f *File) Metadata() map[string]string { return f.metadata() }

// Tensors returns all tensors, in the order of their data.
func (f *File) Tensors() []TensorInfo { return slices.Clone(f.tensors) }

// Tensor finds a tensor by its exact name.
func (f *File) Tensor(name string) (TensorInfo, bool) {
	i, ok := f.find(name)
	if !ok {
		return TensorInfo{}, false
	}
	return f.tensors[i], true
}

// Section returns a reader over the bytes of one tensor. It must not be used after Close.
func (f *File) Section(name string) (*io.SectionReader, error) {
	t, ok := f.Tensor(name)
	if !ok {
		return nil, fmt.Errorf("checkpoint: %s: tensor %q: %w", f.Name(), name, fs.ErrNotExist)
	}
	return io.NewSectionReader(f, t.Offset, t.Size), nil
}

// ReadTensor fills dst, which must have the tensor's size.
func (f *File) ReadTensor(name string, dst []byte) error {
	t, ok := f.Tensor(name)
	if !ok {
		return fmt.Errorf("checkpoint: %s: tensor %q: %w", f.Name(), name, fs.ErrNotExist)
	}
	if int64(len(dst)) != t.Size {
		return fmt.Errorf("checkpoint: %s: tensor %q has %d bytes, the buffer %d", f.Name(), name,
			t.Size, len(dst))
	}
	_, err := f.ReadAt(dst, t.Offset)
	return err
}

// ReadAt implements io.ReaderAt over the whole file. A file that became shorter since Open is an
// ErrFormat.
func (f *File) ReadAt(p []byte, off int64) (int, error) { return f.raw.ReadAt(p, off) }

// Close closes the file.
func (f *File) Close() error { return f.raw.Close() }
