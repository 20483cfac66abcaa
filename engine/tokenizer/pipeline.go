package tokenizer

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// pipeline holds the steps of encoding around the model, in their order. The zero value is not
// valid: plainPipeline is GPT-2's. Its JSON is a part of the document, so the order of the fields
// matters.
type pipeline struct {
	Normalizer   []normalStep `json:"normalizer"`
	PreTokenizer []preStep    `json:"pre_tokenizer"`
	Model        modelSpec    `json:"model"`
	Decoder      decoderSpec  `json:"decoder"`

	table *charsmap // of a normalizer; nil: none has one
}

// normalStep is a change of the whole text between special tokens.
type normalStep struct {
	Type   string `json:"type"`             // one of the normal constants
	Text   string `json:"text"`             // the text that is put first, or replaced
	With   string `json:"with,omitempty"`   // the replacement
	Prefix string `json:"prefix,omitempty"` // normalPieces: a scheme
	// normalPieces: white space at the ends is dropped, runs of spaces become one
	Trim  bool `json:"trim,omitempty"`
	Table bool `json:"table,omitempty"` // normalPieces: the table replaces characters first
	Left  bool `json:"left,omitempty"`  // normalStrip: at the beginning
	Right bool `json:"right,omitempty"` // normalStrip: at the end
}

// The kinds of normalStep.
const (
	normalPrepend = "prepend" // Text is put before a text that is not empty
	normalReplace = "replace" // every Text becomes With
	normalSpaces  = "spaces"  // every run of two or more spaces becomes With
	normalStrip   = "strip"   // white space at the ends is dropped
	normalTable   = "table"   // the table replaces characters
	// SentencePiece's white space: spaces become "▁", with one more in front
	normalPieces = "sentencepiece"
)

// preStep splits a text into words. The joined words are the text, except for blanks put first and
// respelled spaces.
type preStep struct {
	Type string `json:"type"` // one of the pre constants
	// preBytes: a space is put before a text that does not begin with one
	PrefixSpace bool   `json:"prefix_space,omitempty"`
	Regex       bool   `json:"regex,omitempty"`   // preBytes: GPT-2's pattern cuts
	Pattern     string `json:"pattern,omitempty"` // preSplit: one of the known patterns
	// preSplitAfter: a word ends after every one of these
	Text string `json:"text,omitempty"`
	// preDigits, prePunctuation: every one is a word, instead of every run
	Each        bool   `json:"each,omitempty"`
	Replacement string `json:"replacement,omitempty"` // preSpaces: the replacement of spaces
	Prefix      string `json:"prefix,omitempty"`      // preSpaces: a scheme
	Cut         bool   `json:"cut,omitempty"`         // preSpaces: every Replacement begins a word

	spelled bool                  // after preBytes: a byte is the character that spells it
	length  func(text string) int // preSplit: the scanner of Pattern
}

// The kinds of preStep.
const (
	preBytes       = "byte_level"
	preSplit       = "split"
	preSplitAfter  = "split_after"
	preDigits      = "digits"
	prePunctuation = "punctuation"
	preSpaces      = "metaspace"
)

// The schemes of a blank in front: at every piece between special tokens, only at the beginning of
// the whole text, or nowhere.
const (
	prefixAlways = "always"
	prefixFirst  = "first"
	prefixNever  = "never"
)

// modelSpec describes how words become ids.
type modelSpec struct {
	Type string `json:"type"` // modelBPE or modelUnigram
	// a character without a token becomes the tokens "<0xNN>" of its bytes
	ByteFallback bool `json:"byte_fallback"`
	FuseUnknown  bool `json:"fuse_unk"` // unknown characters in a row become one token
	// a word that is a token becomes that token, whatever the merges say
	IgnoreMerges bool    `json:"ignore_merges"`
	Unknown      *uint32 `json:"unk"` // the token of unknown characters
	// modelUnigram: the score of an unknown character
	UnknownScore float64 `json:"unk_score"`
	// modelUnigram: paths are compared in single precision, as SentencePiece does
	Single bool `json:"single_precision"`
}

// The kinds of modelSpec.
const (
	modelBPE     = "bpe"
	modelUnigram = "unigram"
)

// spaceMark is SentencePiece's spelling of a space.
const spaceMark = "▁"

// Limits of a pipeline. Real ones have a handful of steps and replace single characters; the limits
// keep the cost of a hostile file in proportion to its size.
const (
	maxSteps  = 16
	maxStep   = 64   // bytes of a text that a step adds or replaces
	maxGrowth = 1024 // times by which a normalizer can lengthen a text
	maxPiece  = 1024 // bytes of a token that is sought in a text
)

// plainPipeline is GPT-2's: bytes, its pattern, merges.
func plainPipeline(prefixSpace bool) pipeline {
	return pipeline{
		PreTokenizer: []preStep{{Type: preBytes, PrefixSpace: prefixSpace, Regex: true}},
		Model:        modelSpec{Type: modelBPE},
		Decoder:      decoderSpec{Type: decodeBytes},
	}
}

// byteLevel reports whether tokens spell bytes in GPT-2's alphabet.
func (p *pipeline) byteLevel() bool {
	return slices.ContainsFunc(p.PreTokenizer, func(s preStep) bool { return s.Type == preBytes })
}

// check refuses settings that the rest of the package does not implement, and prepares the steps.
func (p *pipeline) check(at position) error {
	if len(p.Normalizer) > maxSteps || len(p.PreTokenizer) > maxSteps {
		return at.unsupported("more than %d steps", maxSteps)
	}
	growth := 1
	for _, s := range p.Normalizer {
		if err := s.check(at); err != nil {
			return err
		}
		if (s.Type == normalTable || s.Table) && p.table == nil {
			return at.malformed("normalizer %s without its table", s.Type)
		}
		growth *= s.growth(p.table)
		if growth > maxGrowth {
			return at.unsupported("a normalizer that can make a text %d times as long; "+
				"supported: up to %d", growth, maxGrowth)
		}
	}
	bytes := false
	for i := range p.PreTokenizer {
		s := &p.PreTokenizer[i]
		s.spelled = bytes
		if err := s.check(at); err != nil {
			return err
		}
		bytes = bytes || s.Type == preBytes
	}
	switch p.Model.Type {
	case modelBPE:
	case modelUnigram:
		if bytes {
			return at.unsupported("a Unigram model over bytes; supported: over characters")
		}
		if p.Model.Unknown == nil {
			return at.unsupported("a Unigram model without an unknown token")
		}
	default:
		return at.unsupported("model %q; supported: %s, %s", p.Model.Type, modelBPE, modelUnigram)
	}
	if err := p.Decoder.check(at); err != nil {
		return err
	}
	if bytes != (p.Decoder.Type == decodeBytes) {
		return at.unsupported("one of pre_tokenizer and decoder is ByteLevel and the other is not")
	}
	if bytes {
		p.Model.ByteFallback, p.Model.FuseUnknown = false, false
	}
	return nil
}

// growth returns by how many times the step can make a text longer, besides what it puts in front.
func (s normalStep) growth(table *charsmap) int {
	switch s.Type {
	case normalReplace:
		return max(1, (len(s.With)+len(s.Text)-1)/len(s.Text))
	case normalSpaces:
		return max(1, (len(s.With)+1)/2)
	case normalTable, normalPieces:
		if s.Type == normalTable || s.Table {
			return max(1, table.grows)
		}
	}
	return max(1, unicodeForms[s.Type].growth)
}

func (s normalStep) check(at position) error {
	switch s.Type {
	case normalPrepend, normalReplace:
		if s.Text == "" || len(s.Text) > maxStep || len(s.With) > maxStep {
			return at.unsupported("normalizer %s of an empty text or one of more than %d bytes",
				s.Type, maxStep)
		}
		return nil
	case normalSpaces:
		if len(s.With) > maxStep {
			return at.unsupported("normalizer Replace with more than %d bytes", maxStep)
		}
		return nil
	case normalStrip, normalTable, normalNFC, normalNFD, normalNFKC, normalNFKD:
		return nil
	case normalPieces:
		return checkScheme(s.Prefix, at)
	}
	return at.unsupported("normalizer %q", s.Type)
}

func checkScheme(scheme string, at position) error {
	if scheme != prefixAlways && scheme != prefixFirst && scheme != prefixNever {
		return at.unsupported("prepend_scheme %q; supported: %s, %s, %s", scheme, prefixAlways,
			prefixFirst, prefixNever)
	}
	return nil
}

func (s *preStep) check(at position) error {
	switch s.Type {
	case preBytes:
		if s.spelled {
			return at.unsupported("pre_tokenizer ByteLevel after ByteLevel")
		}
		return nil
	case preDigits, prePunctuation:
		return nil
	case preSplitAfter:
		if s.Text == "" || len(s.Text) > maxStep || s.spelled {
			return at.unsupported("pre_tokenizer Split at an empty text, at one of more than %d "+
				"bytes, or after ByteLevel", maxStep)
		}
		return nil
	case preSpaces:
		if s.spelled {
			return at.unsupported("pre_tokenizer Metaspace after ByteLevel")
		}
		if r, width := utf8.DecodeRuneInString(s.Replacement); width != len(s.Replacement) ||
			r == utf8.RuneError {
			return at.unsupported("pre_tokenizer Metaspace with the replacement %.40q; "+
				"supported: one character", s.Replacement)
		}
		return checkScheme(s.Prefix, at)
	case preSplit:
		known, ok := scanners[s.Pattern]
		if !ok || s.spelled && !known.bytes {
			return at.unsupported("pre_tokenizer Split with the pattern %.900q, which has no "+
				"scanner here", s.Pattern)
		}
		s.length = known.length
		return nil
	}
	return at.unsupported("pre_tokenizer %q", s.Type)
}

// normalizing is the working memory of a normalization.
type normalizing struct{ in, out []byte }

// normalize returns the text that the model sees, valid until the next call. first: text begins the
// whole text.
func (n *normalizing) normalize(p *pipeline, text string, first bool) []byte {
	n.in = append(n.in[:0], text...)
	for _, s := range p.Normalizer {
		n.out = s.appendTo(n.out[:0], n.in, first, p.table)
		n.in, n.out = n.out, n.in
	}
	return n.in
}

// appendTo appends the changed text to dst.
func (s normalStep) appendTo(dst, text []byte, first bool, table *charsmap) []byte {
	switch s.Type {
	case normalNFC, normalNFD, normalNFKC, normalNFKD:
		return appendUnicode(dst, text, s.Type)
	case normalTable:
		return table.appendTo(dst, string(text))
	case normalStrip:
		if s.Left {
			text = bytes.TrimLeftFunc(text, unicode.IsSpace)
		}
		if s.Right {
			text = bytes.TrimRightFunc(text, unicode.IsSpace)
		}
		return append(dst, text...)
	case normalSpaces:
		return s.appendSpaces(dst, text)
	case normalPrepend:
		if len(text) > 0 {
			dst = append(dst, s.Text...)
		}
		return append(dst, text...)
	case normalReplace:
		for {
			i := bytes.Index(text, []byte(s.Text))
			if i < 0 {
				return append(dst, text...)
			}
			dst = append(append(dst, text[:i]...), s.With...)
			text = text[i+len(s.Text):]
		}
	}
	if s.Table {
		return s.appendMapped(dst, string(text), first, table)
	}
	return s.appendPieces(dst, text, first)
}

// appendSpaces replaces runs of two or more spaces.
func (s normalStep) appendSpaces(dst, text []byte) []byte {
	for {
		i := bytes.Index(text, []byte("  "))
		if i < 0 {
			return append(dst, text...)
		}
		dst = append(append(dst, text[:i]...), s.With...)
		text = bytes.TrimLeft(text[i:], " ")
	}
}

// appendMapped normalizes like SentencePiece with a table: the replacements are looked up one by
// one, so a run of spaces ends where a replacement begins with none.
func (s normalStep) appendMapped(dst []byte, text string, first bool, table *charsmap) []byte {
	for s.Trim && text != "" {
		with, length := table.next(text)
		if with != " " {
			break
		}
		text = text[length:]
	}
	if text == "" {
		return dst
	}
	if s.Prefix == prefixAlways || s.Prefix == prefixFirst && first {
		dst = append(dst, spaceMark...)
	}
	for blank := s.Trim; text != ""; {
		with, length := table.next(text)
		text = text[length:]
		if blank {
			with = strings.TrimLeft(with, " ")
		}
		if with != "" {
			blank = s.Trim && strings.HasSuffix(with, " ")
		}
		dst = append(dst, strings.ReplaceAll(with, " ", spaceMark)...)
	}
	for s.Trim && bytes.HasSuffix(dst, []byte(spaceMark)) {
		dst = dst[:len(dst)-len(spaceMark)]
	}
	return dst
}

// appendPieces normalizes like SentencePiece without a table of characters.
func (s normalStep) appendPieces(dst, text []byte, first bool) []byte {
	if s.Trim {
		text = bytes.TrimLeft(text, " ")
	}
	if len(text) == 0 {
		return dst
	}
	if s.Prefix == prefixAlways || s.Prefix == prefixFirst && first {
		dst = append(dst, spaceMark...)
	}
	blank := s.Trim
	for _, b := range text {
		switch {
		case b != ' ':
			dst = append(dst, b)
		case !blank:
			dst = append(dst, spaceMark...)
		}
		blank = s.Trim && b == ' '
	}
	// also those that the text itself contains
	for s.Trim && bytes.HasSuffix(dst, []byte(spaceMark)) {
		dst = dst[:len(dst)-len(spaceMark)]
	}
	return dst
}

// prepare puts a blank first and respells spaces, if the step says so.
func (s *preStep) prepare(text string, first bool) string {
	switch s.Type {
	case preBytes:
		if s.PrefixSpace && text != "" && text[0] != ' ' {
			return " " + text
		}
	case preSpaces:
		text = strings.ReplaceAll(text, " ", s.Replacement)
		if (s.Prefix == prefixAlways || s.Prefix == prefixFirst && first) &&
			!strings.HasPrefix(text, s.Replacement) {
			return s.Replacement + text
		}
	}
	return text
}

// next returns the length in bytes of the first word of text, which is not empty.
func (s *preStep) next(text string) int {
	switch s.Type {
	case preBytes:
		if s.Regex {
			return wordLen(text)
		}
	case preSplit:
		return s.length(text)
	case preSplitAfter:
		if i := strings.Index(text, s.Text); i >= 0 {
			return i + len(s.Text)
		}
	case preDigits:
		return s.run(text, isDigit)
	case prePunctuation:
		return s.run(text, isPunctuation)
	case preSpaces:
		if s.Cut {
			return cutBefore(text, s.Replacement)
		}
	}
	return len(text)
}

// run returns the length of the longest beginning of text with all characters in or all out of a
// class; of one character when every member of the class is a word.
func (s *preStep) run(text string, class func(rune) bool) int {
	r, n := s.rune(text)
	in := class(r)
	if in && s.Each {
		return n
	}
	for n < len(text) {
		r, width := s.rune(text[n:])
		if class(r) != in {
			break
		}
		n += width
	}
	return n
}

// rune returns the first character of text. For a step after ByteLevel this is the spelling of its
// first byte.
func (s *preStep) rune(text string) (rune, int) {
	if s.spelled {
		return byteRune(text[0]), 1
	}
	return utf8.DecodeRuneInString(text)
}

// cutBefore returns the length of the text before the next mark, not counting one at the very
// beginning.
func cutBefore(text, mark string) int {
	from := 0
	if strings.HasPrefix(text, mark) {
		from = len(mark)
	}
	if i := strings.Index(text[from:], mark); i >= 0 {
		return from + i
	}
	return len(text)
}
