package checkpoint

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/windrow-sim/windrow/internal/output"
)

// WriterOptions place the data.
type WriterOptions struct {
	// HeaderAlign pads the header with spaces so that AlignTensor starts at a multiple of it; 0
	// means 8.
	HeaderAlign int64
	// AlignTensor is the name of a tensor; empty means the first one.
	AlignTensor string
}

// Writer writes a safetensors file as a stream. The bytes go to a temporary name in the same
// folder; only Commit gives the file its own name, once all bytes are there. Use it so:
//
//	w, err := NewWriter(path, tensors, meta, opt)
//	defer w.Abort()
//	for each tensor { w.Begin(name); w.Write(...) }
//	err = w.Commit()
//
// After an error every further call returns that error.
type Writer struct {
	path    string
	file    *output.File
	tensors []TensorInfo
	current int   // tensor being written, −1 before the first
	left    int64 // missing bytes of the current tensor
	err     error
}

// NewWriter creates the temporary file and writes the header. The data must follow in the order of
// tensors; their Offset and Size are computed here. An existing file at path stays until Commit
// replaces it.
func NewWriter(path string, tensors []TensorInfo, meta map[string]string,
	opt WriterOptions) (*Writer, error) {
	placed, header, err := encodeHeader(tensors, meta, opt)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: write %s: %w", path, err)
	}
	file, err := output.Create(path)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	w := &Writer{path: path, file: file, tensors: placed, current: -1}
	if _, err := w.file.Write(header); err != nil {
		w.Abort()
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	return w, nil
}

// Tensors returns the tensors with their offsets and sizes in the file.
func (w *Writer) Tensors() []TensorInfo { return slices.Clone(w.tensors) }

// Begin starts the next tensor. Its name proves that the caller writes in the announced order; the
// previous tensor must be complete.
func (w *Writer) Begin(name string) error {
	if err := w.complete(); err != nil {
		return w.fail(err)
	}
	if w.current+1 == len(w.tensors) {
		return w.fail(fmt.Errorf("tensor %q: all announced tensors are written", name))
	}
	next := w.tensors[w.current+1]
	if next.Name != name {
		return w.fail(fmt.Errorf("tensor %q: %q is next", name, next.Name))
	}
	w.current++
	w.left = next.Size
	return nil
}

// Write appends to the tensor that was begun last.
func (w *Writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if int64(len(p)) > w.left {
		return 0, w.fail(fmt.Errorf("%d bytes more than the current tensor holds",
			int64(len(p))-w.left))
	}
	n, err := w.file.Write(p)
	w.left -= int64(n)
	if err != nil {
		return n, w.end(fmt.Errorf("checkpoint: %w", err))
	}
	return n, nil
}

// Commit checks that every tensor is complete, syncs the data to the device and renames the file
// into place. On an error nothing is left under the temporary name, and an older file at path
// stays.
func (w *Writer) Commit() error {
	if err := w.complete(); err != nil {
		return w.fail(err)
	}
	if w.current+1 != len(w.tensors) {
		return w.fail(fmt.Errorf("tensor %q was not written", w.tensors[w.current+1].Name))
	}
	if err := w.file.Commit(); err != nil {
		return w.end(fmt.Errorf("checkpoint: %w", err))
	}
	w.err = fmt.Errorf("checkpoint: write %s: already committed", w.path)
	return nil
}

// Abort removes the temporary file. After Commit it does nothing, so it can be deferred.
func (w *Writer) Abort() {
	w.file.Abort()
	if w.err == nil {
		w.err = fmt.Errorf("checkpoint: write %s: aborted", w.path)
	}
}

// complete returns an error if bytes of the current tensor are missing, or the error that ended the
// writing.
func (w *Writer) complete() error {
	if w.err == nil && w.left > 0 {
		return fmt.Errorf("tensor %q: %d bytes are missing", w.tensors[w.current].Name, w.left)
	}
	return w.err
}

// fail records the first error and removes the temporary file.
func (w *Writer) fail(err error) error {
	return w.end(fmt.Errorf("checkpoint: write %s: %w", w.path, err))
}

func (w *Writer) end(err error) error {
	if w.err == nil {
		w.err = err
		w.Abort()
	}
	return w.err
}

// encodeHeader returns the tensors with their places and the first bytes of the file: length, JSON
// and padding.
func encodeHeader(tensors []TensorInfo, meta map[string]string, opt WriterOptions) ([]TensorInfo,
	[]byte, error) {
	placed, err := pack(tensors)
	if err != nil {
		return nil, nil, err
	}
	lead := int64(0) // data before the tensor to align
	if opt.AlignTensor != "" {
		i := slices.IndexFunc(placed, func(t TensorInfo) bool { return t.Name == opt.AlignTensor })
		if i < 0 {
			return nil, nil, fmt.Errorf("there is no tensor %q to align", opt.AlignTensor)
		}
		lead = placed[i].Offset
	}
	text, err := headerJSON(placed, meta)
	if err != nil {
		return nil, nil, err
	}
	align := opt.HeaderAlign
	if align == 0 {
		align = 8
	}
	if align < 0 || align > maxHeader/2 {
		return nil, nil, fmt.Errorf("alignment %d is out of range", align)
	}
	used := 8 + int64(len(text))
	pad := (align - (used+lead)%align) % align
	if used+pad > maxHeader {
		return nil, nil, fmt.Errorf("%w: the header needs %d bytes, the limit is %d",
			ErrUnsupported, used+pad, maxHeader)
	}
	header := make([]byte, 0, used+pad)
	header = binary.LittleEndian.AppendUint64(header, uint64(used+pad-8))
	header = append(header, text...)
	header = append(header, bytes.Repeat([]byte{' '}, int(pad))...)
	for i := range placed {
		placed[i].Offset += used + pad
	}
	return placed, header, nil
}

// pack computes sizes and offsets, counted from the start of the data.
func pack(tensors []TensorInfo) ([]TensorInfo, error) {
	packed := slices.Clone(tensors)
	seen := map[string]bool{metadataKey: true}
	at := int64(0)
	for i := range packed {
		t := &packed[i]
		size, err := byteSize(t.DType, t.Shape)
		if err == nil && size > math.MaxInt64-maxHeader-at {
			err = fmt.Errorf("%w: the file would be larger than a file can be", ErrFormat)
		}
		if err == nil && len(t.Shape) > maxRank {
			err = fmt.Errorf("%w: %d dimensions; at most %d are read", ErrUnsupported, len(t.Shape),
				maxRank)
		}
		if err == nil && seen[t.Name] {
			err = fmt.Errorf("%w: the name is used twice or reserved", ErrFormat)
		}
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		seen[t.Name] = true
		t.Offset, t.Size = at, size
		at += size
	}
	return packed, nil
}

// headerJSON writes the metadata in the order of its names, then the tensors in the order of their
// data.
func headerJSON(tensors []TensorInfo, meta map[string]string) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	put := func(prefix, name string, value any) error {
		out.WriteString(prefix)
		if !utf8.ValidString(name) {
			return fmt.Errorf("%w: the name %q is not UTF-8", ErrFormat, name)
		}
		if err := enc.Encode(name); err != nil {
			return err
		}
		out.Bytes()[out.Len()-1] = ':' // Encode ends with a line feed
		if err := enc.Encode(value); err != nil {
			return err
		}
		out.Truncate(out.Len() - 1)
		return nil
	}
	prefix := "{"
	if len(meta) > 0 {
		for _, name := range slices.Sorted(maps.Keys(meta)) {
			if !utf8.ValidString(name) || !utf8.ValidString(meta[name]) {
				return nil, fmt.Errorf("%w: metadata %q is not UTF-8", ErrFormat, name)
			}
		}
		if err := put(prefix, metadataKey, meta); err != nil { // the encoder sorts the names
			return nil, err
		}
		prefix = ","
	}
	for _, t := range tensors {
		shape := t.Shape
		if shape == nil {
			shape = []int64{}
		}
		value := struct {
			DType   DType    `json:"dtype"`
			Shape   []int64  `json:"shape"`
			Offsets [2]int64 `json:"data_offsets"`
		}{t.DType, shape, [2]int64{t.Offset, t.Offset + t.Size}}
		if err := put(prefix, t.Name, value); err != nil {
			return nil, err
		}
		prefix = ","
	}
	if prefix == "{" {
		out.WriteByte('{')
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}
