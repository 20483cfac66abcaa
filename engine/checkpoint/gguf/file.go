package gguf

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"

	"github.com/windrow-sim/windrow/engine/checkpoint/internal/tensor"
)

const (
	magic            = "GGUF"
	alignmentKey     = "general.alignment"
	defaultAlignment = 32 // docs/gguf.md
	leastAlignment   = 8  // docs/gguf.md
)

// File is an open GGUF file, or all files of a model in several. Its methods are safe for
// concurrent use; the results of Tensors and Metadata are copies.
type File struct {
	name    string
	raws    []*tensor.Raw // by stored.part
	version int
	meta    []pair   // sorted by key
	tensors []stored // in the order of their parts and data
	byName  []uint32 // indices of tensors, sorted by name
	notes   []string
}

// Open opens a GGUF file and checks its header against the size of the file; it reads no tensor. If
// the file is one of several of a model, whichever, all of them are opened. A file that breaks the
// format, and files that do not belong together, are a checkpoint.ErrFormat. Another version, byte
// order or type of tensor is a checkpoint.ErrUnsupported.
func Open(ctx context.Context, path string) (*File, error) {
	f, err := openPart(ctx, path)
	if err != nil {
		return nil, err
	}
	return f.whole(ctx)
}

// openPart opens one file.
func openPart(ctx context.Context, path string) (*File, error) {
	raw, err := tensor.Open(ctx, "gguf", path)
	if err != nil {
		return nil, err
	}
	f, err := newFile(raw)
	if err != nil {
		raw.Close()
		return nil, fmt.Errorf("gguf: %s: %w", path, err)
	}
	return f, nil
}

// newFile reads the header of one file.
func newFile(raw *tensor.Raw) (*File, error) {
	p := newParser(raw, raw.Size())
	version, err := p.start()
	if err != nil {
		return nil, err
	}
	tensors, err := p.u64()
	if err != nil {
		return nil, err
	}
	keys, err := p.u64()
	if err != nil {
		return nil, err
	}
	f := &File{name: raw.Name(), raws: []*tensor.Raw{raw}, version: int(version)}
	if f.meta, err = p.metadata(keys); err != nil {
		return nil, err
	}
	align, err := f.alignment()
	if err != nil {
		return nil, err
	}
	if f.tensors, err = p.tensors(tensors); err != nil {
		return nil, err
	}
	if err := f.index(); err != nil {
		return nil, err
	}
	if err := f.place(p.at, align); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *File) alignment() (int64, error) {
	v, ok := f.value(alignmentKey)
	if !ok {
		return defaultAlignment, nil
	}
	n, ok := v.(uint32)
	switch {
	case !ok: // the value of another type may be very long
		return 0, fmt.Errorf("%w: %s is of type %T, not a uint32 that is a power of two from %d on",
			errFormat, alignmentKey, v, leastAlignment)
	case n < leastAlignment || n&(n-1) != 0:
		return 0, fmt.Errorf("%w: %s is %d, not a power of two from %d on", errFormat, alignmentKey,
			n, leastAlignment)
	}
	return int64(n), nil
}

// index sorts the tensors by part and offset, fills byName and refuses a name that two tensors
// have.
func (f *File) index() error {
	slices.SortFunc(f.tensors, func(a, b stored) int {
		return cmp.Or(cmp.Compare(a.part, b.part), cmp.Compare(a.Offset, b.Offset),
			cmp.Compare(a.Name, b.Name))
	})
	f.byName = make([]uint32, len(f.tensors))
	for i := range f.byName {
		f.byName[i] = uint32(i)
	}
	slices.SortFunc(f.byName, func(a, b uint32) int {
		return cmp.Compare(f.tensors[a].Name,
			f.tensors[b].Name)
	})
	for i := range f.byName[min(1, len(f.byName)):] {
		a, b := &f.tensors[f.byName[i]], &f.tensors[f.byName[i+1]]
		if a.Name == b.Name && a.part == b.part {
			return fmt.Errorf("%w: the tensor %q occurs twice", errFormat, tensor.Clip(a.Name))
		} else if a.Name == b.Name {
			return fmt.Errorf("%w: the tensor %q is in two files, parts %d and %d", errFormat,
				tensor.Clip(a.Name), min(a.part, b.part)+1, max(a.part, b.part)+1)
		}
	}
	return nil
}

// find returns a tensor.
func (f *File) find(name string) (*stored, bool) {
	i, ok := slices.BinarySearchFunc(f.byName, name, func(i uint32, name string) int {
		return cmp.Compare(f.tensors[i].Name, name)
	})
	if !ok {
		return nil, false
	}
	return &f.tensors[f.byName[i]], true
}

// value returns the value of a key, and whether the key is there.
func (f *File) value(key string) (any, bool) {
	i, ok := slices.BinarySearchFunc(f.meta, key, func(p pair, key string) int {
		return cmp.Compare(p.key, key)
	})
	if !ok {
		return nil, false
	}
	return f.meta[i].value, true
}

// place demands that each tensor starts at the end of the previous one's padding, makes the offsets
// absolute, and compares the end with the file.
func (f *File) place(header, align int64) error {
	up := func(n int64) int64 { return (n + align - 1) / align * align }
	start, end := up(header), int64(0)
	for i := range f.tensors {
		t := &f.tensors[i]
		want, bytes := up(end), t.bytes()
		switch {
		case t.Offset%align != 0:
			return fmt.Errorf("%w: tensor %q at %d, which is no multiple of the alignment %d",
				errFormat, tensor.Clip(t.Name), t.Offset, align)
		case t.Offset < want:
			return fmt.Errorf("%w: tensor %q at %d overlaps the one before, which ends at %d",
				errFormat, tensor.Clip(t.Name), t.Offset, end)
		case t.Offset > want:
			return fmt.Errorf("%w: %d bytes before tensor %q at %d belong to no tensor", errFormat,
				t.Offset-want, tensor.Clip(t.Name), t.Offset)
		case bytes > math.MaxInt64-start-align-t.Offset:
			return fmt.Errorf("%w: tensor %q ends behind what a file can hold", errFormat,
				tensor.Clip(t.Name))
		}
		end = t.Offset + bytes
		t.Offset += start
	}
	size := f.raws[0].Size()
	switch {
	case len(f.tensors) > 0 && start+end > size:
		return fmt.Errorf("%w: truncated: the header promises %d bytes, the file has %d; "+
			"download it again", errFormat, start+end, size)
	case start+up(end) < size:
		f.notes = append(f.notes, fmt.Sprintf("%s: %d bytes after the last tensor belong to no "+
			"tensor and were not read", f.Name(), size-start-up(end)))
	}
	return nil
}

// Name is the path the file was opened by.
func (f *File) Name() string { return f.name }

// Version is the version of the format, 2 or 3.
func (f *File) Version() int { return f.version }

// Notes returns whole sentences about oddities, to be shown above the results.
func (f *File) Notes() []string { return slices.Clone(f.notes) }

// Metadata returns all values by key: numbers as the Go type of their size, bool, string, slices of
// these, and []any for arrays of arrays. The slices must not be changed.
func (f *File) Metadata() map[string]any {
	meta := make(map[string]any, len(f.meta))
	for _, p := range f.meta {
		meta[p.key] = p.value
	}
	return meta
}

// Int returns a whole number of any size, and whether the key is there. Another type is a
// checkpoint.ErrFormat.
func (f *File) Int(key string) (int64, bool, error) {
	v, ok := f.value(key)
	if !ok {
		return 0, false, nil
	}
	switch v := v.(type) {
	case uint8:
		return int64(v), true, nil
	case int8:
		return int64(v), true, nil
	case uint16:
		return int64(v), true, nil
	case int16:
		return int64(v), true, nil
	case uint32:
		return int64(v), true, nil
	case int32:
		return int64(v), true, nil
	case int64:
		return v, true, nil
	case uint64:
		if v <= math.MaxInt64 {
			return int64(v), true, nil
		}
	}
	return 0, false, f.wrongType(key, v, "a whole number")
}

// Get returns the value of a key if it has the type T, and whether the key exists. Another type is
// a checkpoint.ErrFormat.
func Get[T any](f *File, key string) (T, bool, error) {
	v, ok := f.value(key)
	if !ok {
		var none T
		return none, false, nil
	}
	x, ok := v.(T)
	if !ok {
		return x, false, f.wrongType(key, v, fmt.Sprintf("of type %T", x))
	}
	return x, true, nil
}

func (f *File) wrongType(key string, v any, want string) error {
	return fmt.Errorf("gguf: %s: %w: %s is of type %T, not %s", f.Name(), errFormat, key, v, want)
}

// Tensors returns all tensors, in the order of their data.
func (f *File) Tensors() []tensor.Info {
	list := make([]tensor.Info, len(f.tensors))
	for i, t := range f.tensors {
		list[i] = t.Info
	}
	return list
}

// Tensor finds a tensor by its exact name.
func (f *File) Tensor(name string) (tensor.Info, bool) {
	t, ok := f.find(name)
	if !ok {
		return tensor.Info{}, false
	}
	return t.Info, true
}

// Section returns a reader over the elements of one tensor, decoded and little-endian. It must not
// be used after Close.
func (f *File) Section(name string) (*io.SectionReader, error) {
	t, ok := f.find(name)
	if !ok {
		return nil, fmt.Errorf("gguf: %s: tensor %q: %w", f.Name(), name, fs.ErrNotExist)
	}
	e, raw := t.encoding(), f.raws[t.part]
	if e.decode == nil {
		return io.NewSectionReader(raw, t.Offset, t.Size), nil
	}
	return io.NewSectionReader(e.blocks(raw, t.Offset, t.Size), 0, t.Size), nil
}

// Close closes the file, or all files.
func (f *File) Close() error {
	var err error
	for _, raw := range f.raws {
		err = errors.Join(err, raw.Close())
	}
	return err
}
