package checkpoint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
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
			if err := notFinite(dec, data); err != nil {
				return refuse(err)
			}
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

// notFinite is the error of a number that is not finite, as Python writes it, where the decoder has
// failed; else nil. It names the field.
func notFinite(dec *jsontext.Decoder, data []byte) error {
	rest := bytes.TrimLeft(data[dec.InputOffset():], " \t\r\n:,")
	for _, value := range []string{"NaN", "Infinity", "-Infinity"} {
		if !bytes.HasPrefix(rest, []byte(value)) {
			continue
		}
		at := dec.StackPointer()
		if kind, _ := dec.StackIndex(dec.StackDepth()); kind == '[' {
			at = at.Parent() // of an element the pointer is that of the one before
		}
		name := input.Dotted(at)
		if name == "" {
			name = "a value"
		}
		return fmt.Errorf("%w: %s is %s, which is not a number of JSON; write the number that "+
			"the model needs", ErrFormat, name, value)
	}
	return nil
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

// Get decodes the value of name into dst, as Member.Decode does, and reports whether there is one:
// an absent name and null leave dst alone.
func (o Object) Get(name string, dst any) (bool, error) {
	m, ok := o[name]
	if !ok || m.Null() {
		return false, nil
	}
	return true, m.Decode(name, dst)
}

// Null reports whether the value is null.
func (m Member) Null() bool { return string(m.JSON) == "null" }

// Decode decodes the value into dst. An *int also takes a whole number with a fraction or an
// exponent, 32.0 or 3.2e1, as Python programs write them. path names the value in errors.
func (m Member) Decode(path string, dst any) error {
	switch dst := dst.(type) {
	case *int:
		if n, ok := whole(m.JSON); ok {
			*dst = n
			return nil
		}
	case *Object:
		if len(m.JSON) > 0 && m.JSON[0] == '{' {
			return m.object(dst)
		}
	}
	if err := input.DecodeJSON(m.JSON, dst); err != nil {
		return fmt.Errorf("%w: %w", input.Within(err, path, m.Line), ErrFormat)
	}
	return nil
}

// object decodes an object, whose members keep their lines.
func (m Member) object(dst *Object) error {
	o, err := ParseObject(m.JSON)
	if err != nil {
		return err
	}
	for name, member := range o {
		member.Line += max(0, m.Line-1)
		o[name] = member
	}
	*dst = o
	return nil
}

// mostWhole bounds whole numbers with a fraction: up to there a float64 holds every one.
const mostWhole = 1 << 53

// whole returns a number with a fraction or an exponent that is a whole number nevertheless.
func whole(raw json.RawMessage) (int, bool) {
	var f float64
	if err := json.Unmarshal(raw, &f); err != nil || f != math.Trunc(f) ||
		math.Abs(f) > mostWhole {
		return 0, false
	}
	return int(f), true
}
