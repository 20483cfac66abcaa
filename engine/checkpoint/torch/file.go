package torch

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/windrow-sim/windrow/engine/checkpoint/internal/tensor"
)

// File is an open file of torch.save with a dictionary of tensors. Its methods are safe for
// concurrent use; the result of Tensors is a copy.
type File struct {
	raw       *tensor.Raw
	bigEndian bool
	tensors   []pair // of the dictionary, sorted by name; every value is a *view
	notes     []string
}

// Open opens a file and runs its pickle; it reads no tensor. A broken file is a
// checkpoint.ErrFormat. A file from before the zip format, with anything but a dictionary of
// tensors, or with names of code is a checkpoint.ErrUnsupported.
func Open(ctx context.Context, path string) (*File, error) {
	raw, err := tensor.Open(ctx, "torch", path)
	if err != nil {
		return nil, err
	}
	f, err := newFile(raw)
	if err != nil {
		raw.Close()
		return nil, fmt.Errorf("torch: %s: %w", path, err)
	}
	return f, nil
}

func newFile(raw *tensor.Raw) (*File, error) {
	if err := checkStart(raw); err != nil {
		return nil, err
	}
	budget := newBudget(raw.Size())
	a, err := openArchive(raw, budget, maxDirectory)
	if err != nil {
		return nil, err
	}
	f := &File{raw: raw}
	if f.bigEndian, err = a.bigEndian(); err != nil {
		return nil, err
	}
	code, err := a.read("data.pkl", maxPickle)
	if err != nil {
		return nil, err
	}
	top, err := (&machine{code: code, budget: budget, archive: a}).run()
	if err != nil {
		return nil, err
	}
	return f, f.fill(top)
}

// checkStart distinguishes other kinds of files from truncated ones.
func checkStart(raw *tensor.Raw) error {
	start, err := raw.Start(16)
	switch {
	case err != nil:
		return err
	case bytes.HasPrefix(start, []byte(localMagic)):
		return nil
	case len(start) > 1 && start[0] == opProto && start[1] <= 5:
		return fmt.Errorf("%w: a file of PyTorch before 1.6 or a bare pickle; load it there and "+
			"torch.save it again with a current version", errUnsupported)
	}
	return fmt.Errorf("%w: %d bytes that start with %q, not a file of torch.save", errFormat,
		raw.Size(), start)
}

// fill takes the tensors out of the dictionary, which is sorted by name.
func (f *File) fill(top any) error {
	d, ok := top.(*dict)
	if !ok {
		return fmt.Errorf("%w: the file holds %s, not a dictionary of tensors; save the state "+
			"dict of the model", errUnsupported, kind(top))
	}
	var other []string
	others := 0
	for _, p := range d.pairs {
		switch p.value.(type) {
		case *view:
			continue
		case *dict:
			return fmt.Errorf("%w: %q is a dictionary inside the dictionary; save it alone",
				errUnsupported, tensor.Clip(p.key))
		}
		if others++; others <= mostNamed {
			other = append(other, tensor.Clip(p.key))
		}
	}
	f.tensors = slices.DeleteFunc(d.pairs, func(p pair) bool {
		_, isView := p.value.(*view)
		return !isView
	})
	if others > len(other) {
		other = append(other, fmt.Sprintf("and %d more", others-len(other)))
	}
	if others > 0 {
		f.notes = append(f.notes, fmt.Sprintf("not read, because it is not a tensor: %s",
			strings.Join(other, ", ")))
	}
	return nil
}

// mostNamed is the number of names that a note lists; no state dict has that many values besides
// its tensors.
const mostNamed = 20

// Name is the path the file was opened by.
func (f *File) Name() string { return f.raw.Name() }

// Notes returns whole sentences about ignored parts, to be shown above the results.
func (f *File) Notes() []string { return slices.Clone(f.notes) }

// Tensors returns all tensors, sorted by name. Several may share their bytes.
func (f *File) Tensors() []tensor.Info {
	list := make([]tensor.Info, len(f.tensors))
	for i, t := range f.tensors {
		list[i] = f.info(t.key, t.value.(*view))
	}
	return list
}

func (f *File) info(name string, v *view) tensor.Info {
	return tensor.Info{Name: name, DType: v.dtype, Shape: v.shape, Offset: v.offset +
		v.start*v.dtype.Size(), Size: v.size,
		Encoding: v.encoding(f.bigEndian)}
}

// find returns a tensor, or nil.
func (f *File) find(name string) *view {
	i, ok := slices.BinarySearchFunc(f.tensors, name, func(p pair, name string) int {
		return cmp.Compare(p.key, name)
	})
	if !ok {
		return nil
	}
	return f.tensors[i].value.(*view)
}

// Tensor finds a tensor by its exact name.
func (f *File) Tensor(name string) (tensor.Info, bool) {
	v := f.find(name)
	if v == nil {
		return tensor.Info{}, false
	}
	return f.info(name, v), true
}

// Section returns a reader over the elements of one tensor in row-major order, little-endian. It
// must not be used after Close. A transposed matrix is read with one access per column for each
// piece, so pieces should be of many rows.
func (f *File) Section(name string) (*io.SectionReader, error) {
	v := f.find(name)
	if v == nil {
		return nil, fmt.Errorf("torch: %s: tensor %q: %w", f.raw.Name(), name, fs.ErrNotExist)
	}
	return io.NewSectionReader(v.reader(f.raw, f.bigEndian), 0, v.size), nil
}

// Close closes the file.
func (f *File) Close() error { return f.raw.Close() }
