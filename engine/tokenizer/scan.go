package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// class is a class of characters in the split pattern.
type class uint8

const (
	other  class = iota // punctuation, symbols, marks, control bytes, invalid bytes
	letter              // \p{L}
	number              // \p{N}
	space               // \s: the property White_Space
)

// wordLen returns the length in bytes of the first match of GPT-2's split pattern in s, which is
// not empty:
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// Every string begins with a match, so the matches joined are the string. The alternatives are
// tried in this order, and the classes exclude each other; that leaves one case that looks ahead:
// of a run of white space before a word, the last character is left for the next match (\s+(?!\S)),
// where a space joins the word and anything else stands alone (\s+). Go's regexp has no (?!…).
func wordLen(s string) int {
	if n := contraction(s); n > 0 {
		return n
	}
	c, width := classify(s)
	if s[0] == ' ' && len(s) > 1 {
		if next, _ := classify(s[1:]); next != space {
			return 1 + runLen(s[1:], next)
		}
	}
	if c != space {
		return runLen(s, c)
	}
	end, last := width, width
	for end < len(s) {
		c, width := classify(s[end:])
		if c != space {
			if end > last {
				return end - last
			}
			return end
		}
		end, last = end+width, width
	}
	return end
}

// contraction returns the length of the English ending that s begins with ('s 't 're 've 'm 'll
// 'd), else 0. Capitals do not count: GPT-2's pattern lacks them, and every vocabulary trained with
// it agrees.
func contraction(s string) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	switch s[1] {
	case 's', 't', 'm', 'd':
		return 2
	}
	if len(s) > 2 {
		switch s[1:3] {
		case "re", "ve", "ll":
			return 3
		}
	}
	return 0
}

// runLen returns the length in bytes of the longest beginning of s in which every character is of
// class c.
func runLen(s string, c class) int {
	n := 0
	for n < len(s) {
		got, width := classify(s[n:])
		if got != c {
			break
		}
		n += width
	}
	return n
}

// classify returns the class of the first character of s, which is not empty, and its width in
// bytes.
func classify(s string) (class, int) {
	b := s[0]
	switch {
	case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z':
		return letter, 1
	case b == ' ', '\t' <= b && b <= '\r':
		return space, 1
	case '0' <= b && b <= '9':
		return number, 1
	case b < utf8.RuneSelf:
		return other, 1
	}
	r, width := utf8.DecodeRuneInString(s)
	switch {
	case unicode.IsLetter(r):
		return letter, width
	case unicode.IsNumber(r):
		return number, width
	case unicode.IsSpace(r):
		return space, width
	}
	return other, width
}
