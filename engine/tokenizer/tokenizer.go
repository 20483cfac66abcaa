package tokenizer

import (
	"strings"
	"sync"
)

// Tokenizer is an immutable vocabulary with its merges and special tokens. It is safe for concurrent use; concurrent
// calls of Encode wait for each other, because they share the cache of words. The zero value is not usable.
type Tokenizer struct {
	vocab    []string // spelling in the byte alphabet, by id
	text     []string // the bytes each id stands for
	merges   []string // "left right", by rank
	specials []special
	kinds    []kind           // by id
	starts   [256][]special   // by first byte, the longest first
	base     [256]uint32      // the token of each byte
	pairs    map[pair]product // what two neighbours become
	roles    roles
	sha256   string

	mu  sync.Mutex
	bpe encoder // guarded by mu
}

// roles says which token does what, and what Encode adds to a text.
type roles struct {
	bos, eos, pad *uint32 // nil: there is none
	addBOS        bool
	prefixSpace   bool
}

// kind says how a token gets into a text.
type kind uint8

const (
	merged  kind = iota // by merging bytes
	added               // written in the text as it stands, and a part of the text
	control             // written in the text as it stands, and left out by DecodeText
)

// special is a token that is added or control.
type special struct {
	id   uint32
	text string
	kind kind
}

// Encode returns the ids of text, with BOS first when the model was trained so (OPT: id 2, "</s>").
// An empty text gives BOS alone, or nothing. Invalid UTF-8 is encoded byte by byte.
func (t *Tokenizer) Encode(text string) []uint32 {
	var ids []uint32
	if t.roles.addBOS {
		ids = append(ids, *t.roles.bos)
	}
	return t.appendText(ids, text)
}

// EncodePlain returns the ids of text without BOS. It is nil for the empty text.
func (t *Tokenizer) EncodePlain(text string) []uint32 {
	return t.appendText(nil, text)
}

// appendText cuts the special tokens out of text and encodes what is between them.
func (t *Tokenizer) appendText(dst []uint32, text string) []uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	for text != "" {
		at, sp := t.findSpecial(text)
		dst = t.appendPiece(dst, text[:at])
		if at == len(text) {
			break
		}
		dst = append(dst, sp.id)
		text = text[at+len(sp.text):]
	}
	return dst
}

// findSpecial returns the leftmost special token of text, the longest where several begin at one place, and its
// position; len(text) when there is none.
func (t *Tokenizer) findSpecial(text string) (int, special) {
	for i := range len(text) {
		for _, sp := range t.starts[text[i]] {
			if strings.HasPrefix(text[i:], sp.text) {
				return i, sp
			}
		}
	}
	return len(text), special{}
}

// appendPiece encodes a text without special tokens.
func (t *Tokenizer) appendPiece(dst []uint32, piece string) []uint32 {
	if t.roles.prefixSpace && piece != "" && piece[0] != ' ' {
		piece = " " + piece
	}
	for piece != "" {
		n := wordLen(piece)
		dst = t.appendWord(dst, piece[:n])
		piece = piece[n:]
	}
	return dst
}

// VocabSize returns the number of tokens; ids are 0 … VocabSize()-1. A model may have more rows than that in its
// embedding (OPT: 50272 rows, 50265 tokens): those ids must not be sampled.
func (t *Tokenizer) VocabSize() int { return len(t.vocab) }

// Token returns the spelling of a token in vocab.json, where "Ġ" stands for a space, and "" for an id that does not
// exist. For the text use Decode.
func (t *Tokenizer) Token(id uint32) string {
	if int(id) >= len(t.vocab) {
		return ""
	}
	return t.vocab[id]
}

// IsSpecial reports whether id is cut out of a text as it stands ("</s>") instead of being merged.
func (t *Tokenizer) IsSpecial(id uint32) bool {
	return int(id) < len(t.kinds) && t.kinds[id] != merged
}

// BOS returns the token that begins a sequence, whether or not Encode adds it, and false when there is none.
func (t *Tokenizer) BOS() (uint32, bool) { return optional(t.roles.bos) }

// EOS returns the token that ends a sequence, and false when there is none. OPT's is its BOS as well, so only a
// generated one ends a text.
func (t *Tokenizer) EOS() (uint32, bool) { return optional(t.roles.eos) }

// Pad returns the token that fills a batch, and false when there is none.
func (t *Tokenizer) Pad() (uint32, bool) { return optional(t.roles.pad) }

// AddsBOS reports whether Encode puts BOS first.
func (t *Tokenizer) AddsBOS() bool { return t.roles.addBOS }

// SHA256 returns the hash of the document that MarshalText returns, in hexadecimal. Two tokenizers with one hash give
// the same ids for every text.
func (t *Tokenizer) SHA256() string { return t.sha256 }

func optional(id *uint32) (uint32, bool) {
	if id == nil {
		return 0, false
	}
	return *id, true
}
