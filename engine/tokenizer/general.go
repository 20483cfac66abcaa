package tokenizer

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
)

// The form of a tokenizer that is more than GPT-2's.
const (
	generalFormat  = "windrow tokenizer"
	generalVersion = "1"
)

// generalToken is a special token with its flags.
type generalToken struct {
	ID         uint32 `json:"id"`
	Control    bool   `json:"control,omitempty"`
	LStrip     bool   `json:"lstrip,omitempty"`
	RStrip     bool   `json:"rstrip,omitempty"`
	SingleWord bool   `json:"single_word,omitempty"`
	Normalized bool   `json:"normalized,omitempty"`
	Uncut      bool   `json:"uncut,omitempty"`
	Frozen     bool   `json:"frozen,omitempty"`
	Outside    bool   `json:"outside,omitempty"`
}

// writeGeneral writes the form that has a place for everything. The order of the members is part of
// the form.
func (t *Tokenizer) writeGeneral(w *documentWriter) {
	spec := t.spec // its lists must not be null
	spec.Normalizer = append([]normalStep{}, spec.Normalizer...)
	spec.PreTokenizer = append([]preStep{}, spec.PreTokenizer...)
	spec.Decoder.Replace = append([]respelling{}, spec.Decoder.Replace...)
	w.open("{")
	w.value("format", generalFormat)
	w.member("version")
	w.raw(generalVersion)
	w.value("pipeline", spec)
	if t.spec.table != nil { // not there without, so that old documents keep their hash
		w.member("charsmap")
		w.base64(t.spec.table.raw)
	}
	w.value("bos", t.roles.bos)
	w.value("eos", t.roles.eos)
	w.value("pad", t.roles.pad)
	w.numbers("prefix", t.roles.prefix) // the ids that Encode puts before a text
	w.numbers("suffix", t.roles.suffix) // and after it
	w.member("specials")                // by id
	w.open("[")
	var token generalToken
	for _, sp := range t.specials {
		f := sp.flags
		token = generalToken{
			sp.id, sp.kind == control, f.has(lstrip), f.has(rstrip), f.has(singleWord),
			f.has(normalized), f.has(uncut), f.has(frozen), f.has(outside),
		}
		w.element()
		w.encode(&token)
	}
	w.end("]")
	w.tokens(t.lex) // by id
	var pairs []pair
	if t.merges != nil {
		pairs = t.merges.pairs
	}
	w.member("merges") // left, right, left, right, …, by rank
	w.open("[")
	for _, p := range pairs {
		w.number(p.left)
		w.number(p.right)
	}
	w.end("]")
	w.member("ties") // the places, from 0, of merges with the rank of the previous one
	w.open("[")
	for i := range pairs {
		if t.merges.tied(i) {
			w.number(uint32(i))
		}
	}
	w.end("]")
	size := 0
	if t.uni != nil {
		size = t.lex.size()
	}
	w.scores("scores", t.scores, size) // by id; empty unless the model is Unigram
	w.end("}")
}

// parseGeneral reads the members of the general form.
func parseGeneral(members []value) (*Tokenizer, error) {
	src := source{name: documentName}
	var ids, ties []uint32
	fields := map[string]func(value) error{
		"format":   func(value) error { return nil },
		"version":  func(m value) error { return m.expectRaw(generalVersion) },
		"pipeline": func(m value) error { return m.strict(&src.spec) },
		"charsmap": src.spec.readTable,
		"bos":      func(m value) error { return m.setID(&src.roles.bos) },
		"eos":      func(m value) error { return m.setID(&src.roles.eos) },
		"pad":      func(m value) error { return m.setID(&src.roles.pad) },
		"prefix":   func(m value) error { return m.strict(&src.roles.prefix) },
		"suffix":   func(m value) error { return m.strict(&src.roles.suffix) },
		"specials": func(m value) (err error) {
			src.extra, err = readList(m,
				value.special)
			return
		},
		"vocab":  func(m value) (err error) { src.vocab, err = readVocabList(m); return },
		"merges": func(m value) (err error) { ids, err = readList(m, value.id); return },
		"ties":   func(m value) (err error) { ties, err = readList(m, value.id); return },
		"scores": func(m value) (err error) {
			src.scores, err = readList(m,
				value.optionalScore)
			return
		},
	}
	if _, there := find(members, "charsmap"); !there {
		delete(fields, "charsmap")
	}
	if err := readFields(members, fields); err != nil {
		return nil, err
	}
	var err error
	for i := range src.extra {
		e := &src.extra[i]
		if int64(e.id) >= int64(src.vocab.len()) {
			return nil, e.pos.malformed("special token %d is outside the vocabulary of %d", e.id,
				src.vocab.len())
		}
		if i > 0 && e.id <= src.extra[i-1].id {
			return nil, e.pos.malformed("token %d does not follow %d: the list must be by id", e.id,
				src.extra[i-1].id)
		}
		e.text = src.vocab.at(int(e.id))
	}
	if src.merges, err = joinMerges(src.vocab, ids, ties); err != nil {
		return nil, err
	}
	want := 0
	if src.spec.Model.Type == modelUnigram {
		want = src.vocab.len()
	}
	if len(src.scores) != want {
		return nil, inFile(documentName).malformed("scores: %d for %d tokens", len(src.scores),
			want)
	}
	return build(src)
}

// readList reads a list whose elements are read one by one.
func readList[T any](m value, read func(value) (T, error)) ([]T, error) {
	n, err := m.count()
	if err != nil {
		return nil, err
	}
	out := make([]T, 0, n)
	err = m.eachElement(m.name, func(el value) error {
		v, err := read(el)
		out = append(out, v)
		return err
	})
	return out, err
}

// optionalScore reads a number, null for none.
func (m value) optionalScore() (float64, error) {
	if m.null() {
		return math.NaN(), nil
	}
	s, err := strconv.ParseFloat(string(m.raw), 64)
	if err != nil {
		return 0, m.isNot("a score")
	}
	return s, nil
}

// special reads a special token, without its text.
func (m value) special() (entry, error) {
	var s generalToken
	if err := m.strict(&s); err != nil {
		return entry{}, err
	}
	e := entry{id: s.ID, kind: added, flagged: true, pos: m.pos}
	e.flags = e.flags.with(lstrip, s.LStrip).with(rstrip, s.RStrip).with(singleWord,
		s.SingleWord).with(normalized, s.Normalized).
		with(uncut, s.Uncut).with(frozen, s.Frozen).with(outside, s.Outside)
	if s.Control {
		e.kind = control
	}
	return e, nil
}

// joinMerges turns the ids of the merges into their texts.
func joinMerges(v vocabulary, ids, ties []uint32) (ruleList, error) {
	at := inList(documentName, "merges")
	list := ruleList{count: fixed(len(ids) / 2), pos: func(i int) position {
		return at.entry(2 * i)
	}}
	if len(ids)%2 != 0 {
		return list, inFile(documentName).malformed("merges: %d ids, which are no pairs", len(ids))
	}
	for i, id := range ids {
		if int64(id) >= int64(v.len()) {
			return list, list.pos(i/2).malformed("token %d is outside the vocabulary of %d", id,
				v.len())
		}
	}
	for i, place := range ties {
		if place == 0 || int64(place) >= int64(len(ids)/2) || i > 0 && place <= ties[i-1] {
			return list, inList(documentName, "ties").entry(i).malformed("merge %d is out of place",
				place)
		}
	}
	list.each = func(_ *lexicon, use func(left, right []byte, tied bool) error) error {
		var left, right []byte
		next := 0 // of ties
		for i := range len(ids) / 2 {
			tied := next < len(ties) && ties[next] == uint32(i)
			if tied {
				next++
			}
			left = append(left[:0], v.at(int(ids[2*i]))...)
			right = append(right[:0], v.at(int(ids[2*i+1]))...)
			if err := use(left, right, tied); err != nil {
				return err
			}
		}
		return nil
	}
	return list, nil
}

// strict reads a small value, all fields of which are known.
func (m value) strict(into any) error {
	if len(m.raw) > maxStrict {
		return m.pos.unsupported("%s of %d bytes; supported: up to %d", m.name, len(m.raw),
			maxStrict)
	}
	dec := json.NewDecoder(bytes.NewReader(m.raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return m.pos.malformed("%s: %v", m.name, err)
	}
	return nil
}

// maxStrict is the size of the largest value that is read at once; a pipeline has a few hundred
// bytes.
const maxStrict = 16 << 10
