package tokenizer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	kinds "github.com/windrow-sim/windrow/internal/refusal"
)

// The two ways in which a tokenizer can be refused, for errors.Is. A file that cannot be read is
// neither.
var (
	ErrFormat      = kinds.Kind(kinds.ErrInput, "malformed tokenizer")
	ErrUnsupported = kinds.Kind(kinds.ErrInput, "unsupported tokenizer")
)

// position is a place in a file. For an entry of a list it is the number of the entry, from 0,
// because a list is often one line.
type position struct {
	in *origin
	// line, from 1, or entry of the list, from 0; no place in the file when there is no list and n
	// is 0
	n int32
}

// origin is a file, or a list in it. The many positions in it share it.
type origin struct {
	file string
	name string // of the list, or ""
}

// listed reports whether positions are entries of a list.
func (o *origin) listed() bool { return o != nil && o.name != "" }

// inFile returns the position of a whole file, inList the position of the first entry of a list in
// it.
func inFile(file string) position { return position{in: &origin{file: file}} }

func inList(file, list string) position { return position{in: &origin{file, list}} }

// line returns the position of a line of the file, from 1.
func (p position) line(n int) position { return position{p.in, int32(n)} }

// entry returns the position of an entry of the list, from 0.
func (p position) entry(n int) position { return position{p.in, int32(n)} }

// list returns the position of a list in the same file; without a name the position of the file.
func (p position) list(name string) position {
	if name == "" {
		return p
	}
	return inList(p.in.file, name)
}

func (p position) String() string {
	switch {
	case p.in == nil:
		return "?"
	case p.in.listed():
		return fmt.Sprintf("%s:%s[%d]", p.in.file, p.in.name, p.n)
	case p.n == 0:
		return p.in.file
	}
	return fmt.Sprintf("%s:%d", p.in.file, p.n)
}

// twice is the error of a name that two members of one object have.
func (p position) twice(name string) error {
	return p.malformed("%q occurs twice; which of the two is meant cannot be known", name)
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
	return &refusal{ErrUnsupported, fmt.Sprintf("tokenizer: %v: %s", p, fmt.Sprintf(format,
		args...))}
}

// value is an unparsed JSON value and its position.
type value struct {
	name string // its key in the object around it
	raw  []byte
	pos  position
}

// jsonFile makes the value of a whole file, which must be UTF-8.
func jsonFile(name string, data []byte) (value, error) {
	v := value{name: name, raw: data, pos: inFile(name).line(1)}
	if i := invalidAt(data); i >= 0 {
		return v, v.pos.line(1+bytes.Count(data[:i], []byte("\n"))).malformed("byte %d is not "+
			"UTF-8", i)
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

// Limits of a value in memory before it is parsed. Vocabularies, merges and added tokens have no
// limit and are never stored this way.
const (
	maxMembers  = 256 // of an object with collected members
	maxElements = 32  // of a list with collected elements
)

// object returns the members of a JSON object in the order of the file. A key that occurs twice is
// an error, and so is anything after the object.
func (v value) object() ([]value, error) {
	var out []value
	err := v.walk('{', func(name, raw []byte, at position) error {
		m := value{name: internName(name), raw: raw, pos: at}
		if _, twice := find(out, m.name); twice {
			return at.twice(m.name)
		}
		if len(out) == maxMembers {
			return at.unsupported("%s with more than %d members", v.name, maxMembers)
		}
		out = append(out, m)
		return nil
	})
	return out, err
}

// eachMember calls read for every member of a JSON object with small values, without keeping them.
// A key that occurs twice, also inside a value, is an error.
func (v value) eachMember(read func(value) error) error {
	return v.walkUnique('{', func(name, raw []byte, at position) error {
		return read(value{name: internName(name), raw: raw, pos: at})
	})
}

// array returns the elements of a short JSON array. Their position is list[i], or the line when
// list is "".
func (v value) array(list string) ([]value, error) {
	var out []value
	err := v.eachElement(list, func(el value) error {
		if len(out) == maxElements {
			return el.pos.unsupported("%s with more than %d elements", v.name, maxElements)
		}
		out = append(out, el)
		return nil
	})
	return out, err
}

// eachElement calls read for every element of a JSON array, without keeping them.
func (v value) eachElement(list string, read func(value) error) error {
	in := v.pos.list(list)
	n := 0
	return v.walk('[', func(_, raw []byte, at position) error {
		if list != "" {
			at = in.entry(n)
		}
		n++
		return read(value{name: v.name, raw: raw, pos: at})
	})
}

// count returns the number of elements of a JSON array.
func (v value) count() (n int, err error) {
	err = v.walk('[', func(_, _ []byte, _ position) error {
		n++
		return nil
	})
	return n, err
}

// internName returns the name of a member. The names that every added token has cost no memory.
func internName(quoted []byte) string {
	switch string(quoted) {
	case `"id"`:
		return "id"
	case `"content"`:
		return "content"
	case `"special"`:
		return "special"
	case `"normalized"`:
		return "normalized"
	case `"lstrip"`:
		return "lstrip"
	case `"rstrip"`:
		return "rstrip"
	case `"single_word"`:
		return "single_word"
	}
	name, _ := unquote(quoted) // checked by the decoder
	return name
}

// unquote returns the text of a JSON string.
func unquote(quoted []byte) (string, error) {
	var short [64]byte
	text, err := jsontext.AppendUnquote(short[:0], quoted)
	return string(text), err
}

// decoder reads one value. Every parsed value needs one, so they are reused.
type decoder struct {
	jsontext.Decoder
	input bytes.Buffer
}

var decoders = sync.Pool{New: func() any { return new(decoder) }}

// walk calls next for each element of the object or array that v must be, with its quoted name in
// an object. It does not compare names: a vocabulary has very many, which are compared later.
func (v value) walk(open byte, next func(name, raw []byte, at position) error) error {
	return v.walkWith(open, next, jsontext.AllowDuplicateNames(true))
}

// walkUnique is walk for an object without two equal names, also inside its members.
func (v value) walkUnique(open byte, next func(name, raw []byte, at position) error) error {
	return v.walkWith(open, next, jsontext.AllowDuplicateNames(false))
}

func (v value) walkWith(open byte, next func(name, raw []byte, at position) error,
	names jsontext.Options) error {
	dec := decoders.Get().(*decoder)
	defer decoders.Put(dec)
	dec.input = *bytes.NewBuffer(v.raw)
	dec.Reset(&dec.input, names)
	tok, err := dec.ReadToken()
	if err != nil {
		return v.broken(err)
	}
	if byte(tok.Kind()) != open {
		want := map[byte]string{'{': "an object", '[': "a list"}[open]
		return v.pos.malformed("%s is not %s", v.name, want)
	}
	at, counted := v.pos, 0
	for byte(dec.PeekKind()) != open+2 { // in ASCII: } after {, ] after [
		var name []byte
		if open == '{' {
			if name, err = dec.ReadValue(); err != nil {
				return v.broken(err)
			}
		}
		start := len(v.raw) - len(dec.UnreadBuffer()) - len(name)
		raw, err := dec.ReadValue()
		if err != nil {
			return v.broken(err)
		}
		if name == nil {
			start = len(v.raw) - len(dec.UnreadBuffer()) - len(raw)
		}
		if !at.in.listed() {
			at.n += int32(bytes.Count(v.raw[counted:start], []byte("\n")))
		}
		counted = start
		if err := next(name, raw, at); err != nil {
			return err
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return v.broken(err)
	}
	if _, err := dec.ReadToken(); err != io.EOF {
		return v.pos.malformed("there is something after the end of %s", v.name)
	}
	return nil
}

// broken turns an error of the JSON decoder into one that names the file.
func (v value) broken(err error) error {
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return v.pos.malformed("%s ends too early", v.name)
	case errors.As(err, &syntax):
		at := v.pos
		if !at.in.listed() {
			at.n += int32(bytes.Count(v.raw[:min(int(syntax.ByteOffset), len(v.raw))],
				[]byte("\n")))
		}
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return at.twice(syntax.JSONPointer.LastToken())
		}
		return at.malformed("%s is not valid JSON: %v", v.name, syntax.Err)
	}
	return v.pos.malformed("%s is not valid JSON: %v", v.name, err)
}

// null reports whether v is JSON's null.
func (v value) null() bool { return string(v.raw) == "null" }

// text returns a string.
func (v value) text() (string, error) {
	if v.raw[0] != '"' {
		return "", v.isNot("a string")
	}
	text, err := unquote(v.raw)
	if err != nil {
		return "", v.isNot("a string")
	}
	return text, nil
}

// appendText appends a string to dst.
func (v value) appendText(dst []byte) ([]byte, error) {
	if v.raw[0] != '"' {
		return dst, v.isNot("a string")
	}
	dst, err := jsontext.AppendUnquote(dst, v.raw)
	if err != nil {
		return dst, v.isNot("a string")
	}
	return dst, nil
}

// flag returns a boolean.
func (v value) flag() (bool, error) {
	switch string(v.raw) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, v.isNot("true or false")
}

// id returns a token id.
func (v value) id() (uint32, error) {
	n, err := strconv.ParseUint(string(v.raw), 10, 32)
	if err != nil {
		return 0, v.isNot("a token id")
	}
	return uint32(n), nil
}

// isNot is the error of a value that is something else.
func (v value) isNot(what string) error {
	return v.pos.malformed("%s is %.40s, not %s", v.name, v.raw, what)
}
