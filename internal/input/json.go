package input

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	experiment "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	v1 "github.com/go-json-experiment/json/v1"
)

// JSONError says where a JSON document is not what its reader wants. Its text begins with the line,
// so that it follows the name of a file.
type JSONError struct {
	Line  int    // from 1
	Path  string // of the value: jobs[3].read.iops; "" = the document itself
	Value string // as it is written, shortened; "" = it has none
	Why   string // the end of a sentence about the value: "is not a whole number"
}

// Error is "line 12: jobs[3].read.iops: 1e400 is not a number up to 1.8e+308".
func (e *JSONError) Error() string {
	text := ""
	if e.Line > 0 {
		text = fmt.Sprintf("line %d: ", e.Line)
	}
	if e.Path != "" {
		text += e.Path + ": "
	}
	if e.Value != "" {
		text += e.Value + " "
	}
	return text + e.Why
}

// DecodeJSON decodes one JSON document as json.Unmarshal does. Its errors are *JSONErrors: where
// the text is not JSON, or the first value that does not fit.
func DecodeJSON(data []byte, into any) error {
	err := json.Unmarshal(data, into)
	if err == nil {
		return nil
	}
	// encoding/json knows the place of some errors only. This decoder, with the same rules, knows
	// the place of all.
	again := experiment.Unmarshal(data, reflect.New(reflect.TypeOf(into).Elem()).Interface(),
		v1.DefaultOptionsV1(), v1.ReportErrorsWithLegacySemantics(false))
	if s, ok := errors.AsType[*experiment.SemanticError](again); ok {
		e := found(data, s.JSONPointer)
		e.Why = misfit(s)
		return e
	}
	if s, ok := errors.AsType[*jsontext.SyntacticError](again); ok {
		e := found(data, s.JSONPointer)
		e.Line, e.Value = LineAt(data, s.ByteOffset), ""
		e.Why = "is not JSON: " + s.Err.Error()
		return e
	}
	return &JSONError{Line: 1, Why: err.Error()}
}

// RefuseJSON is a JSONError about the value at a path of a document that was decoded before. If the
// document does not have the value, the line is that of what would hold it.
func RefuseJSON(data []byte, path, why string) error {
	e := found(data, pointerTo(path))
	e.Path, e.Why = path, why
	return e
}

// Below moves the line of a JSONError down, for a document that begins after some lines of its
// file; -1 leaves out the line of a document of one. Other errors stay as they are.
func Below(err error, lines int) error {
	if e, ok := errors.AsType[*JSONError](err); ok {
		e.Line += lines
	}
	return err
}

// Within makes the path and line of a JSONError those of its file, for the value of a member that
// was decoded alone. line is the member's; 0 = the file has no lines.
func Within(err error, member string, line int) error {
	if e, ok := errors.AsType[*JSONError](err); ok {
		e.Line += line - 1
		e.Path = strings.TrimSuffix(member+"."+e.Path, ".")
	}
	return err
}

// LineAt is the number of the line, from 1, that a byte of data is in.
func LineAt(data []byte, offset int64) int {
	return 1 + bytes.Count(data[:max(0, min(offset, int64(len(data))))], []byte("\n"))
}

// pointerTo is the JSON pointer of a path such as jobs[3].read.iops.
func pointerTo(path string) (p jsontext.Pointer) {
	path = strings.ReplaceAll(strings.ReplaceAll(path, "[", "."), "]", "")
	for key := range strings.SplitSeq(path, ".") {
		if key != "" {
			p = p.AppendToken(key)
		}
	}
	return p
}

// found looks for the value at a pointer, or for the innermost value that would hold it.
func found(data []byte, want jsontext.Pointer) *JSONError {
	e := &JSONError{Line: 1}
	dec := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))
	for nearest := jsontext.Pointer(""); ; {
		token, err := dec.ReadToken()
		at := dec.StackPointer()
		if len(at) > len(nearest) && at.Contains(want) {
			nearest = at
			e.Line = LineAt(data, dec.InputOffset())
			e.Path = PathOf(dec, want)
		}
		switch {
		case err != nil:
			return e
		case at != want || behindName(dec):
			continue
		}
		e.Line, e.Path = LineAt(data, dec.InputOffset()), PathOf(dec, want)
		switch token.Kind() {
		case '"', '0', 't', 'f', 'n':
			e.Value = shortened(token)
		}
		return e
	}
}

// behindName reports whether the name of a member was read last, and its value comes next.
func behindName(dec *jsontext.Decoder) bool {
	kind, length := dec.StackIndex(dec.StackDepth())
	return kind == '{' && length%2 == 1
}

// shortened is a scalar as it is written, of at most 60 bytes.
func shortened(t jsontext.Token) string {
	text := t.String()
	if t.Kind() == '"' {
		text = strconv.Quote(text)
	}
	const most = 60
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// Dotted writes a pointer as a path with all its keys and indices behind dots: jobs.3.read.iops.
func Dotted(p jsontext.Pointer) string {
	return strings.ReplaceAll(strings.TrimPrefix(string(p), "/"), "/", ".")
}

// PathOf writes a pointer to a value that dec stands in: indices of lists in brackets.
func PathOf(dec *jsontext.Decoder, p jsontext.Pointer) string {
	var b strings.Builder
	depth := 0
	for key := range p.Tokens() {
		depth++
		kind := jsontext.Kind('{')
		if depth <= dec.StackDepth() {
			kind, _ = dec.StackIndex(depth)
		}
		switch {
		case kind == '[':
			b.WriteString("[" + key + "]")
		case b.Len() > 0:
			b.WriteString("." + key)
		default:
			b.WriteString(key)
		}
	}
	return b.String()
}

// misfit says why a value does not fit its type.
func misfit(s *experiment.SemanticError) string {
	if s.GoType == nil {
		return "is not what is wanted: " + s.Error()
	}
	bits := func() int { return s.GoType.Bits() }
	switch s.GoType.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		most := int64(math.MaxInt64) >> (64 - bits())
		return fmt.Sprintf("is not a whole number from %d to %d", -most-1, most)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return fmt.Sprintf("is not a whole number from 0 to %d",
			uint64(math.MaxUint64)>>(64-bits()))
	case reflect.Float32:
		return fmt.Sprintf("is not a number up to %.2g", math.MaxFloat32)
	case reflect.Float64:
		return fmt.Sprintf("is not a number up to %.2g", math.MaxFloat64)
	}
	if s.Err != nil {
		return "is refused: " + s.Err.Error()
	}
	switch s.GoType.Kind() {
	case reflect.String:
		return "is not a text in quotes"
	case reflect.Bool:
		return "is neither true nor false"
	case reflect.Slice, reflect.Array:
		return "is not a list"
	case reflect.Struct, reflect.Map:
		return "is not an object"
	}
	return "is not what is wanted here"
}
