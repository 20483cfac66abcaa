package boundaries

import (
	"bytes"
	"go/scanner"
	"go/token"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

// lineLimit is the width of a line of code in columns; a tab counts for four.
const lineLimit = 100

// TestLinesFit refuses lines of Go beyond the limit. Two kinds of text may be longer, because
// splitting them would hide what they say: raw strings, and string literals of tests.
func TestLinesFit(t *testing.T) {
	walkSources(t, func(_, file string) {
		src, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range longLines(src, strings.HasSuffix(file, "_test.go")) {
			t.Errorf("%s:%d: a line of more than %d columns", file, line, lineLimit)
		}
	}, true)

	long := "// " + strings.Repeat("x", lineLimit)
	for _, c := range []struct {
		src  string
		test bool
		want int
	}{
		{"package p\n" + long + "\n", false, 1},
		{"package p\n\nvar s = \"" + long + "\"\n", false, 1},
		{"package p\n\nvar s = \"" + long + "\"\n", true, 0},
		{"package p\n\nvar s = \"\" +" + strings.Repeat(" s +", lineLimit/4) + " s\n", true, 1},
		{"package p\n\nvar s = `" + long + "\n" + long + "`\n", false, 0},
	} {
		if got := longLines([]byte(c.src), c.test); len(got) != c.want {
			t.Errorf("%d lines are found too long in %q, want %d", len(got), c.src, c.want)
		}
	}
}

// longLines returns the numbers of the lines beyond the limit, without those of exempt literals.
func longLines(src []byte, test bool) (numbers []int) {
	exempt := map[int]bool{}
	set := token.NewFileSet()
	f := set.AddFile("", set.Base(), len(src))
	var s scanner.Scanner
	s.Init(f, src, nil, 0)
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			break
		}
		if tok != token.STRING || literal[0] != '`' && !test {
			continue
		}
		end := f.Offset(pos) + len(literal)
		if literal[0] != '`' && columns(src[:end]) <= lineLimit {
			continue // it is not what makes the line long
		}
		first := f.Position(pos).Line
		for i := range strings.Count(literal, "\n") + 1 {
			exempt[first+i] = true
		}
	}
	for i, line := range strings.Split(string(src), "\n") {
		if columns([]byte(line)) > lineLimit && !exempt[i+1] {
			numbers = append(numbers, i+1)
		}
	}
	return numbers
}

// columns is the width of the last line of a text.
func columns(text []byte) int {
	line := text[bytes.LastIndexByte(text, '\n')+1:]
	return utf8.RuneCount(line) + 3*bytes.Count(line, []byte("\t"))
}
