package tokenizer

import "unicode/utf8"

// replacement stands for bytes that are no UTF-8 and for ids that are no tokens.
const replacement = "\uFFFD"

// Decode returns the text of ids, special tokens included, so that it is the inverse of EncodePlain (of Encode, but for
// BOS). A model can generate bytes that are no UTF-8: each longest beginning of a character that is not completed, and
// each byte that cannot begin one, becomes one U+FFFD, and so does an id outside the vocabulary.
func (t *Tokenizer) Decode(ids []uint32) string {
	return t.decode(ids, false)
}

// DecodeText is Decode without the control tokens (BOS, EOS, padding): the text to show to a reader.
func (t *Tokenizer) DecodeText(ids []uint32) string {
	return t.decode(ids, true)
}

func (t *Tokenizer) decode(ids []uint32, skipControl bool) string {
	s := Stream{t: t, SkipControl: skipControl}
	var out []byte
	for _, id := range ids {
		out = s.appendNext(out, id)
	}
	return string(s.appendFlush(out))
}

// Stream decodes token by token, for text that is shown while it is generated. Use one Stream for one text; it is not
// safe for concurrent use.
type Stream struct {
	// SkipControl leaves out control tokens (BOS, EOS, padding), as DecodeText does. Set it before the first Next.
	SkipControl bool

	t       *Tokenizer
	pending []byte // the beginning of a character, at most 3 bytes between calls
}

// NewStream returns a Stream that shows all tokens.
func (t *Tokenizer) NewStream() *Stream { return &Stream{t: t} }

// Next returns the characters that id completes: "" while a character that several tokens share is unfinished.
func (s *Stream) Next(id uint32) string {
	return string(s.appendNext(nil, id))
}

// Flush ends the text: it returns U+FFFD when a character was left unfinished, else "", and the Stream begins anew.
func (s *Stream) Flush() string {
	return string(s.appendFlush(nil))
}

func (s *Stream) appendNext(dst []byte, id uint32) []byte {
	if int(id) >= len(s.t.text) {
		return append(s.appendFlush(dst), replacement...)
	}
	if s.SkipControl && s.t.kinds[id] == control {
		return dst
	}
	s.pending = append(s.pending, s.t.text[id]...)
	dst, rest := appendWhole(dst, s.pending)
	s.pending = append(s.pending[:0], rest...)
	return dst
}

func (s *Stream) appendFlush(dst []byte) []byte {
	if len(s.pending) > 0 {
		dst = append(dst, replacement...) // what is pending is always one unfinished character
		s.pending = s.pending[:0]
	}
	return dst
}

// appendWhole appends src to dst with invalid bytes replaced, and returns the unfinished character that ends src.
func appendWhole(dst, src []byte) (whole, rest []byte) {
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
		src = src[invalidLen(src):]
	}
	return dst, nil
}

// invalidLen returns how many of the first bytes of src, which do not begin a character, one U+FFFD replaces: the longest
// beginning of a character ("maximal subpart", Unicode 15.0 section 3.9), at least one byte.
func invalidLen(src []byte) int {
	n := 1
	for n < len(src) && !utf8.FullRune(src[:n+1]) {
		n++
	}
	return n
}
