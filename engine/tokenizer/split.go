package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// The patterns of a Split with a scanner. Go's regexp has no (?!…) and another \s, so every pattern
// is written out; an unknown one is refused at load.
const (
	patternGPT2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	// patternLlama3 is Llama 3's pattern: that of cl100k_base (GPT-4) with other digits.
	patternLlama3 = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	// patternQwen2 is the same with each digit as a word.
	patternQwen2 = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	// patternThree is Falcon's: numbers fall into groups of three from the left.
	patternThree = `[0-9][0-9][0-9]`
)

// scanner is a pattern written out.
type scanner struct {
	length func(text string) int // of the first match, or of the text before it; text is not empty
	bytes  bool                  // it looks at ASCII only, so it may come after ByteLevel
}

// scanners returns the scanners by pattern.
func scanners() map[string]scanner {
	return map[string]scanner{
		patternGPT2:   {length: wordLen},
		patternLlama3: {length: func(s string) int { return chatLen(s, 3) }},
		patternQwen2:  {length: func(s string) int { return chatLen(s, 1) }},
		patternThree:  {length: threeDigits, bytes: true},
	}
}

// chatLen returns the length in bytes of the first match of patternLlama3 in s, which is not empty;
// a number has at most digits characters. As with wordLen every string begins with a match.
func chatLen(s string, digits int) int {
	if n := anyContraction(s); n > 0 {
		return n
	}
	c, width := classify(s)
	newline := s[0] == '\n' || s[0] == '\r'
	if c == letter {
		return runLen(s, letter)
	}
	if c == number {
		return numberLen(s, digits)
	}
	if !newline && len(s) > width {
		next, _ := classify(s[width:])
		if next == letter {
			return width + runLen(s[width:], letter)
		}
		if s[0] == ' ' && next == other {
			return 1 + otherLen(s[1:])
		}
	}
	if c == other {
		return otherLen(s)
	}
	return blankLen(s)
}

// numberLen returns the length of at most limit numbers.
func numberLen(s string, limit int) int {
	n := 0
	for range limit {
		if n == len(s) {
			break
		}
		c, width := classify(s[n:])
		if c != number {
			break
		}
		n += width
	}
	return n
}

// otherLen matches [^\s\p{L}\p{N}]+[\r\n]*.
func otherLen(s string) int {
	n := runLen(s, other)
	for n < len(s) && (s[n] == '\r' || s[n] == '\n') {
		n++
	}
	return n
}

// blankLen matches \s*[\r\n]+|\s+(?!\S)|\s+: up to the last line end of a run of white space; in a
// run without one, all but the last character before a word.
func blankLen(s string) int {
	end, last, line := 0, 0, 0
	for end < len(s) {
		c, width := classify(s[end:])
		if c != space {
			break
		}
		if s[end] == '\n' || s[end] == '\r' {
			line = end + 1
		}
		end, last = end+width, width
	}
	switch {
	case line > 0:
		return line
	case end < len(s) && end > last:
		return end - last
	}
	return end
}

// anyContraction is contraction with capitals. Folding case makes ſ (U+017F) an s.
func anyContraction(s string) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	if r, width := utf8.DecodeRuneInString(s[1:]); r == 'ſ' {
		return 1 + width
	}
	low := [3]byte{'\''}
	for i := 1; i < min(len(s), len(low)); i++ {
		low[i] = s[i]
		if 'A' <= s[i] && s[i] <= 'Z' {
			low[i] += 'a' - 'A'
		}
	}
	return contraction(string(low[:min(len(s), len(low))]))
}

// threeDigits returns the length of three digits, or of the text before the first three.
func threeDigits(s string) int {
	run := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			run = 0
			continue
		}
		if run++; run == 3 {
			if i == 2 {
				return 3
			}
			return i - 2
		}
	}
	return len(s)
}

// isDigit is the tokenizers library's is_numeric: every number, not only decimal digits.
func isDigit(r rune) bool { return unicode.IsNumber(r) }

// isPunctuation is the tokenizers library's: the category P of Unicode 8, and the symbols that
// ASCII counts in.
func isPunctuation(r rune) bool {
	switch {
	case r < utf8.RuneSelf:
		return '!' <= r && r <= '/' || ':' <= r && r <= '@' || '[' <= r && r <= '`' || '{' <= r &&
			r <= '~'
	case r == 0x166D, r == 0x111C9: // which Unicode has moved to other categories
		return true
	}
	return unicode.IsPunct(r) && !newPunctuation(r)
}

// newPunctuation reports whether Unicode has counted r as punctuation only since version 9: the
// table that the library uses is of version 8.
func newPunctuation(r rune) bool {
	switch {
	case r == 0x61D, r == 0x9FD, r == 0xA76, r == 0xC77, r == 0xC84, 0x1B7D <= r && r <= 0x1B7E,
		0x2E43 <= r && r <= 0x2E4F, 0x2E52 <= r && r <= 0x2E5D, r == 0x10EAD, 0x10F55 <= r &&
			r <= 0x10F59,
		0x10F86 <= r && r <= 0x10F89, 0x1144B <= r && r <= 0x1144F, 0x1145A <= r && r <= 0x1145B,
		r == 0x1145D,
		0x11660 <= r && r <= 0x1166C, r == 0x116B9, r == 0x1183B, 0x11944 <= r && r <= 0x11946,
		r == 0x119E2,
		0x11A3F <= r && r <= 0x11A46, 0x11A9A <= r && r <= 0x11A9C, 0x11A9E <= r && r <= 0x11AA2,
		0x11B00 <= r && r <= 0x11B09, 0x11C41 <= r && r <= 0x11C45, 0x11C70 <= r && r <= 0x11C71,
		0x11EF7 <= r && r <= 0x11EF8, 0x11F43 <= r && r <= 0x11F4F, r == 0x11FFF, 0x12FF1 <= r &&
			r <= 0x12FF2,
		0x16E97 <= r && r <= 0x16E9A, r == 0x16FE2, 0x1E95E <= r && r <= 0x1E95F:
		return true
	}
	return false
}
