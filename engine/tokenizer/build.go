package tokenizer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// noToken is an id that no token has.
const noToken = ^uint32(0)

// source is what the files say, before it is checked: Load and Parse fill it, build makes a Tokenizer of it.
type source struct {
	name   string // of the folder or document, for errors that have no better place
	spec   pipeline
	vocab  []entry   // the model's tokens
	scores []float64 // of vocab, for a Unigram model; not a number for a token that is never chosen
	merges []rule
	extra  []entry // special tokens; those outside vocab extend it
	roles  roles
}

// entry is a token with its id.
type entry struct {
	text    string
	id      uint32
	kind    kind
	flags   flags
	flagged bool // the file gives the flags; else they are the defaults of the kind
	pos     position
}

// rule is one line of merges.txt: left and right become left+right.
type rule struct {
	left, right string
	tied        bool // it ranks with the one before: the leftmost pair merges first
	pos         position
}

// build checks a source and makes the tables. The ids must be 0 … n-1, because they are the rows of the embedding.
func build(src source) (*Tokenizer, error) {
	at := position{file: src.name}
	if err := src.spec.check(at); err != nil {
		return nil, err
	}
	t := &Tokenizer{spec: src.spec, roles: src.roles}
	ids := make(map[string]uint32, len(src.vocab))
	if err := t.fillVocab(src, ids); err != nil {
		return nil, err
	}
	alpha := newAlphabet()
	t.fillText(alpha)
	if err := t.fillModel(src, ids, alpha); err != nil {
		return nil, err
	}
	for _, list := range [][]uint32{optionalList(t.roles.bos), optionalList(t.roles.eos), optionalList(t.roles.pad), optionalList(t.spec.Model.Unknown), t.roles.prefix, t.roles.suffix} {
		for _, id := range list {
			if int64(id) >= int64(len(t.vocab)) {
				return nil, at.malformed("special token %d is outside the vocabulary of %d", id, len(t.vocab))
			}
		}
	}
	t.fillCuts()
	doc, err := t.MarshalText()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(doc)
	t.sha256 = hex.EncodeToString(sum[:])
	return t, nil
}

func optionalList(id *uint32) []uint32 {
	if id == nil {
		return nil
	}
	return []uint32{*id}
}

// fillVocab puts every token at its id and the special tokens into their list.
func (t *Tokenizer) fillVocab(src source, ids map[string]uint32) error {
	all := slices.Clone(src.vocab)
	for _, e := range src.vocab {
		if other, twice := ids[e.text]; twice {
			return e.pos.malformed("token %q has the ids %d and %d", e.text, other, e.id)
		}
		ids[e.text] = e.id
	}
	outside := make(map[uint32]bool)
	for _, e := range src.extra {
		if len(e.text) > maxPiece {
			return e.pos.unsupported("special token %.40q… of %d bytes; supported: up to %d", e.text, len(e.text), maxPiece)
		}
		id, known := ids[e.text]
		if known && id != e.id {
			return e.pos.malformed("special token %q has the ids %d and %d", e.text, id, e.id)
		}
		if !known {
			ids[e.text] = e.id
			outside[e.id] = true
			all = append(all, e)
		}
	}
	t.vocab = make([]string, len(all))
	t.kinds = make([]kind, len(all))
	for _, e := range all {
		if e.text == "" {
			return e.pos.malformed("token %d is the empty text", e.id)
		}
		if int64(e.id) >= int64(len(all)) {
			return e.pos.malformed("token %q has the id %d, but there are %d tokens: ids must be 0 to %d, without holes", e.text, e.id, len(all), len(all)-1)
		}
		if other := t.vocab[e.id]; other != "" {
			return e.pos.malformed("tokens %q and %q have one id, %d", other, e.text, e.id)
		}
		t.vocab[e.id] = e.text
	}
	t.fillSpecials(src.extra, outside)
	return nil
}

// fillSpecials makes the list of special tokens. Where two files flag one token, the later one counts.
func (t *Tokenizer) fillSpecials(extra []entry, outside map[uint32]bool) {
	given := make(map[uint32]flags)
	for _, e := range extra {
		t.kinds[e.id] = max(t.kinds[e.id], e.kind)
		if e.flagged {
			given[e.id] = e.flags
		}
	}
	for id, k := range t.kinds {
		if k == merged {
			continue
		}
		sp := special{id: uint32(id), text: t.vocab[id], kind: k}
		var said bool
		if sp.flags, said = given[sp.id]; !said {
			sp.flags.normalized = k == added
		}
		sp.flags.outside = outside[sp.id]
		t.specials = append(t.specials, sp)
	}
	if t.plain() {
		for i := range t.specials {
			t.specials[i].flags = flags{}
		}
	}
}

// fillText finds out what every token stands for. In a byte-level vocabulary a token that is no spelling of bytes, and
// every special one, stands for itself.
func (t *Tokenizer) fillText(alpha *alphabet) {
	t.text = make([]string, len(t.vocab))
	for id, spelling := range t.vocab {
		t.text[id] = spelling
		if t.spec.Decoder.Type == decodeTokens {
			t.text[id] = t.spec.Decoder.tokenText(spelling)
		} else if raw, ok := alpha.bytes(spelling); ok && t.kinds[id] == merged {
			t.text[id] = raw
		}
	}
}

// fillCuts makes the cutters. A token that is sought in the normalized text is normalized itself, as if it were one. Of
// two that look alike then the control token counts.
func (t *Tokenizer) fillCuts() {
	var passes [2][]special
	for _, k := range []kind{control, added} {
		for _, sp := range t.specials {
			if sp.kind != k || sp.flags.uncut {
				continue
			}
			pass := 0
			if sp.flags.normalized || sp.flags.frozen {
				pass = 1
			}
			passes[pass] = append(passes[pass], sp)
		}
	}
	t.cuts[0] = newCutter(passes[0], func(sp special) string { return sp.text })
	t.cuts[1] = newCutter(passes[1], func(sp special) string {
		if sp.flags.frozen {
			return sp.text
		}
		return t.spec.normalize(sp.text, true)
	})
}

// fillModel makes the tables of the model.
func (t *Tokenizer) fillModel(src source, ids map[string]uint32, alpha *alphabet) error {
	at := position{file: src.name}
	t.model = model{bytes: t.spec.byteLevel(), fallback: t.spec.Model.ByteFallback, unk: noToken}
	if t.spec.Model.Unknown != nil {
		t.model.unk = *t.spec.Model.Unknown
	}
	for b, r := range alpha.char {
		spelling := string(r)
		if !t.model.bytes {
			spelling = fmt.Sprintf("<0x%02X>", b)
		}
		id, ok := ids[spelling]
		switch {
		case ok:
			t.base[b] = id
		case t.model.bytes:
			return at.unsupported("no token for the byte 0x%02X, spelled %q: this is no byte-level vocabulary, as GPT-2 and OPT have it", b, spelling)
		case t.model.fallback:
			return at.unsupported("byte_fallback, but no token %q", spelling)
		}
	}
	if t.spec.Model.Type == modelUnigram {
		return t.fillScores(src)
	}
	if !t.model.bytes && !t.model.fallback && t.spec.Model.Unknown == nil {
		return at.unsupported("no byte_fallback and no unknown token: characters outside the vocabulary would vanish")
	}
	if t.spec.Model.IgnoreMerges {
		t.model.whole = make(map[string]uint32, len(src.vocab))
	}
	t.model.chars = make(map[rune]uint32)
	for _, e := range src.vocab {
		if r, width := utf8.DecodeRuneInString(e.text); width == len(e.text) {
			t.model.chars[r] = e.id
		}
		if t.model.whole == nil {
			continue
		}
		if raw, ok := alpha.bytes(e.text); ok && t.model.bytes {
			t.model.whole[raw] = e.id
		} else if !t.model.bytes {
			t.model.whole[e.text] = e.id
		}
	}
	_, t.model.marked = t.model.chars['▁']
	t.model.marked = t.model.marked && !t.model.bytes && t.model.whole == nil
	return t.fillPairs(src, ids, alpha)
}

// fillScores makes the tables of a Unigram model.
func (t *Tokenizer) fillScores(src source) error {
	t.scores = make([]float64, len(t.vocab))
	for id := range t.scores {
		t.scores[id] = math.NaN()
	}
	for i, e := range src.vocab {
		s := src.scores[i]
		if len(e.text) > maxPiece && !math.IsNaN(s) {
			return e.pos.unsupported("token %.40q… of %d bytes; supported: up to %d", e.text, len(e.text), maxPiece)
		}
		if math.IsInf(s, 0) {
			return e.pos.malformed("token %q has the score %v", e.text, s)
		}
		t.scores[e.id] = s
	}
	t.uni = newUnigram(t.vocab, t.scores)
	return nil
}

// fillPairs turns the merges into the table of pairs.
func (t *Tokenizer) fillPairs(src source, ids map[string]uint32, alpha *alphabet) error {
	if len(src.merges) == 0 {
		return position{file: src.name}.malformed("no merges: every text would fall into single bytes; get merges.txt of this model")
	}
	t.pairs = make(map[pair]product, len(src.merges))
	rank := 0
	for i, m := range src.merges {
		if !m.tied {
			rank = i
		}
		var p [3]uint32
		for k, text := range [3]string{m.left, m.right, m.left + m.right} {
			id, ok := ids[text]
			if !ok {
				return m.pos.malformed("merge of %q and %q: %q is not in the vocabulary", m.left, m.right, text)
			}
			if _, ok := alpha.bytes(text); !ok && t.model.bytes {
				return m.pos.malformed("merge of %q and %q: %q does not spell bytes", m.left, m.right, text)
			}
			p[k] = id
		}
		key := pair{p[0], p[1]}
		if first, twice := t.pairs[key]; twice {
			return m.pos.malformed("merge of %q and %q occurs twice, first at %v", m.left, m.right, src.merges[first.rank].pos)
		}
		t.pairs[key] = product{uint32(rank), p[2]}
		t.order = append(t.order, pair{p[0], p[1]})
		if within := strings.TrimLeft(m.left+m.right, spaceMark); strings.Contains(within, spaceMark) {
			t.model.marked = false
		}
		if m.tied {
			t.ties = append(t.ties, uint32(i))
		}
	}
	return nil
}

// alphabet is GPT-2's way to spell any byte as a printable character: printable Latin-1 characters stand for
// themselves, the other 68 bytes for U+0100 and on, in the order of the bytes. A space is "Ġ", a newline "Ċ".
type alphabet struct {
	char  [256]rune
	value map[rune]byte
}

func newAlphabet() *alphabet {
	a := &alphabet{value: make(map[rune]byte, 256)}
	next := rune(0x100)
	for b := range 256 {
		r := rune(b)
		if printable := '!' <= r && r <= '~' || 0xA1 <= r && r <= 0xAC || 0xAE <= r && r <= 0xFF; !printable {
			r = next
			next++
		}
		a.char[b] = r
		a.value[r] = byte(b)
	}
	return a
}

// bytes returns the bytes that a token spells, and false when it is no spelling of bytes.
func (a *alphabet) bytes(spelling string) (string, bool) {
	var out strings.Builder
	for _, r := range spelling {
		b, ok := a.value[r]
		if !ok {
			return "", false
		}
		out.WriteByte(b)
	}
	return out.String(), true
}
