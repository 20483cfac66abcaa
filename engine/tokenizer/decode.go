package tokenizer

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// replacement stands for bytes that are no UTF-8 and for ids that are no tokens.
const replacement = "\uFFFD"

// decoderSpec describes how tokens become text.
type decoderSpec struct {
	Type    string       `json:"type"`            // decodeBytes or decodeTokens
	Replace []respelling `json:"replace"`         // decodeTokens: in every token, in this order
	Bytes   string       `json:"bytes,omitempty"` // decodeTokens: the meaning of tokens "<0xNN>"
	// decodeTokens: dropped wherever it occurs in the first token
	First string `json:"first,omitempty"`
	// decodeTokens: spaces dropped at the beginning, at most
	Strip int `json:"strip,omitempty"`
	// decodeTokens: which tokens with a leading "▁" lose it
	Marks string `json:"marks,omitempty"`
}

// respelling is a text in a token that stands for another in the text.
type respelling struct {
	Old string `json:"old"`
	New string `json:"new"`
}

// The kinds of decoderSpec, and of its Bytes. A run of byte tokens is one text for the tokenizers
// library: if one of its bytes is wrong, every byte becomes U+FFFD. SentencePiece decides for each
// character.
const (
	decodeBytes  = "byte_level"
	decodeTokens = "tokens"

	bytesByRun       = "run"
	bytesByCharacter = "character"

	marksOne = "one" // SentencePiece's: the first token with text loses its mark
	// and, where the model removes white space, every earlier token that is a mark alone
	marksAll = "each"
)

func (d *decoderSpec) check(at position) error {
	if d.Type != decodeBytes && d.Type != decodeTokens {
		return at.unsupported("decoder %q", d.Type)
	}
	if d.Bytes != "" && d.Bytes != bytesByRun && d.Bytes != bytesByCharacter {
		return at.unsupported("decoder of bytes %q", d.Bytes)
	}
	if d.Marks != "" && d.Marks != marksOne && d.Marks != marksAll {
		return at.unsupported("decoder of marks %q", d.Marks)
	}
	if len(d.Replace) > maxSteps || d.Strip < 0 || d.Strip > maxStep {
		return at.unsupported("decoder with %d replacements that strips %d characters",
			len(d.Replace), d.Strip)
	}
	for _, r := range d.Replace {
		if r.Old == "" || len(r.Old) > maxStep || len(r.New) > len(r.Old) {
			return at.unsupported("decoder that replaces %.60q by a longer text %.60q", r.Old,
				r.New)
		}
	}
	return nil
}

// respell changes in place the text of a token of a decodeTokens decoder: no replacement is longer
// than the text it replaces.
func (d *decoderSpec) respell(text []byte) []byte {
	for _, r := range d.Replace {
		text = replaceInPlace(text, r.Old, r.New)
	}
	return text
}

// replaceInPlace is strings.ReplaceAll for a new text that is not longer than the old one.
func replaceInPlace(text []byte, old, with string) []byte {
	out := text[:0] // never beyond the text that has been read
	for {
		i := bytes.Index(text, []byte(old))
		if i < 0 {
			return append(out, text...)
		}
		out = append(append(out, text[:i]...), with...)
		text = text[i+len(old):]
	}
}

// byteToken returns the byte that a token like "<0x0A>" stands for.
func byteToken(spelling []byte) (byte, bool) {
	if len(spelling) != 6 || !bytes.HasPrefix(spelling, []byte("<0x")) || spelling[5] != '>' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(spelling[3:5]), 16, 8)
	return byte(n), err == nil
}

// Decode returns the text of ids, special tokens included. For a model over bytes it is the inverse
// of EncodePlain (of Encode, without the tokens that Encode adds). A model can generate bytes that
// are not UTF-8: each longest incomplete beginning of a character, and each byte that cannot begin
// one, becomes one U+FFFD, and so does an id outside the vocabulary. With byte fallback ("<0xNN>")
// each byte of the run of byte tokens does.
func (t *Tokenizer) Decode(ids []uint32) string {
	return t.decode(ids, false)
}

// DecodeText is Decode without the control tokens (BOS, EOS, padding): the text to show to a
// reader.
func (t *Tokenizer) DecodeText(ids []uint32) string {
	return t.decode(ids, true)
}

func (t *Tokenizer) decode(ids []uint32, skipControl bool) string {
	s := t.NewStream()
	s.SkipControl = skipControl
	var out []byte
	for _, id := range ids {
		out = s.appendNext(out, id)
	}
	return string(s.appendFlush(out))
}

// Stream decodes token by token, for text that is shown while it is generated. Use one Stream for
// one text; it is not safe for concurrent use.
type Stream struct {
	// SkipControl leaves out control tokens (BOS, EOS, padding), as DecodeText does. Set it before
	// the first Next.
	SkipControl bool

	t *Tokenizer
	// the beginning of a character, at most 3 bytes between calls; with byte fallback a run of byte
	// tokens
	pending []byte
	text    []byte // working memory
	begun   bool   // a token has been decoded
	strip   int    // spaces that are still to be dropped
}

// NewStream returns a Stream that shows all tokens.
func (t *Tokenizer) NewStream() *Stream { return &Stream{t: t, strip: t.spec.Decoder.Strip} }

// Next returns the characters that id completes, and "" while a character of several tokens is
// incomplete. With byte fallback a character is incomplete until the next token that is not a byte:
// only then it is known whether the bytes are text.
func (s *Stream) Next(id uint32) string {
	return string(s.appendNext(nil, id))
}

// Flush ends the text: it returns the pending text, with U+FFFD for an incomplete character, and
// resets the Stream.
func (s *Stream) Flush() string {
	return string(s.appendFlush(nil))
}

func (s *Stream) appendNext(dst []byte, id uint32) []byte {
	if int(id) >= s.t.lex.size() {
		dst = append(s.appendPending(dst), replacement...)
		s.begun, s.strip = true, 0
		return dst
	}
	if s.SkipControl && s.t.kinds[id] == control {
		return dst
	}
	if s.t.spec.Decoder.Type == decodeTokens {
		return s.appendToken(dst, id)
	}
	s.pending = s.t.appendBytes(s.pending, id)
	dst, rest := appendWhole(dst, s.pending, invalidLen)
	s.pending = append(s.pending[:0], rest...)
	return dst
}

// appendBytes appends the text of a token of a byte-level vocabulary. A token that spells no bytes,
// and every special one, stands for itself.
func (t *Tokenizer) appendBytes(dst []byte, id uint32) []byte {
	spelling, from := t.lex.text(id), len(dst)
	if t.kinds[id] != merged {
		return append(dst, spelling...)
	}
	for _, r := range spelling {
		b, ok := runeByte(r)
		if !ok {
			return append(dst[:from], spelling...)
		}
		dst = append(dst, b)
	}
	return dst
}

// appendToken is appendNext for tokens that spell text.
func (s *Stream) appendToken(dst []byte, id uint32) []byte {
	d := &s.t.spec.Decoder
	spelling := s.t.lex.text(id)
	s.text = append(s.text[:0], spelling...)
	text := d.respell(s.text)
	first := !s.begun
	s.begun = true
	if d.Bytes != "" {
		if b, ok := byteToken(text); ok {
			s.pending = append(s.pending, b)
			if d.Bytes == bytesByRun {
				return dst
			}
			s.strip = 0
			whole, rest := appendWhole(dst, s.pending, oneByte)
			s.pending = append(s.pending[:0], rest...)
			return whole
		}
	}
	dst = s.appendPending(dst)
	if first && d.First != "" {
		text = replaceInPlace(append(s.text[:0], spelling...), d.First, "")
	}
	if d.Marks != "" {
		return append(dst, s.unmarked(text, strings.HasPrefix(spelling, spaceMark))...)
	}
	return append(dst, s.stripped(text)...)
}

// unmarked drops the mark that text, which has been respelled, began with. Spaces that are no marks
// stay.
func (s *Stream) unmarked(text []byte, marked bool) []byte {
	if s.strip == 0 || len(text) == 0 {
		return text
	}
	if marked {
		text = bytes.TrimPrefix(text, []byte(" "))
	}
	if len(text) > 0 || s.t.spec.Decoder.Marks == marksOne {
		s.strip = 0
	}
	return text
}

// stripped drops the spaces at the beginning of the whole text.
func (s *Stream) stripped(text []byte) []byte {
	for s.strip > 0 && len(text) > 0 {
		if text[0] != ' ' {
			s.strip = 0
			break
		}
		text = text[1:]
		s.strip--
	}
	return text
}

func (s *Stream) appendFlush(dst []byte) []byte {
	dst = s.appendPending(dst)
	s.begun, s.strip = false, s.t.spec.Decoder.Strip
	return dst
}

// appendPending appends the pending bytes, which nothing can complete any more.
func (s *Stream) appendPending(dst []byte) []byte {
	switch {
	case len(s.pending) == 0:
		return dst
	case s.t.spec.Decoder.Type == decodeBytes:
		dst = append(dst, replacement...) // the pending bytes are always one incomplete character
	case s.t.spec.Decoder.Bytes == bytesByRun && utf8.Valid(s.pending):
		dst = append(dst, s.stripped(s.pending)...)
	default:
		s.strip = 0
		for range s.pending {
			dst = append(dst, replacement...)
		}
	}
	s.pending = s.pending[:0]
	return dst
}

// appendWhole appends src to dst with invalid bytes replaced, and returns the incomplete character
// at the end of src. One U+FFFD replaces as many bytes as skip returns.
func appendWhole(dst, src []byte, skip func([]byte) int) (whole, rest []byte) {
	for len(src) > 0 {
		r, width := utf8.DecodeRune(src)
		if r != utf8.RuneError || width > 1 {
			dst = append(dst, src[:width]...)
			src = src[width:]
			continue
		}
		if !utf8.FullRune(src) {
			return dst, src
		}
		dst = append(dst, replacement...)
		src = src[skip(src):]
	}
	return dst, nil
}

// oneByte is SentencePiece's answer to bytes that are no UTF-8: a U+FFFD for each.
func oneByte([]byte) int { return 1 }

// invalidLen returns the number of leading bytes of src, which do not begin a character, that one
// U+FFFD replaces: the longest beginning of a character ("maximal subpart", Unicode 15.0 section
// 3.9), at least one byte.
func invalidLen(src []byte) int {
	n := 1
	for n < len(src) && !utf8.FullRune(src[:n+1]) {
		n++
	}
	return n
}
