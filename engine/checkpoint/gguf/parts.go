package gguf

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"github.com/windrow-sim/windrow/engine/checkpoint/internal/tensor"
)

// The keys of a file that is one of several of a model. Only the first file has the other keys.
const (
	splitCount   = "split.count"
	splitNumber  = "split.no"            // from 0 on, while names count from 1 on
	splitTensors = "split.tensors.count" // of all files together
)

// maxNamedParts bounds the list of missing files in an error.
const maxNamedParts = 12

// partName is the name of one file of a model: base-00002-of-00003.gguf.
type partName struct {
	base, ext     string
	number, count int64
}

// parsePartName reports whether a path has the form of a part's name.
func parsePartName(path string) (p partName, ok bool) {
	p.ext = filepath.Ext(path)
	rest, total, ok := cutLast(strings.TrimSuffix(path, p.ext), "-of-")
	if !ok {
		return p, false
	}
	base, number, ok := cutLast(rest, "-")
	if !ok || len(number) != 5 || len(total) != 5 {
		return p, false
	}
	n, err := strconv.ParseUint(number, 10, 32)
	count, errCount := strconv.ParseUint(total, 10, 32)
	p.base, p.number, p.count = base, int64(n), int64(count)
	return p, err == nil && errCount == nil && n >= 1 && n <= count
}

func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return s, "", false
}

// path returns the path of a part, counted from 1 on.
func (p partName) path(number int64) string {
	return fmt.Sprintf("%s-%05d-of-%05d%s", p.base, number, p.count, p.ext)
}

// BaseName returns the name of a model's file without its folder, and without the number of the
// part if it is one of several.
func BaseName(path string) string {
	if p, ok := parsePartName(path); ok {
		path = p.base + p.ext
	}
	return filepath.Base(path)
}

// whole returns the model that a file is one part of: the file itself, or all parts joined. It
// takes the file over: nothing is open after an error.
func (f *File) whole(ctx context.Context) (*File, error) {
	count, ok, err := f.Int(splitCount)
	if err == nil && ok && count > 1 {
		return f.joinOthers(ctx, count)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// joinOthers opens the other parts of a model and joins them. Their names are made of the name of
// this one.
func (f *File) joinOthers(ctx context.Context, count int64) (*File, error) {
	name, err := f.siblings(count)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	parts := make([]*File, count)
	parts[name.number-1] = f
	for i := range parts {
		if parts[i] == nil && err == nil {
			parts[i], err = openPart(ctx, name.path(int64(i+1)))
		}
	}
	var whole *File
	if err == nil {
		whole, err = join(f.Name(), parts)
	}
	if err == nil {
		return whole, nil
	}
	for _, p := range parts {
		if p != nil {
			err = errors.Join(err, p.Close())
		}
	}
	return nil, err
}

// siblings demands a name that tells those of the other parts, and lists the missing ones.
func (f *File) siblings(count int64) (partName, error) {
	name, ok := parsePartName(f.Name())
	switch {
	case count > math.MaxUint16: // the type that the format gives it
		return name, fmt.Errorf("gguf: %s: %w: %s is %d", f.Name(), errFormat, splitCount, count)
	case !ok:
		return name, fmt.Errorf("gguf: %s: %w: one of the %d files of a model (%s), but its name "+
			"does not end as %s does, by which the others are found; give all files the names "+
			"back that they were made with, or join them with llama-gguf-split --merge", f.Name(),
			errFormat, count, splitCount, partName{"model", ".gguf", 1, count}.path(1))
	case name.count != count:
		return name, fmt.Errorf("gguf: %s: %w: one of the %d files of a model (%s), but the name "+
			"is that of one of %d; give the file its name back", f.Name(), errFormat, count,
			splitCount, name.count)
	}
	var missing []string
	for n := int64(1); n <= count && len(missing) < maxNamedParts; n++ {
		if _, err := os.Stat(name.path(n)); errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, filepath.Base(name.path(n)))
		}
	}
	if len(missing) == 0 {
		return name, nil
	}
	list := strings.Join(missing, ", ")
	if len(missing) == maxNamedParts {
		list += " and perhaps more"
	}
	return name, fmt.Errorf("gguf: %s: %w: one of the %d files of a model, of which these are "+
		"missing beside it: %s; download them too", f.Name(), errFormat, count, list)
}

// join makes one file of all parts of a model, in their order. The parts must not contradict each
// other. The result has the metadata of the first.
func join(name string, parts []*File) (*File, error) {
	first := parts[0]
	whole := &File{name: name, version: first.version, meta: first.meta}
	for i, p := range parts {
		if err := p.agrees(first, int64(i), int64(len(parts))); err != nil {
			return nil, fmt.Errorf("gguf: %s: %w", p.Name(), err)
		}
		for _, t := range p.tensors {
			t.part = uint16(i)
			whole.tensors = append(whole.tensors, t)
		}
		whole.raws = append(whole.raws, p.raws...)
		whole.notes = append(whole.notes, p.notes...)
	}
	total, ok, err := first.Int(splitTensors)
	if err == nil && ok && total != int64(len(whole.tensors)) {
		err = fmt.Errorf("gguf: %s: %w: %s is %d, but the %d files have %d tensors; they are not "+
			"of one model, or one was cut off", first.Name(), errFormat, splitTensors, total,
			len(parts), len(whole.tensors))
	}
	if err != nil {
		return nil, err
	}
	if err := whole.index(); err != nil {
		return nil, fmt.Errorf("gguf: %s: %w", name, err)
	}
	return whole, nil
}

// agrees demands that a file is the part of the model that it stands for: split.no, split.count,
// and the same value of every key that the first part has too.
func (f *File) agrees(first *File, number, count int64) error {
	for _, want := range []struct {
		key   string
		value int64
	}{{splitNumber, number}, {splitCount, count}} {
		got, ok, err := f.Int(want.key)
		if err != nil {
			return err
		}
		if !ok || got != want.value {
			text := "missing"
			if ok {
				text = strconv.FormatInt(got, 10)
			}
			return fmt.Errorf("%w: part %d of %d by its name, but %s is %s, not %d; give the "+
				"file its own name back", errFormat, number+1, count, want.key, text, want.value)
		}
	}
	for _, p := range f.meta {
		if p.key == splitNumber || p.key == alignmentKey {
			continue
		}
		if v, ok := first.value(p.key); ok && !reflect.DeepEqual(v, p.value) {
			return fmt.Errorf("%w: another value of %s than in %s; the files are not of one model",
				errFormat, tensor.Clip(p.key), filepath.Base(first.Name()))
		}
	}
	return nil
}
