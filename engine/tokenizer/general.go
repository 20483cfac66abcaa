package tokenizer

import (
	"bytes"
	"encoding/json"
	"math"
)

// The form of a tokenizer that is more than GPT-2's.
const (
	generalFormat  = "windrow tokenizer"
	generalVersion = "1"
)

// generalDocument holds any tokenizer of this package. The order of the fields is part of the form.
type generalDocument struct {
	Format   string          `json:"format"`
	Version  json.RawMessage `json:"version"`
	Pipeline pipeline        `json:"pipeline"`
	BOS      *uint32         `json:"bos"`
	EOS      *uint32         `json:"eos"`
	Pad      *uint32         `json:"pad"`
	Prefix   []uint32        `json:"prefix"`   // what Encode puts before a text
	Suffix   []uint32        `json:"suffix"`   // and after it
	Specials []generalToken  `json:"specials"` // by id
	Vocab    []string        `json:"vocab"`    // by id
	Merges   []uint32        `json:"merges"`   // left, right, left, right, …, by rank
	Ties     []uint32        `json:"ties"`     // the merges, by position from 0, that rank with the one before
	Scores   []*float64      `json:"scores"`   // by id, null for a token that is never chosen; empty unless the model is Unigram
}

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

// general returns the document of t.
func (t *Tokenizer) general() generalDocument {
	doc := generalDocument{
		Format: generalFormat, Version: json.RawMessage(generalVersion), Pipeline: t.spec,
		BOS: t.roles.bos, EOS: t.roles.eos, Pad: t.roles.pad,
		Prefix: append([]uint32{}, t.roles.prefix...), Suffix: append([]uint32{}, t.roles.suffix...),
		Specials: []generalToken{}, Vocab: t.vocab, Merges: []uint32{}, Ties: append([]uint32{}, t.ties...), Scores: make([]*float64, len(t.scores)),
	}
	doc.Pipeline.Normalizer = append([]normalStep{}, t.spec.Normalizer...)
	doc.Pipeline.PreTokenizer = append([]preStep{}, t.spec.PreTokenizer...)
	doc.Pipeline.Decoder.Replace = append([]respelling{}, t.spec.Decoder.Replace...)
	for _, sp := range t.specials {
		f := sp.flags
		doc.Specials = append(doc.Specials, generalToken{sp.id, sp.kind == control, f.lstrip, f.rstrip, f.singleWord, f.normalized, f.uncut, f.frozen, f.outside})
	}
	for _, p := range t.order {
		doc.Merges = append(doc.Merges, p.left, p.right)
	}
	for id, s := range t.scores {
		if !math.IsNaN(s) {
			doc.Scores[id] = &t.scores[id]
		}
	}
	return doc
}

// parseGeneral reads the members of a generalDocument.
func parseGeneral(members []value) (*Tokenizer, error) {
	src := source{name: documentName}
	var specials []generalToken
	var vocab []entry
	var merges, ties []uint32
	var scores []*float64
	err := readFields(members, map[string]func(value) error{
		"format":   func(value) error { return nil },
		"version":  func(m value) error { return m.expectRaw(generalVersion) },
		"pipeline": func(m value) error { return m.strict(&src.spec) },
		"bos":      func(m value) error { return m.setID(&src.roles.bos) },
		"eos":      func(m value) error { return m.setID(&src.roles.eos) },
		"pad":      func(m value) error { return m.setID(&src.roles.pad) },
		"prefix":   func(m value) error { return m.strict(&src.roles.prefix) },
		"suffix":   func(m value) error { return m.strict(&src.roles.suffix) },
		"specials": func(m value) error { return m.strict(&specials) },
		"vocab":    func(m value) (err error) { vocab, err = readVocabList(m); return },
		"merges":   func(m value) error { return m.strict(&merges) },
		"ties":     func(m value) error { return m.strict(&ties) },
		"scores":   func(m value) error { return m.strict(&scores) },
	})
	if err != nil {
		return nil, err
	}
	if err := src.splitVocab(vocab, specials); err != nil {
		return nil, err
	}
	if err := src.joinMerges(vocab, merges, ties); err != nil {
		return nil, err
	}
	if err := src.joinScores(scores, len(vocab)); err != nil {
		return nil, err
	}
	return build(src)
}

// splitVocab tells the tokens of the model from those beside it.
func (src *source) splitVocab(vocab []entry, specials []generalToken) error {
	outside := make(map[uint32]bool)
	for i, s := range specials {
		at := position{documentName, "specials", i}
		if int64(s.ID) >= int64(len(vocab)) {
			return at.malformed("special token %d is outside the vocabulary of %d", s.ID, len(vocab))
		}
		if i > 0 && s.ID <= specials[i-1].ID {
			return at.malformed("token %d does not follow %d: the list must be by id", s.ID, specials[i-1].ID)
		}
		e := entry{text: vocab[s.ID].text, id: s.ID, kind: added, flagged: true, pos: at}
		e.flags = flags{s.LStrip, s.RStrip, s.SingleWord, s.Normalized, s.Uncut, s.Frozen, s.Outside}
		if s.Control {
			e.kind = control
		}
		outside[s.ID] = s.Outside
		src.extra = append(src.extra, e)
	}
	for _, e := range vocab {
		if !outside[e.id] {
			src.vocab = append(src.vocab, e)
		}
	}
	return nil
}

// joinMerges turns the ids of the merges into their texts.
func (src *source) joinMerges(vocab []entry, merges, ties []uint32) error {
	if len(merges)%2 != 0 {
		return position{file: documentName}.malformed("merges: %d ids, which are no pairs", len(merges))
	}
	for i := 0; i < len(merges); i += 2 {
		at := position{documentName, "merges", i}
		left, right := merges[i], merges[i+1]
		if int64(max(left, right)) >= int64(len(vocab)) {
			return at.malformed("token %d is outside the vocabulary of %d", max(left, right), len(vocab))
		}
		src.merges = append(src.merges, rule{left: vocab[left].text, right: vocab[right].text, pos: at})
	}
	for i, rank := range ties {
		if rank == 0 || int64(rank) >= int64(len(src.merges)) || i > 0 && rank <= ties[i-1] {
			return position{documentName, "ties", i}.malformed("merge %d is out of place", rank)
		}
		src.merges[rank].tied = true
	}
	return nil
}

// joinScores puts the scores beside the tokens of the model.
func (src *source) joinScores(scores []*float64, size int) error {
	want := 0
	if src.spec.Model.Type == modelUnigram {
		want = size
	}
	if len(scores) != want {
		return position{file: documentName}.malformed("scores: %d for %d tokens", len(scores), want)
	}
	for _, e := range src.vocab {
		if want == 0 {
			break
		}
		s := math.NaN()
		if scores[e.id] != nil {
			s = *scores[e.id]
		}
		src.scores = append(src.scores, s)
	}
	return nil
}

// strict reads a value whose fields are all known.
func (m value) strict(into any) error {
	dec := json.NewDecoder(bytes.NewReader(m.raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return m.pos.malformed("%s: %v", m.name, err)
	}
	return nil
}
