package tokenizer

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// source is what the files say, before it is checked: Load and Parse fill it, build makes a Tokenizer of it.
type source struct {
	name   string // of the folder or document, for errors that have no better place
	vocab  []entry
	merges []rule
	extra  []entry // special tokens; those outside vocab extend it
	roles  roles
}

// entry is a token with its id.
type entry struct {
	text string
	id   uint32
	kind kind
	pos  position
}

// rule is one line of merges.txt: left and right become left+right.
type rule struct {
	left, right string
	pos         position
}

// build checks a source and makes the tables. The ids must be 0 … n-1, because they are the rows of the embedding.
func build(src source) (*Tokenizer, error) {
	t := &Tokenizer{roles: src.roles}
	ids := make(map[string]uint32, len(src.vocab))
	if err := t.fillVocab(src, ids); err != nil {
		return nil, err
	}
	alpha := newAlphabet()
	for id, spelling := range t.vocab {
		if raw, ok := alpha.bytes(spelling); ok && t.kinds[id] == merged {
			t.text[id] = raw
		} else {
			t.text[id] = spelling
		}
	}
	for b, r := range alpha.char {
		id, ok := ids[string(r)]
		if !ok {
			return nil, position{file: src.name}.unsupported("no token for the byte 0x%02X, spelled %q: this is no byte-level vocabulary; use a GPT-2 or OPT tokenizer", b, string(r))
		}
		t.base[b] = id
	}
	if err := t.fillPairs(src, ids, alpha); err != nil {
		return nil, err
	}
	for _, id := range []*uint32{t.roles.bos, t.roles.eos, t.roles.pad} {
		if id != nil && int(*id) >= len(t.vocab) {
			return nil, position{file: src.name}.malformed("special token %d is outside the vocabulary of %d", *id, len(t.vocab))
		}
	}
	if t.roles.addBOS && t.roles.bos == nil {
		return nil, position{file: src.name}.malformed("add_bos_token is true, but there is no bos_token; name it in tokenizer_config.json")
	}
	doc, err := t.MarshalText()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(doc)
	t.sha256 = hex.EncodeToString(sum[:])
	return t, nil
}

// fillVocab puts every token at its id and the special tokens into the list that Encode searches.
func (t *Tokenizer) fillVocab(src source, ids map[string]uint32) error {
	all := slices.Clone(src.vocab)
	for _, e := range src.vocab {
		if other, twice := ids[e.text]; twice {
			return e.pos.malformed("token %q has the ids %d and %d", e.text, other, e.id)
		}
		ids[e.text] = e.id
	}
	for _, e := range src.extra {
		id, known := ids[e.text]
		if known && id != e.id {
			return e.pos.malformed("special token %q has the ids %d and %d", e.text, id, e.id)
		}
		if !known {
			ids[e.text] = e.id
			all = append(all, e)
		}
	}
	t.vocab = make([]string, len(all))
	t.text = make([]string, len(all))
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
	for _, e := range src.extra {
		t.kinds[e.id] = max(t.kinds[e.id], e.kind)
	}
	for id, k := range t.kinds {
		if k != merged {
			sp := special{uint32(id), t.vocab[id], k}
			t.specials = append(t.specials, sp)
			t.starts[sp.text[0]] = append(t.starts[sp.text[0]], sp)
		}
	}
	for _, list := range t.starts {
		slices.SortFunc(list, func(a, b special) int { return cmp.Compare(len(b.text), len(a.text)) })
	}
	return nil
}

// fillPairs turns the merges into the table of pairs.
func (t *Tokenizer) fillPairs(src source, ids map[string]uint32, alpha *alphabet) error {
	if len(src.merges) == 0 {
		return position{file: src.name}.malformed("no merges: every text would fall into single bytes; get merges.txt of this model")
	}
	t.pairs = make(map[pair]product, len(src.merges))
	for rank, m := range src.merges {
		var p [3]uint32
		for i, text := range [3]string{m.left, m.right, m.left + m.right} {
			id, ok := ids[text]
			if !ok {
				return m.pos.malformed("merge of %q and %q: %q is not in the vocabulary", m.left, m.right, text)
			}
			if _, ok := alpha.bytes(text); !ok {
				return m.pos.malformed("merge of %q and %q: %q does not spell bytes", m.left, m.right, text)
			}
			p[i] = id
		}
		key := pair{p[0], p[1]}
		if first, twice := t.pairs[key]; twice {
			return m.pos.malformed("merge of %q and %q occurs twice, first at %v", m.left, m.right, src.merges[first.rank].pos)
		}
		t.pairs[key] = product{uint32(rank), p[2]}
		t.merges = append(t.merges, m.left+" "+m.right)
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
