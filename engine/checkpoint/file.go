package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
)

// File is an open safetensors file. Its methods may be called from several goroutines; the results of Tensors and
// Metadata are copies.
type File struct {
	name    string
	r       io.ReaderAt
	close   func() error
	size    int64
	data    int64 // offset of the first tensor's first byte
	tensors []TensorInfo
	byName  map[string]int
	meta    map[string]string
}

// Open opens a safetensors file and checks its header against the size of the file; it reads no tensor. A file that
// breaks the format is an ErrFormat; a type of element that is unknown here is an ErrUnsupported.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	file, err := open(path, f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return file, nil
}

func open(path string, f *os.File) (*File, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("checkpoint: %s: %w: not a file", path, ErrFormat)
	}
	file, err := newFile(path, f, st.Size())
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %s: %w", path, err)
	}
	file.close = f.Close
	return file, nil
}

// newFile reads the header of a file of the given size.
func newFile(name string, r io.ReaderAt, size int64) (*File, error) {
	header, err := readHeader(r, size)
	if err != nil {
		return nil, err
	}
	f := &File{name: name, r: r, close: func() error { return nil }, size: size, data: 8 + int64(len(header))}
	if f.tensors, f.meta, err = parseHeader(header, f.data); err != nil {
		return nil, err
	}
	if err := checkLength(f.tensors, f.data, size); err != nil {
		return nil, err
	}
	f.byName = make(map[string]int, len(f.tensors))
	for i, t := range f.tensors {
		f.byName[t.Name] = i
	}
	return f, nil
}

// readHeader bounds the header by the file and by maxHeader before it allocates.
func readHeader(r io.ReaderAt, size int64) ([]byte, error) {
	lfs := []byte("version https://git-lfs")
	start := make([]byte, min(size, int64(len(lfs))))
	if _, err := r.ReadAt(start, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if bytes.Equal(start, lfs) {
		return nil, fmt.Errorf("%w: this is a Git LFS pointer, not the weights; run git lfs pull", ErrFormat)
	}
	if size < 8 {
		return nil, fmt.Errorf("%w: truncated: %d bytes are too few for a safetensors file", ErrFormat, size)
	}
	n := binary.LittleEndian.Uint64(start)
	if n > maxHeader {
		return nil, fmt.Errorf("%w: header length %d is above the limit of %d; this is not a safetensors file", ErrFormat, n, maxHeader)
	}
	if int64(n) > size-8 {
		return nil, fmt.Errorf("%w: truncated: the header alone needs %d bytes, the file has %d; download it again", ErrFormat, n+8, size)
	}
	header := make([]byte, n)
	if got, err := r.ReadAt(header, 8); got < len(header) {
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
		return fmt.Errorf("%w: truncated: the header promises %d bytes, the file has %d; download it again", ErrFormat, uint64(want), size)
	case want < size:
		return fmt.Errorf("%w: %d bytes after the last tensor belong to no tensor", ErrFormat, size-want)
	}
	return nil
}

// Name is the path the file was opened by.
func (f *File) Name() string { return f.name }

// Size is the length of the file in bytes.
func (f *File) Size() int64 { return f.size }

// DataOffset is where the data starts, behind the header.
func (f *File) DataOffset() int64 { return f.data }

// Metadata returns the strings of `__metadata__`; empty, not nil, when there are none.
func (f *File) Metadata() map[string]string { return maps.Clone(f.meta) }

// Tensors returns all tensors, in the order of their data.
func (f *File) Tensors() []TensorInfo { return slices.Clone(f.tensors) }

// Tensor finds a tensor by its exact name.
func (f *File) Tensor(name string) (TensorInfo, bool) {
	i, ok := f.byName[name]
	if !ok {
		return TensorInfo{}, false
	}
	return f.tensors[i], true
}

// Section returns a reader over the bytes of one tensor. It must not be used after Close.
func (f *File) Section(name string) (*io.SectionReader, error) {
	t, ok := f.Tensor(name)
	if !ok {
		return nil, fmt.Errorf("checkpoint: %s: tensor %q: %w", f.name, name, fs.ErrNotExist)
	}
	return io.NewSectionReader(f, t.Offset, t.Size), nil
}

// ReadTensor fills dst, which must have the tensor's size.
func (f *File) ReadTensor(name string, dst []byte) error {
	t, ok := f.Tensor(name)
	if !ok {
		return fmt.Errorf("checkpoint: %s: tensor %q: %w", f.name, name, fs.ErrNotExist)
	}
	if int64(len(dst)) != t.Size {
		return fmt.Errorf("checkpoint: %s: tensor %q has %d bytes, the buffer %d", f.name, name, t.Size, len(dst))
	}
	_, err := f.ReadAt(dst, t.Offset)
	return err
}

// ReadAt implements io.ReaderAt over the whole file. A file that became shorter since Open is an ErrFormat.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.r.ReadAt(p, off)
	switch {
	case n == len(p):
		return n, nil
	case errors.Is(err, io.EOF) && off+int64(len(p)) <= f.size:
		err = fmt.Errorf("%w: truncated at byte %d since it was opened", ErrFormat, off+int64(n))
	case errors.Is(err, io.EOF):
		return n, io.EOF
	}
	return n, fmt.Errorf("checkpoint: %s: %w", f.name, err)
}

// Close closes the file.
func (f *File) Close() error { return f.close() }
