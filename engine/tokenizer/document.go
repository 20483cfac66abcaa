package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// The document that MarshalText writes. A change that older programs would misread needs a new version.
const (
	documentName    = "tokenizer document"
	documentFormat  = "windrow byte-level bpe"
	documentVersion = "1"
)

// document is the form of a tokenizer in JSON. The order of the fields is part of the form, because the hash is.
type document struct {
	Format      string          `json:"format"`
	Version     json.RawMessage `json:"version"`
	AddBOS      bool            `json:"add_bos"`
	PrefixSpace bool            `json:"add_prefix_space"`
	BOS         *uint32         `json:"bos"`
	EOS         *uint32         `json:"eos"`
	Pad         *uint32         `json:"pad"`
	Control     []uint32        `json:"control"` // cut out of the text, left out by DecodeText
	Added       []uint32        `json:"added"`   // cut out of the text
	Vocab       []string        `json:"vocab"`   // by id
	Merges      []string        `json:"merges"`  // "left right", by rank
}

// plain reports whether the document has a place for everything that the tokenizer does: GPT-2's pipeline, special
// tokens without flags, and nothing but BOS around a text. Everything else is a generalDocument.
func (t *Tokenizer) plain() bool {
	p := t.spec.PreTokenizer
	if len(t.spec.Normalizer) > 0 || len(p) != 1 || p[0].Type != preBytes || !p[0].Regex || t.spec.Model != (modelSpec{Type: modelBPE}) {
		return false
	}
	if len(t.roles.suffix) > 0 || len(t.roles.prefix) > 1 || len(t.roles.prefix) == 1 && !t.AddsBOS() {
		return false
	}
	for _, sp := range t.specials {
		f := sp.flags
		f.normalized, f.outside = false, false
		if f != (flags{}) {
			return false
		}
	}
	return !overlap(t.specials)
}

// MarshalText returns the tokenizer as one line of JSON that depends on nothing but what the tokenizer does. Parse reads
// it. The error is always nil; it is there for encoding.TextMarshaler.
func (t *Tokenizer) MarshalText() ([]byte, error) {
	if !t.plain() {
		return marshalLine(t.general())
	}
	doc := document{
		Format: documentFormat, Version: json.RawMessage(documentVersion),
		AddBOS: t.AddsBOS(), PrefixSpace: t.spec.PreTokenizer[0].PrefixSpace,
		BOS: t.roles.bos, EOS: t.roles.eos, Pad: t.roles.pad,
		Control: []uint32{}, Added: []uint32{}, Vocab: t.vocab, Merges: make([]string, len(t.order)),
	}
	for rank, p := range t.order {
		doc.Merges[rank] = t.vocab[p.left] + " " + t.vocab[p.right]
	}
	for _, sp := range t.specials {
		if sp.kind == control {
			doc.Control = append(doc.Control, sp.id)
		} else {
			doc.Added = append(doc.Added, sp.id)
		}
	}
	return marshalLine(doc)
}

func marshalLine(doc any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(doc); err != nil {
		return nil, fmt.Errorf("tokenizer: %s: %w", documentName, err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// Parse reads what MarshalText wrote, with the checks of Load. An error is ErrFormat, or ErrUnsupported for a later
// version.
func Parse(data []byte) (*Tokenizer, error) {
	file, err := jsonFile(documentName, data)
	if err != nil {
		return nil, err
	}
	members, err := file.object()
	if err != nil {
		return nil, err
	}
	if format, ok := find(members, "format"); ok && string(format.raw) == `"`+generalFormat+`"` {
		return parseGeneral(members)
	}
	src := source{name: documentName}
	var specials []entry
	var addBOS, prefixSpace bool
	err = readFields(members, map[string]func(value) error{
		"format":           func(m value) error { return m.expectRaw(`"`+documentFormat+`"`, `"`+generalFormat+`"`) },
		"version":          func(m value) error { return m.expectRaw(documentVersion) },
		"add_bos":          func(m value) (err error) { addBOS, err = m.flag(); return },
		"add_prefix_space": func(m value) (err error) { prefixSpace, err = m.flag(); return },
		"bos":              func(m value) error { return m.setID(&src.roles.bos) },
		"eos":              func(m value) error { return m.setID(&src.roles.eos) },
		"pad":              func(m value) error { return m.setID(&src.roles.pad) },
		"control":          func(m value) error { return m.appendSpecials(&specials, control) },
		"added":            func(m value) error { return m.appendSpecials(&specials, added) },
		"vocab":            func(m value) (err error) { src.vocab, err = readVocabList(m); return },
		"merges":           func(m value) (err error) { src.merges, err = readMergeList(m); return },
	})
	if err != nil {
		return nil, err
	}
	src.spec = plainPipeline(prefixSpace)
	if err := src.roles.putBOSFirst(addBOS, documentName); err != nil {
		return nil, err
	}
	for _, e := range specials {
		if int64(e.id) >= int64(len(src.vocab)) {
			return nil, e.pos.malformed("special token %d is outside the vocabulary of %d", e.id, len(src.vocab))
		}
		e.text = src.vocab[e.id].text
		src.extra = append(src.extra, e)
	}
	return build(src)
}

// readFields reads each member with its function. All must be there, and no others.
func readFields(members []value, read map[string]func(value) error) error {
	for _, m := range members {
		f, ok := read[m.name]
		if !ok {
			return m.pos.malformed("unknown field %q", m.name)
		}
		if err := f(m); err != nil {
			return err
		}
	}
	if len(members) != len(read) {
		return position{file: documentName}.malformed("%d of %d fields; it was cut or written by another program", len(members), len(read))
	}
	return nil
}

// putBOSFirst makes BOS the prefix.
func (r *roles) putBOSFirst(yes bool, file string) error {
	switch {
	case !yes:
		return nil
	case r.bos == nil:
		return position{file: file}.malformed("add_bos_token is true, but there is no bos_token; name it in tokenizer_config.json")
	}
	r.prefix = []uint32{*r.bos}
	return nil
}

// setID stores an id; null means that there is none.
func (m value) setID(into **uint32) error {
	if m.null() {
		return nil
	}
	id, err := m.id()
	*into = &id
	return err
}

// appendSpecials reads a list of ids without repetitions.
func (m value) appendSpecials(into *[]entry, k kind) error {
	list, err := m.array(m.name)
	if err != nil {
		return err
	}
	seen := make(map[uint32]bool, len(list))
	for _, el := range list {
		id, err := el.id()
		if err != nil {
			return err
		}
		if seen[id] {
			return el.pos.malformed("token %d is named twice", id)
		}
		seen[id] = true
		*into = append(*into, entry{id: id, kind: k, flagged: true, pos: el.pos}) // this form has one pass: no flags
	}
	return nil
}

// readVocabList reads ["token", …], by id.
func readVocabList(m value) ([]entry, error) {
	var out []entry
	err := m.eachElement(m.name, func(el value) error {
		text, err := el.text()
		out = append(out, entry{text: text, id: uint32(len(out)), pos: el.pos})
		return err
	})
	return out, err
}
