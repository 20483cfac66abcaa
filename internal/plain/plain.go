// Package plain makes text of a file, a name or a device harmless where it is shown. A name may
// hold a terminal's control sequences, bytes that are not UTF-8, or a spreadsheet's formula. It is
// a leaf.
//
//	Text   prose as a model writes it
//	Line   a name or a cell on one line
//	Lines  a message of several lines with names in it
//	JSON   a JSON text
//	Word   a word as a shell reads it
//	Cell   a cell of a CSV that a spreadsheet does not take for a formula
//
// What cannot be shown becomes an escape of Go: \x1b, \u202e. A backslash of such a line or cell is
// doubled, so that two names are never shown alike. Every other text is returned as it is, and so
// is a text that has been through the same function before.
package plain

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text escapes control characters other than tabs and newlines, and bytes that are not UTF-8. It
// doubles no backslash: pieces of a text give the pieces of its form.
func Text(s string) string {
	return escape(s, `\`, func(r rune) bool { return unicode.IsControl(r) && !spacing(r) })
}

// Line escapes what Text does, newlines and other breaks of lines, tabs, and characters that turn
// the direction of the text behind them or cannot be seen.
func Line(s string) string { return escape(s, doubled, hidden) }

// Lines is Line for every line of a text.
func Lines(s string) string {
	if clean(s, func(r rune) bool { return r != '\n' && hidden(r) }) {
		return s
	}
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = Line(lines[i])
	}
	return strings.Join(lines, "\n")
}

// spacing reports the control characters that a text is laid out with.
func spacing(r rune) bool { return r == '\n' || r == '\t' }

// doubled is a backslash of a text in which others begin escapes.
const doubled = `\\`

// hidden reports characters that a line cannot show as they are.
func hidden(r rune) bool {
	switch r {
	case '\u2028', '\u2029', '\ufeff':
		return true
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}

// escape escapes the characters of a kind, and writes backslashes as they are given.
func escape(s, backslash string, is func(rune) bool) string {
	if clean(s, is) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1, r < utf8.RuneSelf && is(r):
			b.WriteString(byteEscape(s[0]))
		case r == '\\':
			b.WriteString(backslash)
		case is(r):
			b.WriteString(`\u` + hex(uint64(r), 4))
		default:
			b.WriteString(s[:size])
		}
		s = s[size:]
	}
	return b.String()
}

// clean reports a text without anything to escape.
func clean(s string, is func(rune) bool) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, is) < 0
}

// byteEscape is the escape of one byte.
func byteEscape(c byte) string {
	switch c {
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	}
	return `\x` + hex(uint64(c), 2)
}

// hex writes a number in digits that are at least so many. All characters that are escaped are
// below U+10000.
func hex(n uint64, digits int) string {
	text := strconv.FormatUint(n, 16)
	return strings.Repeat("0", max(digits-len(text), 0)) + text
}

// JSON escapes in a JSON text the characters that JSON need not escape and a terminal acts on. The
// text keeps its meaning, because they can only stand inside its strings.
func JSON(text []byte) []byte {
	loud := func(r rune) bool { return r >= 0x7f && hidden(r) }
	if bytes.IndexFunc(text, loud) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range string(text) {
		if loud(r) {
			b.WriteString(`\u` + hex(uint64(r), 4))
		} else {
			b.WriteRune(r)
		}
	}
	return []byte(b.String())
}

// Word writes a word as a POSIX shell reads it, or bash where it has something to escape:
// $'a\x1bb'.
func Word(word string) string {
	switch {
	case !clean(word, hidden):
		return "$'" + strings.ReplaceAll(escape(word, doubled, hidden), "'", `\'`) + "'"
	case word != "" && !strings.ContainsAny(word, " \t\n\"'\\$`*?[]{}()<>|&;#~!"):
		return word
	case strings.Contains(word, "'") && !strings.ContainsAny(word, "\"\\$`!"):
		return `"` + word + `"`
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Cell returns a cell of a CSV, whose writer quotes tabs and newlines. A text that a spreadsheet
// would take for a formula begins with a quote, which makes it text there. Numbers stay as they
// are.
func Cell(s string) string {
	s = escape(s, doubled, func(r rune) bool { return hidden(r) && !spacing(r) })
	start := strings.TrimLeft(s, " \t\n")
	if start == "" || !strings.ContainsRune("=+-@", rune(start[0])) || start == "-" {
		return s
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return s
	}
	return "'" + s
}
