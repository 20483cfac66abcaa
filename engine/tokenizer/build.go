package tokenizer

import (
	"bytes"
	"fmt"
	"math"
	"unicode/utf8"
)

// noToken is an id that no token has.
const noToken = ^uint32(0)

// source holds the content of the files before the checks: Load and Parse fill it, build makes a
// Tokenizer of it.
type source struct {
	name   string // of the folder or document, for errors that have no better place
	spec   pipeline
	vocab  vocabulary
	lex    *lexicon  // of vocab and extra; nil: not yet made
	scores []float64 // of vocab, for a Unigram model; not a number for a token that is never chosen
	merges ruleList
	extra  []entry // special tokens; those outside vocab extend it
	roles  roles
}

// entry is a special token with its id.
type entry struct {
	text    string
	pos     position
	id      uint32
	kind    kind
	flags   flags
	flagged bool // the file has the flags; otherwise they are the defaults of the kind
}

// ruleList is the list of merges of a file: left and right become left+right. It is all nil without
// merges.
type ruleList struct {
	count func(*lexicon) int
	// each calls use for every merge, in the order of rank. Left and right are valid until it
	// returns. A tied merge has the rank of the previous one: the leftmost pair merges first.
	each func(lex *lexicon, use func(left, right []byte, tied bool) error) error
	pos  func(int) position // of a merge, for errors
}

// fixed returns a function with a known count.
func fixed(n int) func(*lexicon) int { return func(*lexicon) int { return n } }

// lexicon returns the tokens, checked.
func (src *source) lexicon() (*lexicon, error) {
	if src.lex != nil {
		return src.lex, nil
	}
	var err error
	src.lex, err = newLexicon(src.vocab, src.extra)
	return src.lex, err
}

// build checks a source and makes the tables. The ids must be 0 … n-1, because they are the rows of
// the embedding.
func build(src source) (*Tokenizer, error) {
	at := inFile(src.name)
	if err := src.spec.check(at); err != nil {
		return nil, err
	}
	lex, err := src.lexicon()
	if err != nil {
		return nil, err
	}
	if src.spec.byteLevel() && lex.spellsAllBytes() { // nothing is unknown
		src.spec.Model.Unknown = nil
	}
	t := &Tokenizer{spec: src.spec, roles: src.roles, lex: lex}
	t.fillSpecials(src.extra)
	if err := t.fillModel(src); err != nil {
		return nil, err
	}
	for _, list := range [][]uint32{optionalList(t.roles.bos), optionalList(t.roles.eos),
		optionalList(t.roles.pad), optionalList(t.spec.Model.Unknown), t.roles.prefix,
		t.roles.suffix} {
		for _, id := range list {
			if int64(id) >= int64(lex.size()) {
				return nil, at.malformed("special token %d is outside the vocabulary of %d", id,
					lex.size())
			}
		}
	}
	if err := t.fillCuts(at); err != nil {
		return nil, err
	}
	t.sha256 = t.hash()
	return t, nil
}

// spellsAllBytes reports whether every byte of a byte-level vocabulary has a token.
func (l *lexicon) spellsAllBytes() bool {
	for b := range 256 {
		if _, ok := l.find(string(byteRune(byte(b)))); !ok {
			return false
		}
	}
	return true
}

func optionalList(id *uint32) []uint32 {
	if id == nil {
		return nil
	}
	return []uint32{*id}
}

// fillSpecials makes the list of special tokens. If two files flag one token, the later file wins.
func (t *Tokenizer) fillSpecials(extra []entry) {
	t.kinds = make([]kind, t.lex.size())
	count := 0
	for i := range extra {
		k := &t.kinds[extra[i].id]
		if *k == merged {
			count++
		}
		*k = max(*k, extra[i].kind)
	}
	t.specials = make([]special, 0, count)
	for id, k := range t.kinds {
		if k != merged {
			t.specials = append(t.specials, special{id: uint32(id), kind: k,
				flags: flags(0).with(normalized, k == added).with(outside,
					t.lex.outside(uint32(id)))})
		}
	}
	for i := range extra {
		if sp := t.special(extra[i].id); extra[i].flagged {
			sp.flags = extra[i].flags | sp.flags&outside
		}
	}
	if t.plain() {
		for i := range t.specials {
			t.specials[i].flags = 0
		}
	}
}

// special returns the special token of an id, or nil.
func (t *Tokenizer) special(id uint32) *special { return findSpecial(t.specials, id) }

// fillCuts makes the cutters. A token that is searched for in the normalized text is itself
// normalized, like a whole text. If two are then equal, the control token wins.
func (t *Tokenizer) fillCuts(at position) error {
	var passes [2][]uint32
	for _, k := range []kind{control, added} {
		for i := range t.specials {
			sp := &t.specials[i]
			if sp.kind != k || sp.flags.has(uncut) {
				continue
			}
			pass := 0
			if sp.flags.has(normalized | frozen) {
				pass = 1
			}
			if passes[pass] == nil {
				passes[pass] = make([]uint32, 0, len(t.specials))
			}
			passes[pass] = append(passes[pass], sp.id)
		}
	}
	t.cuts[0] = &cutter{patterns: newPrefixes(t.lex, passes[0]), specials: t.specials}
	t.cuts[1] = &cutter{specials: t.specials}
	if len(t.spec.Normalizer) == 0 {
		t.cuts[1].patterns = newPrefixes(t.lex, passes[1])
		return nil
	}
	patterns, err := t.normalized(passes[1], at)
	if err != nil {
		return err
	}
	keys := make([]uint32, 0, len(passes[1]))
	for i := range passes[1] {
		if patterns.at(i) != "" {
			keys = append(keys, uint32(i))
		}
	}
	t.cuts[1].ids = passes[1]
	t.cuts[1].patterns = newPrefixes(&lexicon{main: patterns}, keys)
	return nil
}

// normalized returns the patterns of special tokens that are sought in the normalized text.
func (t *Tokenizer) normalized(ids []uint32, at position) (texts, error) {
	var n normalizing
	each := func(use func(pattern []byte)) {
		for _, id := range ids {
			if text := t.lex.text(id); t.special(id).flags.has(frozen) {
				use([]byte(text))
			} else {
				use(n.normalize(&t.spec, text, true))
			}
		}
	}
	given, length := 0, 0
	for _, id := range ids {
		given += len(t.lex.text(id))
	}
	each(func(pattern []byte) { length += len(pattern) })
	// a mark in front of each text and one for each of its spaces take less
	if limit := 4*given + 64<<10; length > limit {
		return texts{}, at.unsupported("the normalizer makes %d bytes of the %d special tokens' "+
			"%d; supported: up to %d", length, len(ids), given, limit)
	}
	out := newTextsBuilder(len(ids), length)
	each(out.add)
	return out.texts(), nil
}

// fillModel makes the tables of the model.
func (t *Tokenizer) fillModel(src source) error {
	at := inFile(src.name)
	t.model = model{bytes: t.spec.byteLevel(), fallback: t.spec.Model.ByteFallback, unk: noToken}
	if t.spec.Model.Unknown != nil {
		t.model.unk = *t.spec.Model.Unknown
	}
	for b := range t.base {
		spelling := string(byteRune(byte(b)))
		if !t.model.bytes {
			spelling = fmt.Sprintf("<0x%02X>", b)
		}
		id, ok := t.lex.find(spelling)
		switch {
		case ok:
			t.base[b] = id
		case t.model.bytes && (' ' <= b && b < utf8.RuneSelf-1 || b == '\n'):
			return at.unsupported("no token for the byte 0x%02X, spelled %q: this is no "+
				"byte-level vocabulary, as GPT-2 and OPT have it", b, spelling)
		case t.model.bytes && t.spec.Model.Unknown != nil:
			return at.unsupported("no token for the byte 0x%02X, spelled %q, but unk_token: "+
				"supported: one of them", b, spelling)
		case t.model.bytes: // bytes that the training never saw vanish, as in the reference
			t.base[b] = noToken
		case t.model.fallback:
			return at.unsupported("byte_fallback, but no token %q", spelling)
		}
	}
	if t.spec.Model.Type == modelUnigram {
		return t.fillScores(src)
	}
	if !t.model.bytes && !t.model.fallback && t.spec.Model.Unknown == nil {
		return at.unsupported("no byte_fallback and no unknown token: characters outside the " +
			"vocabulary would vanish")
	}
	_, t.model.marked = t.wordToken(spaceMark)
	t.model.marked = t.model.marked && !t.model.bytes && !t.spec.Model.IgnoreMerges
	return t.fillMerges(src.merges, at)
}

// fillScores makes the tables of a Unigram model.
func (t *Tokenizer) fillScores(src source) error {
	for i, s := range src.scores {
		text := src.vocab.at(i)
		if len(text) > maxPiece && !math.IsNaN(s) {
			return src.vocab.pos(i).unsupported("token %.40q… of %d bytes; supported: up to %d",
				text, len(text), maxPiece)
		}
		if math.IsInf(s, 0) {
			return src.vocab.pos(i).malformed("token %q has the score %v", text, s)
		}
	}
	t.scores = src.scores
	if t.lex.ids != nil {
		t.scores = make([]float64, len(src.scores))
		for i, s := range src.scores {
			t.scores[t.lex.ids[i]] = s
		}
	}
	t.uni = newUnigram(t.lex, t.scores)
	return nil
}

// fillMerges turns the merges into the table of pairs.
func (t *Tokenizer) fillMerges(list ruleList, at position) error {
	count := 0
	if list.count != nil {
		count = list.count(t.lex)
	}
	if count == 0 {
		return at.malformed("no merges: every text would fall into single bytes; get merges.txt " +
			"of this model")
	}
	t.merges = newMerges(count)
	var joined []byte
	return list.each(t.lex, func(left, right []byte, tied bool) error {
		i := len(t.merges.pairs)
		joined = append(append(joined[:0], left...), right...)
		var p [3]uint32
		for k, text := range [3][]byte{left, right, joined} {
			id, ok := t.lex.findBytes(text)
			if !ok {
				return list.pos(i).malformed("merge of %q and %q: %q is not in the vocabulary",
					left, right, text)
			}
			if t.model.bytes && !spellsBytes(text) {
				return list.pos(i).malformed("merge of %q and %q: %q does not spell bytes", left,
					right, text)
			}
			p[k] = id
		}
		if first, twice := t.merges.add(pair{p[0], p[1]}, p[2], tied); twice {
			return list.pos(i).malformed("merge of %q and %q occurs twice, first at %v", left,
				right, list.pos(first))
		}
		for bytes.HasPrefix(joined, []byte(spaceMark)) {
			joined = joined[len(spaceMark):]
		}
		if bytes.Contains(joined, []byte(spaceMark)) {
			t.model.marked = false
		}
		return nil
	})
}
