package tokenizer

import "unicode/utf8"

// GPT-2's alphabet spells any byte as a printable character: printable Latin-1 characters stand for
// themselves, the other 68 bytes for U+0100 and on, in the order of the bytes. A space is "Ġ", a
// newline "Ċ".

// byteRune returns the character that spells a byte.
func byteRune(b byte) rune {
	switch {
	case '!' <= b && b <= '~', 0xA1 <= b && b <= 0xAC, 0xAE <= b:
		return rune(b)
	case b <= ' ':
		return 0x100 + rune(b)
	case b <= 0xA0:
		return 0x121 + rune(b-0x7F)
	}
	return 0x143 // 0xAD, the soft hyphen
}

// runeByte returns the byte that a character spells, and false for a character that spells none.
func runeByte(r rune) (byte, bool) {
	switch {
	case '!' <= r && r <= '~', 0xA1 <= r && r <= 0xAC, 0xAE <= r && r <= 0xFF:
		return byte(r), true
	case 0x100 <= r && r <= 0x120:
		return byte(r - 0x100), true
	case 0x121 <= r && r <= 0x142:
		return byte(r-0x121) + 0x7F, true
	case r == 0x143:
		return 0xAD, true
	}
	return 0, false
}

// spellsBytes reports whether a token is a spelling of bytes.
func spellsBytes(spelling []byte) bool {
	for len(spelling) > 0 {
		r, width := utf8.DecodeRune(spelling)
		if _, ok := runeByte(r); !ok {
			return false
		}
		spelling = spelling[width:]
	}
	return true
}
