package tokenizer

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unicode"
	"unicode/utf8"
)

// charsmap is SentencePiece's table of replacements (precompiled_charsmap): a trie of texts in the
// form of darts-clone, and the replacements, each ended by a zero byte. It stays as it is in the
// file.
type charsmap struct {
	raw   []byte // all of it
	units []byte // the trie: little-endian words of 32 bits
	texts []byte // the replacements
	grows int    // bytes of the longest replacement
}

// readCharsmap checks a table: every replacement is a text of at most maxStep bytes.
func readCharsmap(raw []byte, at position) (*charsmap, error) {
	const what = "precompiled_charsmap"
	if len(raw) < 4 {
		return nil, at.malformed("%s of %d bytes", what, len(raw))
	}
	size := int64(binary.LittleEndian.Uint32(raw))
	if size == 0 || size%4 != 0 || size > int64(len(raw)-4) {
		return nil, at.malformed("%s: its trie has %d bytes of %d", what, size, len(raw)-4)
	}
	m := &charsmap{raw: raw, units: raw[4 : 4+size], texts: raw[4+size:]}
	if !utf8.Valid(m.texts) || len(m.texts) > 0 && m.texts[len(m.texts)-1] != 0 {
		return nil, at.malformed("%s: the replacements are not texts that end with a zero byte",
			what)
	}
	for text := range bytes.SplitSeq(m.texts, []byte{0}) {
		m.grows = max(m.grows, len(text))
	}
	if m.grows > maxStep {
		return nil, at.unsupported("%s with a replacement of %d bytes; supported: up to %d", what,
			m.grows, maxStep)
	}
	for i := range len(m.units) / 4 {
		u := m.unit(uint32(i))
		if v := int64(u.value()); u.leaf() && (v >= int64(len(m.texts)) ||
			!utf8.RuneStart(m.texts[v])) {
			return nil, at.malformed("%s: entry %d of the trie names no replacement", what, i)
		}
	}
	return m, nil
}

// unit is a node of the trie.
type unit uint32

const noUnit = ^unit(0)

func (u unit) leaf() bool     { return u>>31 == 1 }
func (u unit) value() uint32  { return uint32(u &^ (1 << 31)) }
func (u unit) label() uint32  { return uint32(u & (1<<31 | 0xFF)) }
func (u unit) ends() bool     { return u>>8&1 == 1 } // a text of the trie ends here
func (u unit) offset() uint32 { return uint32(u>>10) << (u & (1 << 9) >> 6) }

// unit returns a node; for one beyond the trie a leaf that says so.
func (m *charsmap) unit(at uint32) unit {
	if int64(at) >= int64(len(m.units)/4) {
		return noUnit
	}
	return unit(binary.LittleEndian.Uint32(m.units[4*at:]))
}

// find returns the replacement of a text of the trie that text begins with, and how long that is:
// of the longest or else of the shortest.
func (m *charsmap) find(text string, longest bool) (with []byte, length int, ok bool) {
	at := m.unit(0).offset()
	for i := range len(text) {
		at ^= uint32(text[i])
		u := m.unit(at)
		if u.label() != uint32(text[i]) {
			break
		}
		at ^= u.offset()
		leaf := m.unit(at)
		if !u.ends() || !leaf.leaf() || leaf == noUnit {
			continue
		}
		with = m.texts[leaf.value():]
		with, length, ok = with[:bytes.IndexByte(with, 0)], i+1, true
		if !longest {
			break
		}
	}
	return with, length, ok
}

// next returns what SentencePiece makes of the beginning of text, which is not empty.
func (m *charsmap) next(text string) (with string, length int) {
	if with, length, ok := m.find(text, true); ok {
		return string(with), length
	}
	_, length = utf8.DecodeRuneInString(text)
	return text[:length], length
}

// keeps reports whether SentencePiece leaves a text as it is.
func (m *charsmap) keeps(text string) bool {
	for text != "" {
		with, length := m.next(text)
		if with != text[:length] {
			return false
		}
		text = text[length:]
	}
	return true
}

// appendTo appends text as the tokenizers library changes it: not as SentencePiece does. It looks a
// short cluster of characters up as a whole, and takes the shortest beginning of it that is in the
// trie; the rest of the cluster is then dropped.
func (m *charsmap) appendTo(dst []byte, text string) []byte {
	const short = 6
	for text != "" {
		n := clusterLen(text)
		cluster := text[:n]
		text = text[n:]
		if n < short {
			if with, _, ok := m.find(cluster, false); ok {
				dst = append(dst, with...)
				continue
			}
		}
		for cluster != "" {
			_, width := utf8.DecodeRuneInString(cluster)
			if with, _, ok := m.find(cluster[:width], false); ok {
				dst = append(dst, with...)
			} else {
				dst = append(dst, cluster[:width]...)
			}
			cluster = cluster[width:]
		}
	}
	return dst
}

// clusterLen returns the length of the first character of text as a reader sees it (an extended
// grapheme cluster, Unicode Standard Annex 29). Pairs of flags, joined pictures and conjuncts are
// taken apart: they are never as short as appendTo's clusters.
func clusterLen(text string) int {
	r, n := utf8.DecodeRuneInString(text)
	if strings.HasPrefix(text, "\r\n") {
		return 2
	}
	for breaks := isControl(r); !breaks && n < len(text); {
		next, width := utf8.DecodeRuneInString(text[n:])
		switch {
		case isControl(next):
			return n
		case extends(next), unicode.Is(prepended, r), hangulJoins(r, next):
		default:
			return n
		}
		r, n = next, n+width
	}
	return n
}

// isControl reports whether a character stands alone in any text.
func isControl(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) && !extends(r) &&
		!unicode.Is(prepended, r)
}

// extends reports whether a character belongs to the one before it.
func extends(r rune) bool {
	switch {
	case r < 0x300:
		return false
	case r == 0x200D, r == 0xE33, r == 0xEB3, 0x1F3FB <= r && r <= 0x1F3FF:
		return true
	}
	return unicode.In(r, unicode.Mn, unicode.Me, unicode.Mc, unicode.Other_Grapheme_Extend) &&
		!unicode.Is(apart, r)
}

// prepended are the characters that belong to the one after them.
var prepended = &unicode.RangeTable{
	R16: []unicode.Range16{{0x600, 0x605, 1}, {0x6DD, 0x70F, 0x70F - 0x6DD}, {0x890, 0x891, 1},
		{0x8E2, 0xD4E, 0xD4E - 0x8E2}},
	R32: []unicode.Range32{{0x110BD, 0x110CD, 0x10}, {0x111C2, 0x111C3, 1}, {0x1193F, 0x11941, 2},
		{0x11A3A, 0x11A3A, 1}, {0x11A84, 0x11A89, 1}, {0x11D46, 0x11F02, 0x11F02 - 0x11D46}},
}

// apart are the spacing marks that do not belong to the character before them.
var apart = &unicode.RangeTable{
	R16: []unicode.Range16{{0x102B, 0x102C, 1}, {0x1038, 0x1038, 1}, {0x1062, 0x1064, 1},
		{0x1067, 0x106D, 1}, {0x1083, 0x1083, 1}, {0x1087, 0x108C, 1}, {0x108F, 0x108F, 1},
		{0x109A, 0x109C, 1}, {0x1A61, 0x1A63, 2}, {0x1A64, 0x1A64, 1}, {0xAA7B, 0xAA7D, 2}},
	R32: []unicode.Range32{{0x11720, 0x11721, 1}},
}

// hangulJoins reports whether two letters or syllables of Hangul are parts of one syllable.
func hangulJoins(a, b rune) bool {
	syllable := func(r rune) (isSyllable, open bool) {
		s := r - hangulS
		isSyllable = s >= 0 && s < hangulLs*hangulVs*hangulTs
		return isSyllable, isSyllable && s%hangulTs == 0
	}
	lead := func(r rune) bool { return 0x1100 <= r && r <= 0x115F || 0xA960 <= r && r <= 0xA97C }
	vowel := func(r rune) bool { return 0x1160 <= r && r <= 0x11A7 || 0xD7B0 <= r && r <= 0xD7C6 }
	trail := func(r rune) bool { return 0x11A8 <= r && r <= 0x11FF || 0xD7CB <= r && r <= 0xD7FB }
	whole, open := syllable(a)
	next, _ := syllable(b)
	switch {
	case lead(a):
		return lead(b) || vowel(b) || next
	case vowel(a), open:
		return vowel(b) || trail(b)
	case trail(a), whole:
		return trail(b)
	}
	return false
}
