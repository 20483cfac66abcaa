package tokenizer

import (
	"encoding/binary"
	"strings"
	"testing"
)

// tableOf makes a table with one node for every byte of the only text in its trie.
func tableOf(key, with string) []byte {
	units := make([]uint32, 1<<16)
	at := uint32(0)
	for i := range len(key) {
		offset := uint32(0x100 * (i + 1))
		units[at] |= (at ^ offset) << 10
		at = offset ^ uint32(key[i])
		units[at] = uint32(key[i])
	}
	leaf := uint32(0x100 * (len(key) + 1))
	units[at] |= (at^leaf)<<10 | 1<<8
	units[leaf] = 1 << 31 // the first replacement
	table := binary.LittleEndian.AppendUint32(nil, uint32(4*len(units)))
	for _, u := range units {
		table = binary.LittleEndian.AppendUint32(table, u)
	}
	return append(append(table, with...), 0)
}

func TestCharsmap(t *testing.T) {
	m, err := readCharsmap(tableOf("e\u0301", "é"), inFile("test"))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"e\u0301": "é", "xe\u0301y": "xéy", "e": "e", "": "", "e\u0323\u0301": "e\u0323\u0301",
		"e\u0301\u0301":       "é",                   // a short cluster: the rest is dropped
		"e\u0301\u0301\u0301": "e\u0301\u0301\u0301", // a long one: its characters, one by one
		"e\u0301\u20d0":       "e\u0301\u20d0",       // six bytes are long
		"\r\ne\u0301":         "\r\né", "\xffe\u0301\xcc": "\xffé\xcc",
	} {
		if got := string(m.appendTo(nil, text)); got != want {
			t.Errorf("%+q becomes %+q, want %+q", text, got, want)
		}
	}
	if with, length := m.next("e\u0301\u0301"); with != "é" || length != 3 {
		t.Errorf("SentencePiece makes %q of the first %d bytes", with, length)
	}
	if m.keeps("ae\u0301") || !m.keeps("ae") {
		t.Error("keeps")
	}
}

func TestCharsmapErrors(t *testing.T) {
	good := tableOf("a", "b")
	change := func(at int, with ...byte) []byte {
		bad := append([]byte(nil), good...)
		copy(bad[at:], with)
		return bad
	}
	for name, c := range map[string]struct {
		table []byte
		kind  error
		want  string
	}{
		"short":   {good[:3], ErrFormat, "3 bytes"},
		"no trie": {change(0, 0, 0, 0, 0), ErrFormat, "0 bytes"},
		"odd":     {change(0, 5, 0, 0, 0), ErrFormat, "5 bytes"},
		"beyond":  {change(0, 0, 0, 0, 0xFF), ErrFormat, "bytes of"},
		"no end":  {good[:len(good)-1], ErrFormat, "zero byte"},
		"no text": {change(len(good)-2, 0xFF), ErrFormat, "texts"},
		"outside": {change(4+4*0x300, 7, 0, 0, 0x80), ErrFormat, "entry 768"},
		"long":    {tableOf("a", strings.Repeat("b", 65)), ErrUnsupported, "65 bytes"},
	} {
		_, err := readCharsmap(c.table, inFile("test"))
		t.Run(name, func(t *testing.T) { checkError(t, err, c.kind, []string{c.want}) })
	}
}

// TestClusters: what a reader sees as one character.
func TestClusters(t *testing.T) {
	for text, want := range map[string]int{
		"ab": 1, "a\u0301b": 3, "a\u0301\u0323b": 5, "\r\n": 2, "\n\r": 1, "a\n": 1, "\u0600a": 3,
		"\u0600\n": 2, "\u1100\u1161\u11a8a": 9, "\uac00\u11a8": 6, "\uac01\u1161": 3,
		"\u11a8\u1161": 3, "a\u200d": 4, "\u200ba\u0301": 3, "ก\u0e33": 6, "a\u0903": 4,
		"\u102b\u102b": 3,
	} {
		if got := clusterLen(text); got != want {
			t.Errorf("%+q: %d bytes, want %d", text, got, want)
		}
	}
}

func FuzzCharsmap(f *testing.F) {
	f.Add(tableOf("e\u0301", "é"), "xe\u0301")
	f.Fuzz(func(t *testing.T, table []byte, text string) {
		m, err := readCharsmap(table, inFile("test"))
		if err != nil {
			return
		}
		if got := m.appendTo(nil, text); len(got) > max(1, m.grows)*len(text) {
			t.Errorf("%d bytes of %d", len(got), len(text))
		}
		for rest := text; rest != ""; {
			with, length := m.next(rest)
			if length <= 0 || len(with) > max(m.grows, length) {
				t.Fatalf("%q for %d bytes", with, length)
			}
			rest = rest[length:]
		}
	})
}
