package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"unicode/utf8"
)

// Object is a JSON object whose names are compared exactly; values are still JSON.
type Object map[string]json.RawMessage

// maxDepth bounds the nesting of a configuration file.
const maxDepth = 64

// ParseObject reads one JSON object. A name that occurs twice, at any depth, is an error: which of the two values counts
// differs from reader to reader.
func ParseObject(data []byte) (Object, error) {
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("%w: not UTF-8", ErrFormat)
	}
	p := newTokens(data)
	err := p.object(func(name string) error {
		if err := p.skip(1); err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
		return nil
	})
	if err == nil {
		err = p.end()
	}
	if err != nil {
		return nil, fmt.Errorf("byte %d: %w", p.dec.InputOffset(), err)
	}
	o := Object{}
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return o, nil
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
		name, err := p.name()
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

func (p *tokens) name() (string, error) {
	tok, err := p.next()
	if err != nil {
		return "", err
	}
	s, ok := tok.(string)
	if !ok {
		return "", fmt.Errorf("%w: a name is %v, not a string", ErrFormat, tok)
	}
	return s, nil
}

// skip reads one value of any kind.
func (p *tokens) skip(depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%w: nested deeper than %d", ErrFormat, maxDepth)
	}
	tok, err := p.next()
	if err != nil {
		return err
	}
	switch tok {
	case json.Delim('{'):
		return p.members(func(string) error { return p.skip(depth + 1) })
	case json.Delim('['):
		for p.dec.More() {
			if err := p.skip(depth + 1); err != nil {
				return err
			}
		}
		return p.delim(']')
	}
	return nil
}

// Names returns the names, sorted.
func (o Object) Names() []string { return slices.Sorted(maps.Keys(o)) }

// Get decodes the value of name into dst and says whether there is one: an absent name and null leave dst alone.
func (o Object) Get(name string, dst any) (bool, error) {
	raw, ok := o[name]
	if !ok || string(raw) == "null" {
		return false, nil
	}
	if err := json.Unmarshal(raw, dst); err != nil {
		return false, fmt.Errorf("%w: %s: %w", ErrFormat, name, err)
	}
	return true, nil
}
