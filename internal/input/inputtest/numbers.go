// Package inputtest finds the numbers in files of JSON and CSV, so that a test can try absurd ones
// in the place of each. It is for tests alone.
package inputtest

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/windrow-sim/windrow/internal/input"
)

// Number is a number of a file.
type Number struct {
	Path string // jobs[3].read.iops, or the name of a column
	Line int    // from 1
	Text string
	// Quoted: the number is a text, perhaps with a unit.
	Quoted   bool
	from, to int // bytes of the file
}

// Absurd are values in the place of a number. None fits all numbers, and no file has the larger
// ones.
func Absurd() []string {
	return append(Impossible(), "0", "-1", "1", "1.5", "1e-300", "65537", "10000000")
}

// Impossible are values that no number of any file has.
func Impossible() []string {
	return []string{"1e308", "-1e308", "1e400", "9223372036854775807", "-9223372036854775808",
		"18446744073709551616", "NaN", "Infinity", "-Infinity"}
}

// Replaced is the file with another text in the place of the number.
func (n *Number) Replaced(data []byte, other string) []byte {
	return append(append(bytes.Clone(data[:n.from]), other...), data[n.to:]...)
}

// quantity is a text that is a number, perhaps with a unit.
var quantity = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?[a-zA-Z/%]{0,8}$`)

// JSON lists the numbers of JSON documents that follow each other, and the texts that are numbers.
// The lines of a file of JSON lines are those of the file.
func JSON(t testing.TB, data []byte) (list []Number) {
	t.Helper()
	dec := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true))
	for {
		token, err := dec.ReadToken()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		to := int(dec.InputOffset())
		text := token.String()
		n := Number{Path: input.PathOf(dec, dec.StackPointer()), Text: text, from: to - len(text),
			to:   to,
			Line: input.LineAt(data, int64(to))}
		kind, length := dec.StackIndex(dec.StackDepth())
		switch isName := kind == '{' && length%2 == 1; {
		case token.Kind() == '0':
			list = append(list, n)
		case token.Kind() == '"' && !isName && quantity.MatchString(text):
			n.Quoted = true
			n.from, n.to = n.from-1, to-1
			list = append(list, n)
		}
	}
	return list
}

// CSV lists the fields of a table that are numbers. Its first line is the header; no field has a
// comma.
func CSV(t testing.TB, data []byte) (list []Number) {
	t.Helper()
	var names []string
	at := 0
	for row, line := range strings.SplitAfter(string(data), "\n") {
		for i, field := range strings.Split(strings.TrimRight(line, "\r\n"), ",") {
			if row == 0 {
				names = append(names, field)
			} else if quantity.MatchString(field) && i < len(names) {
				list = append(list, Number{Path: names[i], Line: row + 1, Text: field, from: at,
					to: at + len(field)})
			}
			at += len(field) + 1
		}
		at += len(line) - len(strings.TrimRight(line, "\r\n"))
		if strings.HasSuffix(line, "\n") {
			at--
		}
	}
	return list
}

// In reports whether the path of a number is one of a list, or within one of them.
func In(list []string, path string) bool {
	return slices.ContainsFunc(list, func(p string) bool {
		rest, ok := strings.CutPrefix(path, p)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// Missing says what an error about a number does not name: its file, its line, its field (the last
// name of its path) or the value. "" = nothing is missing.
func (n *Number) Missing(err error, file, value string) string {
	text := err.Error()
	var missing []string
	if !strings.Contains(text, file) {
		missing = append(missing, "the file "+file)
	}
	if n.Line > 0 && !strings.Contains(text, fmt.Sprintf("line %d", n.Line)) &&
		!strings.Contains(text, fmt.Sprintf("%s:%d", file, n.Line)) {
		missing = append(missing, fmt.Sprintf("line %d", n.Line))
	}
	if !strings.Contains(text, n.Field()) {
		missing = append(missing, "the field "+n.Field())
	}
	// A text that is not JSON has no value.
	if !strings.Contains(text, value) && !strings.Contains(text, "not JSON") &&
		!strings.Contains(text, Printed(value)) {
		missing = append(missing, "the value "+value)
	}
	return strings.Join(missing, ", ")
}

// Printed is a number as programs print it.
func Printed(value string) string {
	f, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return value
	}
	return fmt.Sprintf("%g", f)
}

// Field is the last name of the path.
func (n *Number) Field() string {
	name := n.Path[strings.LastIndex(n.Path, ".")+1:]
	if i := strings.IndexByte(name, '['); i > 0 {
		name = name[:i]
	}
	return name
}
