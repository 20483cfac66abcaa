package devicemodels

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/windrow-sim/windrow/internal/nearest"
)

// checkDocument returns the document, or the first error that makes data no Device, with file, line
// and field path. The decoder finds the same errors, but without the line of a bad unit and without
// the nearest key of a misspelt one, and it drops the fraction of a whole number.
func checkDocument(name string, data []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("devicemodels: %s: is empty: %w", name, ErrFormat)
	} else if err != nil {
		return nil, fmt.Errorf("devicemodels: %s: %w: %w", name, err, ErrFormat)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("devicemodels: %s: holds more than one document; write one device "+
			"per file: %w", name, ErrFormat)
	}
	c := checker{name: name}
	return doc.Content[0], c.walk(doc.Content[0], reflect.TypeFor[Device](), "")
}

// located gives faults of a document the name of its file and their lines.
func located(name string, doc *yaml.Node, faults []error) []error {
	list := make([]error, len(faults))
	for i, err := range faults {
		if f, ok := errors.AsType[*fault](err); ok {
			list[i] = fmt.Errorf("%s:%d: %w", name, lineOf(doc, f.path), err)
		} else {
			list[i] = fmt.Errorf("%s: %w", name, err)
		}
	}
	return list
}

// lineOf is the line of the field at a path like fit.cells[3].depth. A field that the document does
// not have is on the line of what would hold it. Keys may have dots in them.
func lineOf(n *yaml.Node, path string) int {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			rest, ok := strings.CutPrefix(path, n.Content[i].Value)
			if ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
				return lineOf(n.Content[i+1], strings.TrimPrefix(rest, "."))
			}
		}
	case yaml.SequenceNode:
		number, rest, _ := strings.Cut(strings.TrimPrefix(path, "["), "]")
		if i, err := strconv.Atoi(number); err == nil && i >= 0 && i < len(n.Content) {
			return lineOf(n.Content[i], strings.TrimPrefix(rest, "."))
		}
	}
	return n.Line
}

type checker struct{ name string }

func (c checker) fail(n *yaml.Node, path, format string, args ...any) error {
	if path == "" {
		path = "device"
	}
	return fmt.Errorf("devicemodels: %s:%d: %s: %s: %w", c.name, n.Line, path, fmt.Sprintf(format,
		args...), ErrFormat)
}

// walk checks n against the type it will be decoded into.
func (c checker) walk(n *yaml.Node, t reflect.Type, path string) error {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return c.fail(n, path, "anchors and aliases are not supported; repeat the value")
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case isText(t):
		return c.text(n, t, path)
	case t.Kind() == reflect.Struct:
		return c.mapping(n, path, func(key string) (reflect.Type, []string) {
			names, types := fields(t)
			return types[key], names
		})
	case t.Kind() == reflect.Map:
		return c.mapping(n, path, func(string) (reflect.Type, []string) { return t.Elem(), nil })
	case t.Kind() == reflect.Slice:
		return c.sequence(n, t.Elem(), path)
	}
	if n.Kind != yaml.ScalarNode {
		return c.fail(n, path, "is a list or a mapping; write one %s", t.Kind())
	}
	whole := t.Kind() == reflect.Int || t.Kind() == reflect.Int64
	if whole && n.ShortTag() == "!!float" { // the decoder takes 1.5 for 1
		return c.fail(n, path, "%q is not a whole number", n.Value)
	}
	if err := n.Decode(reflect.New(t).Interface()); err != nil {
		return c.fail(n, path, "%q is not a %s", n.Value, t.Kind())
	}
	return nil
}

func (c checker) text(n *yaml.Node, t reflect.Type, path string) error {
	if n.Kind != yaml.ScalarNode {
		return c.fail(n, path, "is a list or a mapping; write one value with its unit")
	}
	u, _ := reflect.New(t).Interface().(encoding.TextUnmarshaler)
	if err := u.UnmarshalText([]byte(n.Value)); err != nil {
		return c.fail(n, path, "%v", err)
	}
	return nil
}

// mapping checks every entry of n. typeOf returns the type of the value under a key; for an unknown
// key it returns nil and the known names.
func (c checker) mapping(n *yaml.Node, path string, typeOf func(key string) (reflect.Type,
	[]string)) error {
	if n.Kind != yaml.MappingNode {
		return c.fail(n, path, "is not a mapping of keys to values")
	}
	seen := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			return c.fail(key, path, "a key is not a plain name")
		}
		if line, twice := seen[key.Value]; twice {
			return c.fail(key, path, "key %q is already given on line %d", key.Value, line)
		}
		seen[key.Value] = key.Line
		t, known := typeOf(key.Value)
		if t == nil {
			return c.fail(key, path, "unknown key %q; %s", key.Value, suggest(key.Value, known))
		}
		if err := c.walk(value, t, join(path, key.Value)); err != nil {
			return err
		}
	}
	return nil
}

func (c checker) sequence(n *yaml.Node, elem reflect.Type, path string) error {
	if n.Kind != yaml.SequenceNode {
		return c.fail(n, path, "is not a list")
	}
	for i, item := range n.Content {
		if err := c.walk(item, elem, fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}
	return nil
}

func isText(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// fields returns the keys of a struct in order of declaration, and their types.
func fields(t reflect.Type) (names []string, types map[string]reflect.Type) {
	types = make(map[string]reflect.Type, t.NumField())
	for f := range t.Fields() {
		key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if key == "-" {
			continue
		}
		names = append(names, key)
		types[key] = f.Type
	}
	return names, types
}

// fieldType follows a dotted path from t. For a path that does not exist it returns nil, the key
// where the path stopped, and the keys known there.
func fieldType(t reflect.Type, path string) (found reflect.Type, stopped string, known []string) {
	for key := range strings.SplitSeq(path, ".") {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		switch {
		case t.Kind() == reflect.Struct:
			names, types := fields(t)
			if types[key] == nil {
				return nil, key, names
			}
			t = types[key]
		case t.Kind() == reflect.Map:
			t = t.Elem()
		default:
			return nil, key, nil
		}
	}
	return t, "", nil
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// suggest names the known key nearest to a misspelt one, or all known keys when none is near.
func suggest(key string, known []string) string {
	if best, distance := nearest.Name(key, known); distance >= 0 && distance <= len(key)/2 {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "known keys are " + strings.Join(known, ", ")
}
