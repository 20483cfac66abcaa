package chat

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/ardanlabs/jinja"
)

// jsonWriter is json.dumps of Python, with the settings of transformers' tojson.
type jsonWriter struct {
	out        strings.Builder
	ascii      bool   // characters beyond ASCII are escaped
	sorted     bool   // keys are sorted, else in their order
	indent     string // of one level, when lines is set
	lines      bool   // every element has a line
	item, pair string // separators
}

// toJSON implements the filter tojson: the value, then ensure_ascii, indent, separators, sort_keys.
func toJSON(args []jinja.Value, named map[string]jinja.Value) (jinja.Value, error) {
	if len(args) == 0 {
		return jinja.Undefined(), errors.New("tojson of nothing")
	}
	settings := []string{"ensure_ascii", "indent", "separators", "sort_keys"}
	given := map[string]jinja.Value{}
	for i, v := range args[1:] {
		if i == len(settings) {
			return jinja.Undefined(), fmt.Errorf("tojson with %d settings", len(args)-1)
		}
		given[settings[i]] = v
	}
	for name, v := range named {
		if !slices.Contains(settings, name) {
			return jinja.Undefined(), fmt.Errorf("tojson with the unknown setting %q", name)
		}
		given[name] = v
	}
	w := jsonWriter{item: ", ", pair: ": "}
	if v, ok := given["ensure_ascii"]; ok {
		w.ascii = v.IsTruthy()
	}
	if v, ok := given["sort_keys"]; ok {
		w.sorted = v.IsTruthy()
	}
	switch v := given["indent"]; {
	case v.IsInt() && v.AsInt() <= maxNesting:
		w.lines, w.item = true, ","
		w.indent = strings.Repeat(" ", max(0, int(v.AsInt())))
	case v.IsString():
		w.lines, w.item, w.indent = true, ",", v.AsString()
	case !v.IsNone() && !v.IsUndefined():
		return jinja.Undefined(), fmt.Errorf("tojson with the indent %s", v)
	}
	if v, ok := given["separators"]; ok && v.IsList() && v.AsList().Len() == 2 {
		w.item, w.pair = plain(v.AsList().Get(0)), plain(v.AsList().Get(1))
	} else if ok && !v.IsNone() {
		return jinja.Undefined(), fmt.Errorf("tojson with the separators %s", v)
	}
	if err := w.value(args[0], 0); err != nil {
		return jinja.Undefined(), err
	}
	return jinja.NewString(w.out.String()), nil
}

// value writes a value at a depth.
func (w *jsonWriter) value(v jinja.Value, depth int) error {
	if depth > maxNesting {
		return errors.New("tojson of a value that contains itself")
	}
	switch {
	case v.IsNone():
		w.out.WriteString("null")
	case v.IsBool():
		w.out.WriteString(strconv.FormatBool(v.AsBool()))
	case v.IsInt():
		w.out.WriteString(strconv.FormatInt(v.AsInt(), 10))
	case v.IsFloat():
		w.out.WriteString(jsonFloat(v.AsFloat()))
	case v.IsString():
		w.text(v.AsString())
	case v.IsList():
		items := v.AsList().Items
		return w.elements("[", "]", len(items), depth, func(i int) error {
			return w.value(items[i], depth+1)
		})
	case v.IsDict():
		d := v.AsDict()
		keys := d.OrderedKeys()
		if w.sorted {
			keys = slices.Sorted(slices.Values(keys))
		}
		return w.elements("{", "}", len(keys), depth, func(i int) error {
			w.text(keys[i])
			w.out.WriteString(w.pair)
			member, _ := d.Get(keys[i])
			return w.value(member, depth+1)
		})
	default:
		return errors.New("tojson of something undefined")
	}
	return nil
}

// elements writes n elements between brackets.
func (w *jsonWriter) elements(open, shut string, n, depth int, each func(int) error) error {
	w.out.WriteString(open)
	for i := range n {
		if i > 0 {
			w.out.WriteString(w.item)
		}
		w.line(depth + 1)
		if err := each(i); err != nil {
			return err
		}
	}
	if n > 0 {
		w.line(depth)
	}
	w.out.WriteString(shut)
	return nil
}

// line begins a line at a depth.
func (w *jsonWriter) line(depth int) {
	if w.lines {
		w.out.WriteString("\n" + strings.Repeat(w.indent, depth))
	}
}

// text writes a string.
func (w *jsonWriter) text(s string) {
	w.out.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			w.out.WriteByte('\\')
			w.out.WriteRune(r)
		case r == '\n':
			w.out.WriteString(`\n`)
		case r == '\r':
			w.out.WriteString(`\r`)
		case r == '\t':
			w.out.WriteString(`\t`)
		case r == '\b':
			w.out.WriteString(`\b`)
		case r == '\f':
			w.out.WriteString(`\f`)
		case r < ' ' || w.ascii && r >= utf8.RuneSelf:
			if high, low := utf16.EncodeRune(r); r > 0xFFFF {
				fmt.Fprintf(&w.out, `\u%04x\u%04x`, high, low)
			} else {
				fmt.Fprintf(&w.out, `\u%04x`, r)
			}
		default:
			w.out.WriteRune(r)
		}
	}
	w.out.WriteByte('"')
}

// jsonFloat spells a number as Python does: the shortest text that reads back as the number.
func jsonFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	short := strconv.FormatFloat(f, 'e', -1, 64)
	_, exponent, _ := strings.Cut(short, "e")
	if n, err := strconv.Atoi(exponent); err == nil && -4 <= n && n < 16 {
		text := strconv.FormatFloat(f, 'f', -1, 64)
		if !strings.Contains(text, ".") {
			text += ".0"
		}
		return text
	}
	return short
}

// printed implements the printing of a value, and the filter string.
func printed(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
	if len(args) != 1 {
		return jinja.Undefined(), fmt.Errorf("printing of %d values", len(args))
	}
	return jinja.NewString(plain(args[0])), nil
}

// plain returns the text of a value as Python prints it.
func plain(v jinja.Value) string {
	switch {
	case v.IsString():
		return v.AsString()
	case v.IsUndefined(), v.IsCallable():
		return ""
	}
	var out strings.Builder
	writeRepr(&out, v, 0)
	return out.String()
}

// writeRepr writes a value as Python spells it inside a list.
func writeRepr(out *strings.Builder, v jinja.Value, depth int) {
	switch {
	case depth > maxNesting:
		out.WriteString("...")
	case v.IsNone():
		out.WriteString("None")
	case v.IsUndefined():
		out.WriteString("Undefined")
	case v.IsFloat():
		f := v.AsFloat()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			out.WriteString(strings.ToLower(strings.TrimSuffix(jsonFloat(f), "inity")))
			return
		}
		out.WriteString(jsonFloat(f))
	case v.IsString():
		writeQuoted(out, v.AsString())
	case v.IsList():
		out.WriteByte('[')
		for i, item := range v.AsList().Items {
			if i > 0 {
				out.WriteString(", ")
			}
			writeRepr(out, item, depth+1)
		}
		out.WriteByte(']')
	case v.IsDict():
		out.WriteByte('{')
		for i, key := range v.AsDict().OrderedKeys() {
			if i > 0 {
				out.WriteString(", ")
			}
			member, _ := v.AsDict().Get(key)
			writeQuoted(out, key)
			out.WriteString(": ")
			writeRepr(out, member, depth+1)
		}
		out.WriteByte('}')
	default:
		out.WriteString(v.String()) // True, False and whole numbers
	}
}

// writeQuoted writes a string as Python's repr does.
func writeQuoted(out *strings.Builder, s string) {
	quote := '\''
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	out.WriteRune(quote)
	for _, r := range s {
		switch {
		case r == quote || r == '\\':
			out.WriteByte('\\')
			out.WriteRune(r)
		case r == '\n':
			out.WriteString(`\n`)
		case r == '\r':
			out.WriteString(`\r`)
		case r == '\t':
			out.WriteString(`\t`)
		case unicode.IsPrint(r):
			out.WriteRune(r)
		case r <= 0xFF:
			fmt.Fprintf(out, `\x%02x`, r)
		case r <= 0xFFFF:
			fmt.Fprintf(out, `\u%04x`, r)
		default:
			fmt.Fprintf(out, `\U%08x`, r)
		}
	}
	out.WriteRune(quote)
}
