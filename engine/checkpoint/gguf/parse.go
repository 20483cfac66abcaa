package gguf

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/windrow-sim/windrow/engine/checkpoint/internal/tensor"
)

// Limits of a header. The vocabularies of the largest public models need some 20 MB.
const (
	maxHeader     = 100_000_000
	maxKey        = 1<<16 - 1 // docs/gguf.md
	maxDimensions = 4         // docs/gguf.md
	maxNesting    = 4         // of arrays in arrays; known writers make none
)

// The least sizes of list items. Names are not empty, and a tensor has data, which is aligned.
const (
	leastPair   = 8 + 1 + 4 + 1
	leastTensor = 8 + 1 + 4 + 4 + 8
	leastData   = leastAlignment
	leastText   = 8
	leastArray  = 4 + 8
)

// The buffer of a parser, and the largest piece of it, a multiple of every number's size.
const (
	bufferSize = 1 << 16
	pieceSize  = 1 << 15
)

// parser reads a header from front to back. A list is allocated at once, when its length is read.
// The least bytes of its elements are then reserved: no list inside it can count on them too. So
// all lists together take at most four times the file's bytes, whatever the lengths are.
type parser struct {
	r        *bufio.Reader
	at       int64
	limit    int64 // of the header: the file's size or maxHeader
	promised int64 // bytes behind at for the missing items of open lists
	size     int64 // of the file
}

func newParser(file io.ReaderAt, size int64) *parser {
	limit := min(size, maxHeader)
	return &parser{r: bufio.NewReaderSize(io.NewSectionReader(file, 0, limit), bufferSize),
		limit: limit, size: size}
}

// fits refuses n items of at least the given size each if the file has no room for them.
func (p *parser) fits(n uint64, least int64, what string) error {
	left := max(0, p.limit-p.promised-p.at)
	if n <= uint64(left/least) {
		return nil
	}
	if p.limit < p.size {
		return fmt.Errorf("%w: %d %s at byte %d, but a header has at most %d bytes", errFormat, n,
			what, p.at, p.limit)
	}
	return fmt.Errorf("%w: truncated: %d %s at byte %d, the file has %d bytes", errFormat, n, what,
		p.at, p.size)
}

// take reads n bytes, at most pieceSize. They are valid until the next call.
func (p *parser) take(n int) ([]byte, error) {
	if err := p.fits(uint64(n), 1, "bytes"); err != nil {
		return nil, err
	}
	b, err := p.r.Peek(n)
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: truncated at byte %d", errFormat, p.at+int64(len(b)))
	}
	if err != nil {
		return nil, err
	}
	p.at += int64(n)
	_, err = p.r.Discard(n)
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
	if err == nil {
		err = p.fits(n, 1, "bytes")
	}
	if err != nil {
		return "", err
	}
	if n <= pieceSize {
		b, err := p.take(int(n))
		return string(b), err
	}
	var s strings.Builder
	s.Grow(int(n))
	for n > 0 {
		b, err := p.take(int(min(n, pieceSize)))
		if err != nil {
			return "", err
		}
		s.Write(b)
		n -= uint64(len(b))
	}
	return s.String(), nil
}

// key reads the name of a value or of a tensor.
func (p *parser) key(what string) (string, error) {
	s, err := p.text()
	if err == nil && (s == "" || len(s) > maxKey || !utf8.ValidString(s)) {
		err = fmt.Errorf("%w: %s of %d bytes that is empty, too long or not UTF-8", errFormat, what,
			len(s))
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
		return 0, fmt.Errorf("%w: version 1; convert the model again with a current converter",
			errUnsupported)
	case version&0xFFFF == 0: // no version is that large: 2 or 3 in the other order of bytes
		return 0, fmt.Errorf("%w: version %#08x: the file is big-endian; convert it on, or for, "+
			"a little-endian machine", errUnsupported, version)
	}
	return 0, fmt.Errorf("%w: version %d; 2 and 3 are", errUnsupported, version)
}

// pair is a key with its value.
type pair struct {
	key   string
	value any
}

// metadata reads n keys with their values and sorts them by key.
func (p *parser) metadata(n uint64) ([]pair, error) {
	meta, err := several(p, n, leastPair, "keys", p.pair)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(meta, func(a, b pair) int { return cmp.Compare(a.key, b.key) })
	for i := range meta[min(1, len(meta)):] {
		if meta[i].key == meta[i+1].key {
			return nil, fmt.Errorf("%w: the key %q occurs twice", errFormat,
				tensor.Clip(meta[i].key))
		}
	}
	return meta, nil
}

func (p *parser) pair() (pair, error) {
	key, err := p.key("a key")
	if err != nil {
		return pair{}, err
	}
	var value any
	kind, err := p.u32()
	if err == nil {
		value, err = p.value(kind, 0)
	}
	if err != nil {
		return pair{}, fmt.Errorf("key %q: %w", tensor.Clip(key), err)
	}
	return pair{key, value}, nil
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

// value reads one value. Numbers become the Go type of the same size, arrays become slices, arrays
// of arrays []any.
func (p *parser) value(kind uint32, depth int) (any, error) {
	switch kind {
	case kindText:
		return p.text()
	case kindArray:
		return p.array(depth + 1)
	}
	return p.numbers(kind, 1, true)
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
		return several(p, n, leastText, "texts", p.text)
	case kindArray:
		return several(p, n, leastArray, "arrays", func() (any, error) {
			return p.array(depth + 1)
		})
	}
	return p.numbers(kind, n, false)
}

// several reads n items of at least the given size each, one by one.
func several[T any](p *parser, n uint64, least int64, what string, read func() (T, error)) ([]T,
	error) {
	if err := p.fits(n, least, what); err != nil {
		return nil, err
	}
	list := make([]T, n)
	p.promised += int64(n) * least
	for i := range list {
		p.promised -= least
		var err error
		if list[i], err = read(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// numbers reads n values of a type of fixed size: a slice, or a single value.
func (p *parser) numbers(kind uint32, n uint64, alone bool) (any, error) {
	switch kind {
	case kindU8:
		return fixed(p, n, alone, 1, func(b []byte) uint8 { return b[0] })
	case kindI8:
		return fixed(p, n, alone, 1, func(b []byte) int8 { return int8(b[0]) })
	case kindU16:
		return fixed(p, n, alone, 2, binary.LittleEndian.Uint16)
	case kindI16:
		return fixed(p, n, alone, 2, func(b []byte) int16 {
			return int16(binary.LittleEndian.Uint16(b))
		})
	case kindU32:
		return fixed(p, n, alone, 4, binary.LittleEndian.Uint32)
	case kindI32:
		return fixed(p, n, alone, 4, func(b []byte) int32 {
			return int32(binary.LittleEndian.Uint32(b))
		})
	case kindF32:
		return fixed(p, n, alone, 4, func(b []byte) float32 {
			return math.Float32frombits(binary.LittleEndian.Uint32(b))
		})
	case kindU64:
		return fixed(p, n, alone, 8, binary.LittleEndian.Uint64)
	case kindI64:
		return fixed(p, n, alone, 8, func(b []byte) int64 {
			return int64(binary.LittleEndian.Uint64(b))
		})
	case kindF64:
		return fixed(p, n, alone, 8, func(b []byte) float64 {
			return math.Float64frombits(binary.LittleEndian.Uint64(b))
		})
	case kindBool:
		largest := byte(0)
		v, err := fixed(p, n, alone, 1, func(b []byte) bool {
			largest = max(largest,
				b[0])
			return b[0] == 1
		})
		if err == nil && largest > 1 {
			err = fmt.Errorf("%w: %d as a truth value", errFormat, largest)
		}
		return v, err
	}
	return nil, fmt.Errorf("%w: value of type %d", errFormat, kind)
}

func fixed[T any](p *parser, n uint64, alone bool, size int, decode func([]byte) T) (any, error) {
	if err := p.fits(n, int64(size), "numbers"); err != nil {
		return nil, err
	}
	if alone {
		b, err := p.take(size)
		if err != nil {
			return nil, err
		}
		return decode(b), nil
	}
	list := make([]T, n)
	for rest := list; len(rest) > 0; {
		b, err := p.take(min(len(rest)*size, pieceSize))
		if err != nil {
			return nil, err
		}
		for ; len(b) > 0; b, rest = b[size:], rest[1:] {
			rest[0] = decode(b)
		}
	}
	return list, nil
}

// stored is a tensor as the header describes it.
type stored struct {
	tensor.Info        // Offset counts from the start of the data until place makes it absolute
	number      uint32 // of the encoding; encodingOf knows it
	part        uint16 // of a model in several files, from 0 on
}

func (s *stored) encoding() encoding {
	e, _ := encodingOf(s.number) // parser.tensor has checked it
	return e
}

// bytes is the size in the file.
func (s *stored) bytes() int64 {
	e := s.encoding()
	return s.Elements() / e.elements * e.bytes
}

// tensors reads n descriptions.
func (p *parser) tensors(n uint64) ([]stored, error) {
	// The data behind the header counts too, without the padding of the last tensor.
	if left := p.size - p.at - leastTensor; n > 1 &&
		n-1 > uint64(max(0, left)/(leastTensor+leastData)) {
		return nil, fmt.Errorf("%w: truncated: %d tensors at byte %d, the file has %d bytes",
			errFormat, n, p.at, p.size)
	}
	return several(p, n, leastTensor, "tensors", func() (stored, error) {
		name, err := p.key("the name of a tensor")
		if err != nil {
			return stored{}, err
		}
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
		return s, fmt.Errorf("%w: %d dimensions; at most %d are possible", errFormat, rank,
			maxDimensions)
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
	if s.number, err = p.u32(); err != nil {
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
	if _, err = encodingOf(s.number); err != nil {
		return s, err
	}
	return s, s.measure()
}

// measure computes the decoded size of the tensor and demands whole blocks.
func (s *stored) measure() (err error) {
	e := s.encoding()
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
		return fmt.Errorf("%w: rows of %d elements are not whole blocks of %d (%s)", errFormat, row,
			e.elements, e.name)
	}
	return nil
}
