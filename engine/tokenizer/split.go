package tokenizer

import (
	"cmp"
	"math"
	"slices"
	"unicode"
	"unicode/utf8"
)

// The patterns of a Split with a scanner. Go's regexp has no (?!…) and another \s, so every pattern
// is written out; an unknown one is refused at load. A pattern is known as a whole, never by a part
// of it: cl100k's and o200k's both have \p{N}{1,3}.
const (
	patternGPT2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	// patternLlama3 is Llama 3's pattern: that of cl100k_base (GPT-4) with other digits.
	patternLlama3 = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	// patternQwen2 is the same with each digit as a word.
	patternQwen2 = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	// patternQwen35 is that of Qwen 3.5, where marks are parts of words.
	patternQwen35 = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	// patternO200k is that of GPT-4o, gpt-oss and Llama 4: a word has its capitals first.
	patternO200k = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	// patternTekken is Mistral's, the same without English endings and with single digits.
	patternTekken = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	// patternThree is Falcon's: numbers fall into groups of three from the left.
	patternThree = `[0-9][0-9][0-9]`
	// DeepSeek-V3 splits three times. Its files have line ends as such inside the last pattern.
	patternNumber3  = `\p{N}{1,3}`
	patternHanKana  = "[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+"
	patternDeepSeek = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n" +
		"\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
	// Those of DeepSeek's first models and of DeepSeek Coder.
	patternLineEnd     = "[\r\n]"
	patternDeepLetters = "\\s?[A-Za-z\u00B5\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u01BA" +
		"\u01BC-\u01BF\u01C4-\u0293" +
		"\u0295-\u02AF\u0370-\u0373\u0376\u0377\u037B-\u037D\u037F\u0386\u0388-\u038A\u038C" +
		"\u038E-\u03A1\u03A3-\u03F5\u03F7-\u0481\u048A-\u052F\u0531-\u0556\u10A0-\u10C5" +
		"\u13A0-\u13F5\u13F8-\u13FD\u1C90-\u1CBA\u1CBD-\u1CBF\u1D00-\u1D2B\u1D6B-\u1D77" +
		"\u1D79-\u1D9A\u1E00-\u1F15\u1F18-\u1F1D\u1F20-\u1F45\u1F48-\u1F4D\u1F50-\u1F57\u1F59" +
		"\u1F5B\u1F5D\u1F5F-\u1F7D\u1F80-\u1FB4\u1FB6-\u1FBC\u1FBE\u1FC2-\u1FC4\u1FC6-\u1FCC" +
		"\u1FD0-\u1FD3\u1FD6-\u1FDB\u1FE0-\u1FEC\u1FF2-\u1FF4\u1FF6-\u1FFC\u2102\u2107" +
		"\u210A-\u2113\u2115\u2119-\u211D\u2124\u2126\u2128\u212A-\u212D\u212F-\u2134\u2139" +
		"\u213C-\u213F\u2145-\u2149\u214E\u2183\u2184\u2C00-\u2C7B\u2C7E-\u2CE4\u2CEB-\u2CEE" +
		"\u2CF2\u2CF3\uA640-\uA66D\uA680-\uA69B\uA722-\uA76F\uA771-\uA787\uA78B-\uA78E" +
		"\uAB70-\uABBF\uFB00-\uFB06\uFB13-\uFB17\uFF21-\uFF3A\uFF41-\uFF5A" +
		"\U00010400-\U0001044F\U000104B0-\U000104D3\U000104D8-\U000104FB\U00010C80-\U00010CB2" +
		"\U00010CC0-\U00010CF2\U000118A0-\U000118DF\U0001E900-\U0001E943]+"
	patternDeepMarks = "\\s?[!-/:-~\uFF01-\uFF0F\uFF1A-\uFF5E\u2018-\u201F\u3000-\u3002]+"
	patternBlankEnd  = `\s+$`
	patternAsian     = "[\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF]+"
	patternLetters   = `\s?\p{L}+`
	patternMarks     = `\s?\p{P}+`
)

// scanner is a pattern written out.
type scanner struct {
	length func(text string) int // of the first match, or of the text before it; text is not empty
	bytes  bool                  // it looks at ASCII only, so it may come after ByteLevel
	covers bool                  // every text falls into matches without rest
}

// scanners are the scanners by pattern.
var scanners = map[string]scanner{
	patternGPT2:   {length: wordLen, covers: true},
	patternLlama3: {length: func(s string) int { return chatLen(s, 3) }, covers: true},
	patternQwen2:  {length: func(s string) int { return chatLen(s, 1) }, covers: true},
	patternQwen35: {length: markedLen, covers: true},
	patternO200k: {length: func(s string) int { return casedLen(s, 3, anyContraction) },
		covers: true},
	patternTekken: {length: func(s string) int {
		return casedLen(s, 1, func(string) int { return 0 })
	}, covers: true},
	patternThree:    {length: threeDigits, bytes: true},
	patternNumber3:  {length: isolated(func(s string) int { return numberLen(s, 3) })},
	patternHanKana:  {length: isolated(classRun(ranges(classOf(patternHanKana))))},
	patternDeepSeek: {length: isolated(deepSeekLen)},
	patternLineEnd: {length: isolated(func(s string) int {
		if s[0] == '\r' || s[0] == '\n' {
			return 1
		}
		return 0
	})},
	patternDeepLetters: {length: isolated(afterBlank(classRun(ranges(classOf(
		patternDeepLetters)))))},
	patternDeepMarks: {length: isolated(afterBlank(classRun(ranges(classOf(patternDeepMarks)))))},
	patternBlankEnd:  {length: blankEnd},
	patternAsian:     {length: isolated(classRun(ranges(classOf(patternAsian))))},
	patternLetters:   {length: isolated(afterBlank(classRun(unicode.L)))},
	patternMarks:     {length: isolated(afterBlank(classRun(unicode.P)))},
}

// isolated returns the length of the first match, or of the text before it. match returns the
// length of a match at the beginning of a text, and 0 for none.
func isolated(match func(s string) int) func(s string) int {
	return func(s string) int {
		if n := match(s); n > 0 {
			return n
		}
		for i := range s {
			if i > 0 && match(s[i:]) > 0 {
				return i
			}
		}
		return len(s)
	}
}

// classRun matches one or more characters of a class.
func classRun(class *unicode.RangeTable) func(s string) int {
	return func(s string) int {
		n := 0
		for n < len(s) {
			r, width := utf8.DecodeRuneInString(s[n:])
			if !unicode.Is(class, r) {
				break
			}
			n += width
		}
		return n
	}
}

// afterBlank matches with an optional white space in front.
func afterBlank(match func(s string) int) func(s string) int {
	return func(s string) int {
		if c, width := classify(s); c == space && width < len(s) {
			if n := match(s[width:]); n > 0 {
				return width + n
			}
		}
		return match(s)
	}
}

// blankEnd returns the length of the text before the white space at its end; of all if it is
// nothing else. A text that contains line ends has been split at them.
func blankEnd(s string) int {
	if end := blankBefore(s, len(s), 0); end > 0 {
		return end
	}
	return len(s)
}

// classOf returns the members of the one class in a pattern.
func classOf(pattern string) string {
	from := 0
	for pattern[from] != '[' {
		from++
	}
	return pattern[from+1 : len(pattern)-len("]+")]
}

// ranges makes a table of a class of a pattern: characters, and ranges with a hyphen. Their order
// in the pattern is that of their numbers, or none.
func ranges(class string) *unicode.RangeTable {
	var all []unicode.Range32
	list := []rune(class)
	for i := 0; i < len(list); i++ {
		r := unicode.Range32{Lo: uint32(list[i]), Hi: uint32(list[i]), Stride: 1}
		if i+2 < len(list) && list[i+1] == '-' {
			r.Hi = uint32(list[i+2])
			i += 2
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b unicode.Range32) int { return cmp.Compare(a.Lo, b.Lo) })
	t := &unicode.RangeTable{}
	for _, r := range all {
		switch {
		case r.Hi <= math.MaxUint16:
			t.R16 = append(t.R16, unicode.Range16{Lo: uint16(r.Lo), Hi: uint16(r.Hi), Stride: 1})
		default:
			t.R32 = append(t.R32, r)
		}
	}
	return t
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
	return lineEndsFrom(s, runLen(s, other))
}

// lineEndsFrom returns where the line ends that begin at n end.
func lineEndsFrom(s string, n int) int {
	for n < len(s) && (s[n] == '\r' || s[n] == '\n') {
		n++
	}
	return n
}

// markedLen returns the length of the first match of patternQwen35: chatLen with marks as letters.
func markedLen(s string) int {
	if n := anyContraction(s); n > 0 {
		return n
	}
	c, width := classifyMarked(s)
	rest := s[width:]
	switch c {
	case number:
		return width
	case letter, mark:
		return lettersLen(s)
	}
	if s[0] != '\n' && s[0] != '\r' && rest != "" {
		switch next, _ := classifyMarked(rest); {
		case next == letter || next == mark:
			return width + lettersLen(rest)
		case s[0] == ' ' && next == other:
			return 1 + plainLen(rest)
		}
	}
	if c == other {
		return plainLen(s)
	}
	return blankLen(s)
}

// lettersLen matches [\p{L}\p{M}]*, and plainLen [^\s\p{L}\p{M}\p{N}]+[\r\n]*.
func lettersLen(s string) int {
	return markedRun(s, func(c class) bool { return c == letter || c == mark })
}

func plainLen(s string) int {
	return lineEndsFrom(s, markedRun(s, func(c class) bool { return c == other }))
}

// mark is the class of marks, where they are told from other characters.
const mark = space + 1

// classifyMarked is classify with the class mark.
func classifyMarked(s string) (class, int) {
	c, width := classify(s)
	if c == other && width > 1 {
		if r, _ := utf8.DecodeRuneInString(s); unicode.IsMark(r) {
			c = mark
		}
	}
	return c, width
}

// markedRun returns the length of the longest beginning of s with nothing but the classes.
func markedRun(s string, in func(class) bool) int {
	n := 0
	for n < len(s) {
		c, width := classifyMarked(s[n:])
		if !in(c) {
			break
		}
		n += width
	}
	return n
}

// casedLen returns the length of the first match of patternO200k or patternTekken in s, which is
// not empty. A word is capitals and then small letters; letters without case and marks are both.
// Every string begins with a match.
func casedLen(s string, digits int, ending func(string) int) int {
	c, width := classifyMarked(s)
	if c == number {
		return numberLen(s, digits)
	}
	word := 0
	if c != letter && s[0] != '\n' && s[0] != '\r' { // the character in front of a word
		if word = lowerWord(s[width:]); word > 0 {
			word += width
		}
	}
	if word == 0 {
		word = lowerWord(s)
	}
	if word == 0 && c != letter && s[0] != '\n' && s[0] != '\r' {
		if word = upperRun(s[width:]); word > 0 {
			word += width
		}
	}
	if word == 0 {
		word = upperRun(s)
	}
	if word > 0 {
		return word + ending(s[word:])
	}
	from := 0
	if s[0] == ' ' && len(s) > 1 {
		if next, _ := classify(s[1:]); next == other {
			from = 1
		}
	}
	if c != space || from > 0 {
		n := from + runLen(s[from:], other)
		for n < len(s) && (s[n] == '\r' || s[n] == '\n' || s[n] == '/') {
			n++
		}
		return n
	}
	return blankLen(s)
}

// lowerWord matches [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+, and returns 0
// for no match. Where no small letter follows the capitals, the last letter without case among
// them ends the word.
func lowerWord(s string) int {
	n, last := 0, 0 // last: the end of the last letter without case
	for n < len(s) {
		k, width := caseOf(s[n:])
		if k != capital && k != caseless {
			break
		}
		n += width
		if k == caseless {
			last = n
		}
	}
	end := n
	for end < len(s) {
		k, width := caseOf(s[end:])
		if k != small && k != caseless {
			break
		}
		end += width
	}
	if end > n {
		return end
	}
	return last
}

// upperRun matches [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*. No small letter follows where it is asked.
func upperRun(s string) int {
	n := 0
	for n < len(s) {
		k, width := caseOf(s[n:])
		if k != capital && k != caseless {
			break
		}
		n += width
	}
	return n
}

// letterCase is the classes of letters in patternO200k.
type letterCase uint8

const (
	noLetter letterCase = iota
	capital             // Lu, Lt
	small               // Ll
	caseless            // Lm, Lo, and marks
)

// caseOf returns the case of the first character of s, which is not empty, and its width.
func caseOf(s string) (letterCase, int) {
	switch b := s[0]; {
	case 'a' <= b && b <= 'z':
		return small, 1
	case 'A' <= b && b <= 'Z':
		return capital, 1
	case b < utf8.RuneSelf:
		return noLetter, 1
	}
	r, width := utf8.DecodeRuneInString(s)
	switch {
	case unicode.Is(unicode.Ll, r):
		return small, width
	case unicode.In(r, unicode.Lu, unicode.Lt):
		return capital, width
	case unicode.In(r, unicode.L, unicode.M):
		return caseless, width
	}
	return noLetter, width
}

// deepSeekLen matches patternDeepSeek at the beginning of s, which is not empty; 0 for no match.
func deepSeekLen(s string) int {
	if ascii := s[0] < utf8.RuneSelf && isPunctuation(rune(s[0])); ascii {
		n := 1
		for n < len(s) && ('a' <= s[n] && s[n] <= 'z' || 'A' <= s[n] && s[n] <= 'Z') {
			n++
		}
		if n > 1 {
			return n
		}
	}
	r, width := utf8.DecodeRuneInString(s)
	c, _ := classifyMarked(s)
	symbol := unicode.In(r, unicode.P, unicode.S)
	if !symbol && c != letter && r != '\r' && r != '\n' {
		if n := lettersLen(s[width:]); n > 0 {
			return width + n
		}
	}
	if n := lettersLen(s); n > 0 {
		return n
	}
	from := 0
	if s[0] == ' ' {
		from = 1
	}
	n := from
	for n < len(s) {
		r, width := utf8.DecodeRuneInString(s[n:])
		if !unicode.In(r, unicode.P, unicode.S) {
			break
		}
		n += width
	}
	switch {
	case n > from:
		return lineEndsFrom(s, n)
	case c == space:
		return blankLen(s)
	}
	return 0
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
