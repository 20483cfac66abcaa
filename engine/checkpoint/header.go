package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"
)

// maxHeader is the largest header accepted, the limit of the reference library.
const maxHeader = 100_000_000

// metadataKey is the one name in a header that is not a tensor.
const metadataKey = "__metadata__"

// parseHeader reads the JSON header of a file whose data starts at offset dataStart. The tensors come back in the order
// of their data, with absolute offsets; that they cover the data without holes is checked, that the file is as long as
// they say is not.
func parseHeader(header []byte, dataStart int64) ([]TensorInfo, map[string]string, error) {
	if len(header) == 0 || header[0] != '{' {
		return nil, nil, fmt.Errorf("%w: the header is not a JSON object", ErrFormat)
	}
	if !utf8.Valid(header) {
		return nil, nil, fmt.Errorf("%w: the header is not UTF-8", ErrFormat)
	}
	p := newTokens(header)
	var tensors []TensorInfo
	meta := map[string]string{}
	err := p.object(func(key string) error {
		if key == metadataKey {
			return p.object(func(name string) (err error) {
				meta[name], err = p.text("value of metadata " + strconv.Quote(name))
				return err
			})
		}
		t, err := p.tensor(key)
		tensors = append(tensors, t)
		return err
	})
	if err == nil {
		err = p.end()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("header byte %d: %w", p.dec.InputOffset(), err)
	}
	if err := place(tensors, dataStart); err != nil {
		return nil, nil, err
	}
	return tensors, meta, nil
}

// place sorts the tensors by offset, demands that each starts where the one before ends, and makes the offsets absolute.
func place(tensors []TensorInfo, dataStart int64) error {
	slices.SortFunc(tensors, func(a, b TensorInfo) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Size, b.Size), cmp.Compare(a.Name, b.Name))
	})
	end := int64(0)
	for i := range tensors {
		t := &tensors[i]
		switch {
		case t.Offset < end:
			return fmt.Errorf("%w: tensor %q starts at %d, inside tensor %q that ends at %d", ErrFormat, t.Name, t.Offset, tensors[i-1].Name, end)
		case t.Offset > end:
			return fmt.Errorf("%w: %d bytes before tensor %q at %d belong to no tensor", ErrFormat, t.Offset-end, t.Name, t.Offset)
		}
		end += t.Size
		t.Offset += dataStart
	}
	return nil
}

// tokens reads JSON token by token: unlike Unmarshal it sees a repeated name and does not ignore the case of names.
type tokens struct{ dec *json.Decoder }

func newTokens(data []byte) *tokens {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return &tokens{dec}
}

func (p *tokens) next() (json.Token, error) {
	tok, err := p.dec.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return tok, nil
}

// end demands that only white space is left.
func (p *tokens) end() error {
	if tok, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %v after the end of the object", ErrFormat, tok)
	}
	return nil
}

func (p *tokens) delim(want json.Delim) error {
	tok, err := p.next()
	if err == nil && tok != want {
		err = fmt.Errorf("%w: %v where %v is expected", ErrFormat, tok, want)
	}
	return err
}

// object reads an object; member is called with each name and must read the value.
func (p *tokens) object(member func(name string) error) error {
	if err := p.delim('{'); err != nil {
		return err
	}
	return p.members(member)
}

// members reads what follows the opening brace, with the closing one.
func (p *tokens) members(member func(name string) error) error {
	seen := map[string]bool{}
	for p.dec.More() {
		name, err := p.text("name")
		if err != nil {
			return err
		}
		if seen[name] {
			return fmt.Errorf("%w: the name %q occurs twice", ErrFormat, name)
		}
		seen[name] = true
		if err := member(name); err != nil {
			return err
		}
	}
	return p.delim('}')
}

func (p *tokens) text(what string) (string, error) {
	tok, err := p.next()
	if err != nil {
		return "", err
	}
	s, ok := tok.(string)
	if !ok {
		return "", fmt.Errorf("%w: %s is %v, not a string", ErrFormat, what, tok)
	}
	return s, nil
}

// counts reads an array of integers from 0 to 2^63−1.
func (p *tokens) counts(what string) ([]int64, error) {
	if err := p.delim('['); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	list := []int64{}
	for p.dec.More() {
		tok, err := p.next()
		if err != nil {
			return nil, err
		}
		num, _ := tok.(json.Number)
		v, err := strconv.ParseInt(string(num), 10, 64)
		if err != nil || v < 0 || num == "-0" {
			return nil, fmt.Errorf("%w: %s: %v is not a whole number from 0 to 2^63-1", ErrFormat, what, tok)
		}
		list = append(list, v)
	}
	return list, p.delim(']')
}

// tensor reads the description of one tensor; its Offset is still relative to the data.
func (p *tokens) tensor(name string) (TensorInfo, error) {
	t := TensorInfo{Name: name}
	var offsets []int64
	err := p.object(func(key string) (err error) {
		switch key {
		case "dtype":
			var s string
			s, err = p.text("dtype")
			t.DType = DType(s)
		case "shape":
			t.Shape, err = p.counts("shape")
		case "data_offsets":
			offsets, err = p.counts("data_offsets")
		default:
			err = fmt.Errorf("%w: unknown field %q", ErrFormat, key)
		}
		return err
	})
	if err == nil {
		err = checkTensor(&t, offsets)
	}
	if err != nil {
		return t, fmt.Errorf("tensor %q: %w", name, err)
	}
	return t, nil
}

// checkTensor completes t from its offsets and demands that they agree with dtype and shape.
func checkTensor(t *TensorInfo, offsets []int64) error {
	if t.DType == "" || t.Shape == nil || len(offsets) != 2 {
		return fmt.Errorf("%w: dtype, shape and data_offsets [begin, end] are needed", ErrFormat)
	}
	if offsets[1] < offsets[0] {
		return fmt.Errorf("%w: data_offsets %v are reversed", ErrFormat, offsets)
	}
	size, err := byteSize(t.DType, t.Shape)
	if err != nil {
		return err
	}
	if got := offsets[1] - offsets[0]; got != size {
		return fmt.Errorf("%w: %d bytes at data_offsets %v, but %s%v is %d bytes", ErrFormat, got, offsets, t.DType, t.Shape, size)
	}
	t.Offset, t.Size = offsets[0], size
	return nil
}
