package tokenizer

import (
	"strings"
	"sync"
)

// Tokenizer is an immutable vocabulary with its merges or scores, its special tokens and the steps
// before and after the model. It is safe for concurrent use; concurrent calls of Encode wait for
// each other, because they share the cache of words. The zero value is not usable.
type Tokenizer struct {
	spec     pipeline
	lex      *lexicon    // the spellings
	merges   *merges     // nil for a Unigram model
	scores   []float64   // by id, of a Unigram model; a token is never chosen without one
	specials []special   // by id
	kinds    []kind      // by id
	cuts     [2]*cutter  // of the text as written, and of the normalized text
	base     [256]uint32 // the token of each byte
	model    model
	uni      *unigram // nil: pairs merge
	roles    roles
	sha256   string

	mu   sync.Mutex // guards the working memory of encoding: below, and in uni
	bpe  encoder
	norm normalizing
}

// model holds the facts of spec.Model that the loops need.
type model struct {
	bytes    bool // words are bytes, base is their tokens
	fallback bool // base is the tokens of the bytes of unknown characters
	marked   bool // every merge stays within a word that begins with "▁", which is a token
	// the token of unknown characters; an id beyond the vocabulary when there is none
	unk uint32
}

// roles are the tokens with a role, and the tokens that Encode adds to a text.
type roles struct {
	bos, eos, pad  *uint32 // nil: there is none
	prefix, suffix []uint32
}

// kind says how a token gets into a text.
type kind uint8

const (
	merged  kind = iota // by merging, or by the model's choice
	added               // searched for in the text as written, and a part of the text
	control             // searched for in the text as written, and left out by DecodeText
)

// Encode returns the ids of text with the tokens around it that the model was trained with: for OPT
// and Llama the begin token first (OPT: id 2, "</s>"), for some models the end token last. An empty
// text gives these alone, or nothing. Invalid UTF-8 is encoded byte by byte, if the model has
// tokens for bytes.
func (t *Tokenizer) Encode(text string) []uint32 {
	var ids []uint32
	ids = append(ids, t.roles.prefix...)
	ids = t.appendText(ids, text)
	return append(ids, t.roles.suffix...)
}

// EncodePlain returns the ids of text alone. It is nil for the empty text.
func (t *Tokenizer) EncodePlain(text string) []uint32 {
	return t.appendText(nil, text)
}

// appendText cuts the special tokens out of text and encodes the text between them.
func (t *Tokenizer) appendText(dst []uint32, text string) []uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	done, search := 0, 0
	for done < len(text) {
		f, ok := t.cuts[0].find(text, search, done)
		if !ok {
			break
		}
		if done < f.from {
			dst = t.appendRaw(dst, text[done:f.from], done == 0)
		}
		dst = append(dst, f.id)
		done, search = f.to, f.next
	}
	if done < len(text) {
		dst = t.appendRaw(dst, text[done:], done == 0)
	}
	return dst
}

// appendRaw normalizes a piece, cuts out the special tokens that are searched for in the result and
// encodes the text between them. first: the piece begins the whole text.
func (t *Tokenizer) appendRaw(dst []uint32, piece string, first bool) []uint32 {
	if len(t.spec.Normalizer) > 0 {
		piece = string(t.norm.normalize(&t.spec, piece, first))
	}
	done, search := 0, 0
	for done < len(piece) {
		f, ok := t.cuts[1].find(piece, search, done)
		if !ok {
			break
		}
		if done < f.from {
			dst = t.appendPiece(dst, piece[done:f.from], 0, first && done == 0)
		}
		dst = append(dst, f.id)
		done, search = f.to, f.next
	}
	if done < len(piece) {
		dst = t.appendPiece(dst, piece[done:], 0, first && done == 0)
	}
	return dst
}

// appendPiece splits a text without special tokens into words, step after step, and encodes them.
func (t *Tokenizer) appendPiece(dst []uint32, piece string, step int, first bool) []uint32 {
	if step == len(t.spec.PreTokenizer) {
		if t.model.marked {
			return t.appendMarked(dst, piece)
		}
		return t.appendWord(dst, piece)
	}
	s := &t.spec.PreTokenizer[step]
	for piece = s.prepare(piece, first); piece != ""; first = false {
		n := s.next(piece)
		dst = t.appendPiece(dst, piece[:n], step+1, first)
		piece = piece[n:]
	}
	return dst
}

// appendMarked encodes a whole text that no step splits, word by word, so that the cache has the
// words. No merge crosses the beginning of a word, so the ids are those of the whole.
func (t *Tokenizer) appendMarked(dst []uint32, text string) []uint32 {
	for text != "" {
		n := 0
		for strings.HasPrefix(text[n:], spaceMark) {
			n += len(spaceMark)
		}
		if i := strings.Index(text[n:], spaceMark); i >= 0 {
			n += i
		} else {
			n = len(text)
		}
		dst = t.appendWord(dst, text[:n])
		text = text[n:]
	}
	return dst
}

// VocabSize returns the number of tokens; ids are 0 … VocabSize()-1. A model's embedding may have
// more rows (OPT: 50272 rows, 50265 tokens): those ids must not be sampled.
func (t *Tokenizer) VocabSize() int { return t.lex.size() }

// Token returns the spelling of a token in the model's own files, with "Ġ" or "▁" for a space, and
// "" for an unknown id. For the text use Decode.
func (t *Tokenizer) Token(id uint32) string {
	if int(id) >= t.lex.size() {
		return ""
	}
	return t.lex.text(id)
}

// IsSpecial reports whether id is cut out of a text as written ("</s>") instead of being merged, or
// is a control token that no text contains.
func (t *Tokenizer) IsSpecial(id uint32) bool {
	return int(id) < len(t.kinds) && t.kinds[id] != merged
}

// BOS returns the begin token, whether or not Encode adds it, and false if there is none.
func (t *Tokenizer) BOS() (uint32, bool) { return optional(t.roles.bos) }

// EOS returns the end token, and false if there is none. OPT's is also its BOS, so only a generated
// one ends a text.
func (t *Tokenizer) EOS() (uint32, bool) { return optional(t.roles.eos) }

// Pad returns the token that fills a batch, and false when there is none.
func (t *Tokenizer) Pad() (uint32, bool) { return optional(t.roles.pad) }

// AddsBOS reports whether Encode puts BOS first.
func (t *Tokenizer) AddsBOS() bool {
	return t.roles.bos != nil && len(t.roles.prefix) > 0 && t.roles.prefix[0] == *t.roles.bos
}

// SHA256 returns the hash of MarshalText's document, in hexadecimal. Two tokenizers with one hash
// give the same ids for every text.
func (t *Tokenizer) SHA256() string { return t.sha256 }

func optional(id *uint32) (uint32, bool) {
	if id == nil {
		return 0, false
	}
	return *id, true
}
