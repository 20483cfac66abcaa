package checkpoint

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/windrow-sim/windrow/engine/checkpoint/internal/tensor"
)

// maxHeader is the largest header accepted, about a million tensors. The reference library stops at
// 100 MB; headers padded for direct I/O, or with a tokenizer in them, may be larger.
const maxHeader = 256 << 20

// maxRank is the largest number of dimensions accepted. Models have far fewer. A dimension has as
// little as two bytes in a header and takes eight in memory: without a limit, a header of nothing
// else would need five times its own size.
const maxRank = 24

// metadataKey is the one name in a header that is not a tensor.
const metadataKey = "__metadata__"

// header is the content of a file's JSON header.
type header struct {
	tensors []TensorInfo // in the order of their data, with absolute offsets
	byName  []uint32     // indices of tensors, sorted by name
	// meta is the JSON object of the metadata, checked, or nil. It stays text because an entry has
	// as little as nine bytes and takes six times that in a map.
	meta []byte
}

// parseHeader reads the JSON header of a file with its data at offset dataStart. It checks that the
// tensors cover the data without holes, but not the length of the file.
//
// It allocates at most three times the header: the header is walked twice, once to check and count,
// once to fill lists of the exact size.
func parseHeader(data []byte, dataStart int64) (header, error) {
	if len(data) == 0 || data[0] != '{' {
		return header{}, fmt.Errorf("%w: the header is not a JSON object", ErrFormat)
	}
	if !utf8.Valid(data) {
		return header{}, fmt.Errorf("%w: the header is not UTF-8", ErrFormat)
	}
	var tensors, dims, pairs int
	s := newScanner(data)
	err := scanHeader(s, visitor{
		tensor: func(_ []byte, d *description) error { tensors++; dims += d.rank; return nil },
		pair:   func(int) error { pairs++; return nil },
	})
	if err != nil {
		return header{}, err
	}
	h := header{tensors: make([]TensorInfo, 0, tensors)}
	shapes := make([]int64, 0, dims)
	keys := make([]uint32, 0, pairs) // where the names of the metadata start
	err = scanHeader(s, visitor{
		tensor: func(name []byte, d *description) error {
			from := len(shapes)
			shapes = append(shapes, d.shape[:d.rank]...)
			h.tensors = append(h.tensors, TensorInfo{Name: string(s.text(name)), DType: d.dtype,
				Shape:  shapes[from:len(shapes):len(shapes)],
				Offset: d.offsets[0], Size: d.size})
			return nil
		},
		pair: func(at int) error { keys = append(keys, uint32(at)); return nil },
		meta: func(object []byte) { h.meta = bytes.Clone(object) },
	})
	if err == nil {
		err = refuseTwice(s, keys)
	}
	if err == nil {
		err = h.index(s)
	}
	if err == nil {
		err = h.place(dataStart)
	}
	return h, err
}

// place demands that each tensor starts at the end of the previous one, and makes the offsets
// absolute.
func (h *header) place(dataStart int64) error {
	end := int64(0)
	for i := range h.tensors {
		t := &h.tensors[i]
		switch {
		case t.Offset < end:
			return fmt.Errorf("%w: tensor %q starts at %d, inside tensor %q that ends at %d",
				ErrFormat,
				tensor.Clip(t.Name), t.Offset, tensor.Clip(h.tensors[i-1].Name), end)
		case t.Offset > end:
			return fmt.Errorf("%w: %d bytes before tensor %q at %d belong to no tensor", ErrFormat,
				t.Offset-end, tensor.Clip(t.Name), t.Offset)
		}
		end += t.Size
		t.Offset += dataStart
	}
	return nil
}

// index sorts the tensors by offset, fills byName and refuses a name that two tensors have.
func (h *header) index(s *scanner) error {
	slices.SortFunc(h.tensors, func(a, b TensorInfo) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Size, b.Size),
			cmp.Compare(a.Name, b.Name))
	})
	h.byName = make([]uint32, len(h.tensors))
	for i := range h.byName {
		h.byName[i] = uint32(i)
	}
	slices.SortFunc(h.byName, func(a, b uint32) int {
		return cmp.Compare(h.tensors[a].Name,
			h.tensors[b].Name)
	})
	for i, at := range h.byName[min(1, len(h.byName)):] {
		if name := h.tensors[at].Name; name == h.tensors[h.byName[i]].Name {
			return secondTensor(s, name)
		}
	}
	return nil
}

// find returns the index of a tensor.
func (h *header) find(name string) (int, bool) {
	i, ok := slices.BinarySearchFunc(h.byName, name, func(i uint32, name string) int {
		return cmp.Compare(h.tensors[i].Name, name)
	})
	if !ok {
		return 0, false
	}
	return int(h.byName[i]), true
}

// metadata returns the strings of the metadata.
func (h *header) metadata() map[string]string {
	pairs := map[string]string{}
	if h.meta == nil {
		return pairs
	}
	s := newScanner(h.meta)
	// parseHeader has accepted the object, so there is no error.
	_ = s.object(func(name []byte) error {
		key := string(s.text(name))
		value, err := s.quoted()
		pairs[key] = string(s.text(value))
		return err
	})
	return pairs
}

// twice is the error of a name that two members of one object have.
func twice(name []byte) error {
	return fmt.Errorf("%w: the name %q occurs twice", ErrFormat, tensor.Clip(string(name)))
}

// secondTensor is the error of a tensor that occurs twice, with the position of the second one.
func secondTensor(s *scanner, name string) error {
	n := 0
	return scanHeader(s, visitor{tensor: func(quoted []byte, _ *description) error {
		if text := s.text(quoted); string(text) == name {
			if n++; n == 2 {
				return twice(text)
			}
		}
		return nil
	}})
}

// refuseTwice sorts the positions of the names of the metadata by the names and refuses two equal
// ones.
func refuseTwice(a *scanner, keys []uint32) error {
	b := newScanner(a.data) // for the other of two names
	compare := func(x, y uint32) int { return bytes.Compare(a.textAt(x), b.textAt(y)) }
	slices.SortFunc(keys, compare)
	for i := 1; i < len(keys); i++ {
		if compare(keys[i-1], keys[i]) == 0 {
			return fmt.Errorf("header byte %d: %w", max(keys[i-1], keys[i]),
				twice(a.textAt(keys[i])))
		}
	}
	return nil
}

// description is a header's description of one tensor. It has no memory of its own, so one can be
// used for all.
type description struct {
	dtype   DType
	shape   [maxRank]int64
	offsets [maxRank]int64 // relative to the data; more than two are kept for the error
	rank    int
	ends    int // how many offsets there are
	size    int64
	has     [len(fields)]bool // the fields that were there
}

// fields are the names of the members of a tensor's description.
var fields = [...]string{"dtype", "shape", "data_offsets"}

// visitor has the callbacks of scanHeader; a nil one is not called.
type visitor struct {
	// tensor is called with the quoted name of a tensor and its checked description, which must not
	// be kept.
	tensor func(name []byte, d *description) error
	pair   func(at int) error  // with the position of each name of the metadata
	meta   func(object []byte) // with the whole object of the metadata
}

// scanHeader walks a header from front to back. It checks everything except relations between two
// tensors, or between two names of the metadata.
func scanHeader(s *scanner, v visitor) error {
	s.rewind(0)
	var d description
	hasMeta := false
	err := s.object(func(name []byte) error {
		if string(s.text(name)) == metadataKey {
			if hasMeta {
				return twice([]byte(metadataKey))
			}
			hasMeta = true
			return s.metadata(v)
		}
		err := s.tensor(&d)
		if err == nil {
			err = d.check()
		}
		if err != nil {
			return fmt.Errorf("tensor %q: %w", tensor.Clip(string(s.text(name))), err)
		}
		if v.tensor != nil {
			return v.tensor(name, &d)
		}
		return nil
	})
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return fmt.Errorf("header byte %d: %w", s.at(), err)
	}
	return nil
}

// metadata reads an object whose values are strings.
func (s *scanner) metadata(v visitor) error {
	start := s.at()
	start += max(0, bytes.IndexByte(s.data[start:], '{'))
	err := s.object(func(name []byte) error {
		if v.pair != nil {
			if err := v.pair(s.at() - len(name)); err != nil {
				return err
			}
		}
		if _, err := s.quoted(); err != nil {
			return fmt.Errorf("value of metadata %q: %w", tensor.Clip(string(s.text(name))), err)
		}
		return nil
	})
	if err == nil && v.meta != nil {
		v.meta(s.data[start:s.at()])
	}
	return err
}

// tensor reads the description of one tensor.
func (s *scanner) tensor(d *description) error {
	d.has = [len(fields)]bool{}
	return s.object(func(name []byte) error {
		field := s.text(name)
		i := slices.Index(fields[:], string(field))
		switch {
		case i < 0:
			return fmt.Errorf("%w: unknown field %q", ErrFormat, tensor.Clip(string(field)))
		case d.has[i]:
			return twice(field)
		}
		d.has[i] = true
		var err error
		switch fields[i] {
		case "dtype":
			var quoted []byte
			if quoted, err = s.quoted(); err == nil {
				d.setType(s.text(quoted))
			}
		case "shape":
			d.rank, err = s.counts(&d.shape)
		case "data_offsets":
			d.ends, err = s.counts(&d.offsets)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", fields[i], err)
		}
		return nil
	})
}

// setType keeps the type of the tensor before where that is the same: a file has few types and many
// tensors.
func (d *description) setType(name []byte) {
	if string(d.dtype) != string(name) {
		d.dtype = tensor.NamedType(name)
	}
}

// check completes the description and demands that its parts agree.
func (d *description) check() error {
	if d.has != [len(fields)]bool{true, true, true} || d.dtype == "" || d.ends != 2 {
		return fmt.Errorf("%w: dtype, shape and data_offsets [begin, end] are needed", ErrFormat)
	}
	shape, offsets := d.shape[:d.rank], d.offsets[:2]
	if offsets[1] < offsets[0] {
		return fmt.Errorf("%w: data_offsets %v are reversed", ErrFormat, offsets)
	}
	var err error
	if d.size, err = byteSize(d.dtype, shape); err != nil {
		return err
	}
	if got := offsets[1] - offsets[0]; got != d.size {
		return fmt.Errorf("%w: %d bytes at data_offsets %v, but %s%v is %d bytes", ErrFormat, got,
			offsets, d.dtype, shape, d.size)
	}
	return nil
}
