package checkpoint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/windrow-sim/windrow/internal/input"
)

// Object is a JSON object. Its names are compared exactly.
type Object map[string]Member

// Member is the value of a name, which is still JSON.
type Member struct {
	JSON json.RawMessage
	Line int // of the file, from 1; 0 = the object is not of a file of lines
}

// maxDepth bounds the nesting of a configuration file.
const maxDepth = 64

// ParseObject reads one JSON object. A name that occurs twice, at any depth, is an error: some
// readers take the first value and some the last.
func ParseObject(data []byte) (Object, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(data))
	refuse := func(err error) (Object, error) {
		return nil, fmt.Errorf("line %d: %w", input.LineAt(data, dec.InputOffset()), err)
	}
	lines, line, counted := map[string]int{}, 1, int64(0)
	for ended := false; ; ended = dec.StackDepth() == 0 {
		tok, err := dec.ReadToken()
		switch {
		case ended && err == io.EOF:
			return unmarshal(data, lines)
		case err != nil:
			return refuse(broken(err))
		case ended:
			return refuse(fmt.Errorf("%w: %s after the end of the object", ErrFormat, tok.Kind()))
		case dec.StackDepth() == 0 && tok.Kind() != '}':
			return refuse(fmt.Errorf("%w: %s where an object is expected", ErrFormat, tok.Kind()))
		case dec.StackDepth() > maxDepth:
			return refuse(fmt.Errorf("%w: nested deeper than %d", ErrFormat, maxDepth))
		}
		if dec.StackDepth() != 1 {
			continue
		}
		if _, length := dec.StackIndex(1); length%2 == 1 { // a name
			line += bytes.Count(data[counted:dec.InputOffset()], []byte("\n"))
			counted = dec.InputOffset()
			lines[tok.String()] = line
		}
	}
}

// unmarshal keeps the members of an object as raw JSON.
func unmarshal(data []byte, lines map[string]int) (Object, error) {
	members := map[string]json.RawMessage{}
	if err := input.DecodeJSON(data, &members); err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrFormat)
	}
	o := make(Object, len(members))
	for name, raw := range members {
		o[name] = Member{raw, lines[name]}
	}
	return o, nil
}

// Names returns the names, sorted.
func (o Object) Names() []string { return slices.Sorted(maps.Keys(o)) }

// Get decodes the value of name into dst and reports whether there is one: an absent name and null
// leave dst alone.
func (o Object) Get(name string, dst any) (bool, error) {
	m, ok := o[name]
	if !ok || string(m.JSON) == "null" {
		return false, nil
	}
	if err := input.DecodeJSON(m.JSON, dst); err != nil {
		return false, fmt.Errorf("%w: %w", input.Within(err, name, m.Line), ErrFormat)
	}
	return true, nil
}
