package checkpoint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Object is a JSON object. Its names are compared exactly; its values are still JSON.
type Object map[string]json.RawMessage

// maxDepth bounds the nesting of a configuration file.
const maxDepth = 64

// ParseObject reads one JSON object. A name that occurs twice, at any depth, is an error: some
// readers take the first value and some the last.
func ParseObject(data []byte) (Object, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(data))
	refuse := func(err error) (Object, error) {
		return nil, fmt.Errorf("byte %d: %w",
			dec.InputOffset(), err)
	}
	for ended := false; ; ended = dec.StackDepth() == 0 {
		tok, err := dec.ReadToken()
		switch {
		case ended && err == io.EOF:
			return unmarshal(data)
		case err != nil:
			return refuse(broken(err))
		case ended:
			return refuse(fmt.Errorf("%w: %s after the end of the object", ErrFormat, tok.Kind()))
		case dec.StackDepth() == 0 && tok.Kind() != '}':
			return refuse(fmt.Errorf("%w: %s where an object is expected", ErrFormat, tok.Kind()))
		case dec.StackDepth() > maxDepth:
			return refuse(fmt.Errorf("%w: nested deeper than %d", ErrFormat, maxDepth))
		}
	}
}

// unmarshal keeps the members of an object as raw JSON.
func unmarshal(data []byte) (Object, error) {
	o := Object{}
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return o, nil
}

// Names returns the names, sorted.
func (o Object) Names() []string { return slices.Sorted(maps.Keys(o)) }

// Get decodes the value of name into dst and reports whether there is one: an absent name and null
// leave dst alone.
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
