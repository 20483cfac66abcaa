package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"unicode/utf8"

	"github.com/windrow-sim/windrow/engine/checkpoint/internal/tensor"
)

// Limits of a header. The vocabularies of the largest public models need some 20 MB.
const (
	maxHeader     = 100_000_000
	maxKey        = 1<<16 - 1 // docs/gguf.md
	maxDimensions = 4         // docs/gguf.md
	maxNesting    = 4         // of arrays in arrays, which no known writer makes
)

// The least sizes of a key with its value and of the description of a tensor.
const (
	leastPair   = 8 + 4 + 1
	leastTensor = 8 + 4 + 4 + 8
)

// parser reads a header from front to back.
type parser struct {
	r     *bufio.Reader
	at    int64
	limit int64 // of the header: the file's size or maxHeader
	size  int64 // of the file
}

func newParser(file io.ReaderAt, size int64) *parser {
	limit := min(size, maxHeader)
	return &parser{r: bufio.NewReaderSize(io.NewSectionReader(file, 0, limit), 1<<16), limit: limit, size: size}
}

// fits refuses n things of at least the given size each where the file has no room for them.
func (p *parser) fits(n uint64, least int64, what string) error {
	left := p.limit - p.at
	if n <= uint64(left/least) {
		return nil
	}
	if p.limit < p.size {
		return fmt.Errorf("%w: %d %s at byte %d, but a header has at most %d bytes", errFormat, n, what, p.at, p.limit)
	}
	return fmt.Errorf("%w: truncated: %d %s at byte %d, the file has %d bytes", errFormat, n, what, p.at, p.size)
}

// take reads n bytes.
func (p *parser) take(n uint64) ([]byte, error) {
	if err := p.fits(n, 1, "bytes"); err != nil {
		return nil, err
	}
	b := make([]byte, n)
	got, err := io.ReadFull(p.r, b)
	p.at += int64(got)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("%w: truncated at byte %d", errFormat, p.at)
	}
	return b, err
}

func (p *parser) u32() (uint32, error) {
	b, err := p.take(4)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b), nil
}

func (p *parser) u64() (uint64, error) {
	b, err := p.take(8)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

func (p *parser) text() (string, error) {
	n, err := p.u64()
	if err != nil {
		return "", err
	}
	b, err := p.take(n)
	return string(b), err
}

// key reads the name of a value or of a tensor.
func (p *parser) key(what string) (string, error) {
	s, err := p.text()
	if err == nil && (s == "" || len(s) > maxKey || !utf8.ValidString(s)) {
		err = fmt.Errorf("%w: %s of %d bytes that is empty, too long or not UTF-8", errFormat, what, len(s))
	}
	return s, err
}

// start reads magic and version.
func (p *parser) start() (version uint32, err error) {
	b, err := p.take(8)
	if err != nil {
		return 0, err
	}
	version = binary.LittleEndian.Uint32(b[4:])
	switch {
	case string(b[:4]) != magic:
		return 0, fmt.Errorf("%w: the file starts with %q, not with %q", errFormat, b[:4], magic)
	case version == 2, version == 3:
		return version, nil
	case version == 1:
		return 0, fmt.Errorf("%w: version 1; convert the model again with a current converter", errUnsupported)
	case version&0xFFFF == 0: // no version is that large: 2 or 3 in the other order of bytes
		return 0, fmt.Errorf("%w: version %#08x: the file is big-endian; convert it on, or for, a little-endian machine", errUnsupported, version)
	}
	return 0, fmt.Errorf("%w: version %d; 2 and 3 are", errUnsupported, version)
}

// metadata reads n keys with their values.
func (p *parser) metadata(n uint64) (map[string]any, error) {
	if err := p.fits(n, leastPair, "keys"); err != nil {
		return nil, err
	}
	meta := map[string]any{}
	for range n {
		key, err := p.key("a key")
		if err != nil {
			return nil, err
		}
		if _, twice := meta[key]; twice {
			return nil, fmt.Errorf("%w: the key %q occurs twice", errFormat, tensor.Clip(key))
		}
		kind, err := p.u32()
		if err == nil {
			meta[key], err = p.value(kind, 0)
		}
		if err != nil {
			return nil, fmt.Errorf("key %q: %w", tensor.Clip(key), err)
		}
	}
	return meta, nil
}

// The types of values, from docs/gguf.md.
const (
	kindU8 = iota
	kindI8
	kindU16
	kindI16
	kindU32
	kindI32
	kindF32
	kindBool
	kindText
	kindArray
	kindU64
	kindI64
	kindF64
)

// value reads one value. Numbers become the Go type of the same size, arrays slices of those, arrays of arrays []any.
func (p *parser) value(kind uint32, depth int) (any, error) {
	switch kind {
	case kindText:
		return p.text()
	case kindArray:
		return p.array(depth + 1)
	}
	list, err := p.numbers(kind, 1)
	if err != nil {
		return nil, err
	}
	switch list := list.(type) {
	case []uint8:
		return list[0], nil
	case []int8:
		return list[0], nil
	case []uint16:
		return list[0], nil
	case []int16:
		return list[0], nil
	case []uint32:
		return list[0], nil
	case []int32:
		return list[0], nil
	case []float32:
		return list[0], nil
	case []bool:
		return list[0], nil
	case []uint64:
		return list[0], nil
	case []int64:
		return list[0], nil
	case []float64:
		return list[0], nil
	}
	return nil, fmt.Errorf("%w: value of type %d", errFormat, kind)
}

func (p *parser) array(depth int) (any, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("%w: arrays nested deeper than %d", errFormat, maxNesting)
	}
	kind, err := p.u32()
	if err != nil {
		return nil, err
	}
	n, err := p.u64()
	if err != nil {
		return nil, err
	}
	switch kind {
	case kindText:
		if err := p.fits(n, 8, "texts"); err != nil {
			return nil, err
		}
		return several(n, p.text)
	case kindArray:
		if err := p.fits(n, 12, "arrays"); err != nil {
			return nil, err
		}
		return several(n, func() (any, error) { return p.array(depth + 1) })
	}
	return p.numbers(kind, n)
}

// several reads n things one by one. The list grows with what is really there.
func several[T any](n uint64, read func() (T, error)) ([]T, error) {
	list := []T{}
	for range n {
		v, err := read()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// numbers reads n values of a type of fixed size.
func (p *parser) numbers(kind uint32, n uint64) (any, error) {
	switch kind {
	case kindU8:
		return p.take(n)
	case kindI8:
		return fixed(p, n, 1, func(b []byte) int8 { return int8(b[0]) })
	case kindU16:
		return fixed(p, n, 2, binary.LittleEndian.Uint16)
	case kindI16:
		return fixed(p, n, 2, func(b []byte) int16 { return int16(binary.LittleEndian.Uint16(b)) })
	case kindU32:
		return fixed(p, n, 4, binary.LittleEndian.Uint32)
	case kindI32:
		return fixed(p, n, 4, func(b []byte) int32 { return int32(binary.LittleEndian.Uint32(b)) })
	case kindF32:
		return fixed(p, n, 4, func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) })
	case kindU64:
		return fixed(p, n, 8, binary.LittleEndian.Uint64)
	case kindI64:
		return fixed(p, n, 8, func(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) })
	case kindF64:
		return fixed(p, n, 8, func(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) })
	case kindBool:
		return p.bools(n)
	}
	return nil, fmt.Errorf("%w: value of type %d", errFormat, kind)
}

func fixed[T any](p *parser, n uint64, size int, decode func([]byte) T) ([]T, error) {
	if err := p.fits(n, int64(size), "numbers"); err != nil {
		return nil, err
	}
	b, err := p.take(n * uint64(size))
	if err != nil {
		return nil, err
	}
	list := make([]T, n)
	for i := range list {
		list[i] = decode(b[i*size:])
	}
	return list, nil
}

func (p *parser) bools(n uint64) ([]bool, error) {
	b, err := p.take(n)
	if err != nil {
		return nil, err
	}
	list := make([]bool, n)
	for i, v := range b {
		if v > 1 {
			return nil, fmt.Errorf("%w: %d as a truth value", errFormat, v)
		}
		list[i] = v == 1
	}
	return list, nil
}

// stored is a tensor as the header describes it.
type stored struct {
	tensor.Info // Offset counts from the start of the data until place makes it absolute
	encoding    encoding
	bytes       int64 // in the file
}

// tensors reads n descriptions.
func (p *parser) tensors(n uint64) ([]stored, error) {
	if err := p.fits(n, leastTensor, "tensors"); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	return several(n, func() (stored, error) {
		name, err := p.key("the name of a tensor")
		if err != nil {
			return stored{}, err
		}
		if seen[name] {
			return stored{}, fmt.Errorf("%w: the tensor %q occurs twice", errFormat, tensor.Clip(name))
		}
		seen[name] = true
		s, err := p.tensor(name)
		if err != nil {
			return stored{}, fmt.Errorf("tensor %q: %w", tensor.Clip(name), err)
		}
		return s, nil
	})
}

func (p *parser) tensor(name string) (stored, error) {
	s := stored{Info: tensor.Info{Name: name}}
	rank, err := p.u32()
	if err != nil {
		return s, err
	}
	if rank > maxDimensions {
		return s, fmt.Errorf("%w: %d dimensions; at most %d are possible", errFormat, rank, maxDimensions)
	}
	s.Shape = make([]int64, rank)
	for i := range s.Shape {
		dim, err := p.u64()
		if err != nil {
			return s, err
		}
		if dim == 0 || dim > math.MaxInt64 {
			return s, fmt.Errorf("%w: dimension %d is %d", errFormat, i, dim)
		}
		s.Shape[len(s.Shape)-1-i] = int64(dim)
	}
	number, err := p.u32()
	if err != nil {
		return s, err
	}
	offset, err := p.u64()
	if err != nil {
		return s, err
	}
	if offset > math.MaxInt64 {
		return s, fmt.Errorf("%w: offset %d is more than a file can hold", errFormat, offset)
	}
	s.Offset = int64(offset)
	if s.encoding, err = encodingOf(number); err != nil {
		return s, err
	}
	return s, s.measure()
}

// measure computes the sizes of the tensor, decoded and in the file.
func (s *stored) measure() (err error) {
	e := s.encoding
	s.DType = e.dtype
	if s.Size, err = tensor.ByteSize(e.dtype, s.Shape); err != nil {
		return err
	}
	if e.decode != nil {
		s.Encoding = e.name
	}
	row := int64(1)
	if n := len(s.Shape); n > 0 {
		row = s.Shape[n-1]
	}
	if row%e.elements != 0 {
		return fmt.Errorf("%w: rows of %d elements are not whole blocks of %d (%s)", errFormat, row, e.elements, e.name)
	}
	s.bytes = s.Elements() / e.elements * e.bytes
	return nil
}
