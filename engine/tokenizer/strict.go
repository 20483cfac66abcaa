package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// The two ways in which a tokenizer can be refused, for errors.Is. A file that cannot be read is neither.
var (
	ErrFormat      = errors.New("malformed tokenizer")
	ErrUnsupported = errors.New("unsupported tokenizer")
)

// position is a place in a file. For an entry of a list it is the number of the entry, from 0, because a list is often
// one line.
type position struct {
	file  string
	list  string // name of a list, or ""
	entry int    // line, from 1, or entry of the list, from 0; no place in the file when list is "" and entry 0
}

func (p position) String() string {
	switch {
	case p.list != "":
		return fmt.Sprintf("%s:%s[%d]", p.file, p.list, p.entry)
	case p.entry == 0:
		return p.file
	}
	return fmt.Sprintf("%s:%d", p.file, p.entry)
}

// refusal is an error at a position, of one of the two kinds.
type refusal struct {
	kind error
	text string
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return r.kind }

// malformed returns an ErrFormat.
func (p position) malformed(format string, args ...any) error {
	return &refusal{ErrFormat, fmt.Sprintf("tokenizer: %v: %s", p, fmt.Sprintf(format, args...))}
}

// unsupported returns an ErrUnsupported.
func (p position) unsupported(format string, args ...any) error {
	return &refusal{ErrUnsupported, fmt.Sprintf("tokenizer: %v: %s", p, fmt.Sprintf(format, args...))}
}

// value is a JSON value that has not been looked into, and where it stands.
type value struct {
	name string // its key in the object around it
	raw  []byte
	pos  position
}

// jsonFile makes the value of a whole file. encoding/json replaces invalid UTF-8 silently, which could make two tokens
// one, so it is refused here.
func jsonFile(name string, data []byte) (value, error) {
	v := value{name: name, raw: data, pos: position{file: name, entry: 1}}
	if i := invalidAt(data); i >= 0 {
		return v, position{file: name, entry: 1 + bytes.Count(data[:i], []byte("\n"))}.malformed("byte %d is not UTF-8", i)
	}
	return v, nil
}

// invalidAt returns the position of the first byte that is not UTF-8, or -1.
func invalidAt(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// object returns the members of a JSON object in the order of the file. A key that occurs twice is an error, and so is
// anything after the object.
func (v value) object() ([]value, error) {
	var out []value
	err := v.eachMember(func(m value) error {
		out = append(out, m)
		return nil
	})
	return out, err
}

// eachMember calls read for every member of a JSON object, without keeping them: a vocabulary has many.
func (v value) eachMember(read func(value) error) error {
	seen := make(map[string]bool)
	return v.walk('{', func(dec *json.Decoder, at position) error {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		m := value{name: key.(string), pos: at} // between members of an object a token is always a string
		if seen[m.name] {
			return at.malformed("%q occurs twice; which of the two is meant cannot be known", m.name)
		}
		seen[m.name] = true
		if err := dec.Decode((*json.RawMessage)(&m.raw)); err != nil {
			return err
		}
		return read(m)
	})
}

// array returns the elements of a JSON array. Their position is list[i], or the line when list is "".
func (v value) array(list string) ([]value, error) {
	var out []value
	err := v.eachElement(list, func(el value) error {
		out = append(out, el)
		return nil
	})
	return out, err
}

// eachElement calls read for every element of a JSON array, without keeping them.
func (v value) eachElement(list string, read func(value) error) error {
	n := 0
	return v.walk('[', func(dec *json.Decoder, at position) error {
		m := value{name: v.name, pos: at}
		if list != "" {
			m.pos = position{v.pos.file, list, n}
		}
		n++
		if err := dec.Decode((*json.RawMessage)(&m.raw)); err != nil {
			return err
		}
		return read(m)
	})
}

// walk calls next before each element of the object or array that v must be.
func (v value) walk(open json.Delim, next func(*json.Decoder, position) error) error {
	dec := json.NewDecoder(bytes.NewReader(v.raw))
	tok, err := dec.Token()
	if err != nil {
		return v.broken(err)
	}
	if tok != open {
		want := map[json.Delim]string{'{': "an object", '[': "a list"}[open]
		return v.pos.malformed("%s is not %s", v.name, want)
	}
	at, counted := v.pos, 0
	for dec.More() {
		off := elementStart(v.raw, int(dec.InputOffset()))
		if at.list == "" {
			at.entry += bytes.Count(v.raw[counted:off], []byte("\n"))
		}
		counted = off
		if err := next(dec, at); err != nil {
			return v.broken(err)
		}
	}
	if _, err := dec.Token(); err != nil {
		return v.broken(err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return v.pos.malformed("there is something after the end of %s", v.name)
	}
	return nil
}

// elementStart returns the offset of the first byte at or after from that is neither white space nor a comma: the
// decoder's own offset is that of the end of the element before.
func elementStart(raw []byte, from int) int {
	i := from
	for i < len(raw) && bytes.IndexByte([]byte(" \t\r\n,"), raw[i]) >= 0 {
		i++
	}
	return i
}

// broken turns an error of the JSON decoder into one that names the file; our own errors stay as they are.
func (v value) broken(err error) error {
	var own *refusal
	if errors.As(err, &own) {
		return err
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return v.pos.malformed("%s ends too early", v.name)
	}
	return v.pos.malformed("%s is not valid JSON: %v", v.name, err)
}

// null reports whether v is JSON's null.
func (v value) null() bool { return string(v.raw) == "null" }

// text returns a string.
func (v value) text() (string, error) {
	var s string
	err := v.scalar(&s, "a string")
	return s, err
}

// flag returns a boolean.
func (v value) flag() (bool, error) {
	var b bool
	err := v.scalar(&b, "true or false")
	return b, err
}

// id returns a token id.
func (v value) id() (uint32, error) {
	var n uint32
	err := v.scalar(&n, "a token id")
	return n, err
}

func (v value) scalar(into any, want string) error {
	if err := json.Unmarshal(v.raw, into); err != nil || v.null() {
		return v.pos.malformed("%s is %.40s, not %s", v.name, v.raw, want)
	}
	return nil
}
