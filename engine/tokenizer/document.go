package tokenizer

// The document that MarshalText writes. A change that older programs would misread needs a new
// version.
const (
	documentName    = "tokenizer document"
	documentFormat  = "windrow byte-level bpe"
	documentVersion = "1"
)

// plain reports whether the first form of the document has a place for everything that the
// tokenizer does: GPT-2's pipeline, special tokens without flags, and nothing but BOS around a
// text.
func (t *Tokenizer) plain() bool {
	p := t.spec.PreTokenizer
	if len(t.spec.Normalizer) > 0 || len(p) != 1 || p[0].Type != preBytes || !p[0].Regex ||
		t.spec.Model != (modelSpec{Type: modelBPE}) {
		return false
	}
	if len(t.roles.suffix) > 0 || len(t.roles.prefix) > 1 || len(t.roles.prefix) == 1 &&
		!t.AddsBOS() {
		return false
	}
	for _, sp := range t.specials {
		if sp.flags&^(normalized|outside) != 0 {
			return false
		}
	}
	return !t.overlap()
}

// writePlain writes the first form. The order of the members is part of the form, because the hash
// is.
func (t *Tokenizer) writePlain(w *documentWriter) {
	w.open("{")
	w.value("format", documentFormat)
	w.member("version")
	w.raw(documentVersion)
	w.value("add_bos", t.AddsBOS())
	w.value("add_prefix_space", t.spec.PreTokenizer[0].PrefixSpace)
	w.value("bos", t.roles.bos)
	w.value("eos", t.roles.eos)
	w.value("pad", t.roles.pad)
	for _, list := range []struct {
		name string
		kind kind
	}{{"control", control}, {"added", added}} {
		// cut out of the text; control is also left out by DecodeText
		w.member(list.name)
		w.open("[")
		for _, sp := range t.specials {
			if sp.kind == list.kind {
				w.number(sp.id)
			}
		}
		w.end("]")
	}
	w.tokens(t.lex) // by id
	w.member("merges")
	w.open("[")
	for _, p := range t.merges.pairs { // by rank
		w.quoted(t.lex.text(p.left), " ", t.lex.text(p.right))
	}
	w.end("]")
	w.end("}")
}

// Parse reads the output of MarshalText, with the checks of Load. An error is ErrFormat, or
// ErrUnsupported for a later version.
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
	var addBOS, prefixSpace bool
	err = readFields(members, map[string]func(value) error{
		"format": func(m value) error {
			return m.expectRaw(`"`+documentFormat+`"`,
				`"`+generalFormat+`"`)
		},
		"version":          func(m value) error { return m.expectRaw(documentVersion) },
		"add_bos":          func(m value) (err error) { addBOS, err = m.flag(); return },
		"add_prefix_space": func(m value) (err error) { prefixSpace, err = m.flag(); return },
		"bos":              func(m value) error { return m.setID(&src.roles.bos) },
		"eos":              func(m value) error { return m.setID(&src.roles.eos) },
		"pad":              func(m value) error { return m.setID(&src.roles.pad) },
		"control":          func(m value) error { return m.appendSpecials(&src.extra, control) },
		"added":            func(m value) error { return m.appendSpecials(&src.extra, added) },
		"vocab":            func(m value) (err error) { src.vocab, err = readVocabList(m); return },
		"merges": func(m value) (err error) {
			src.merges,
				err = readMergeList(m)
			return
		},
	})
	if err != nil {
		return nil, err
	}
	src.spec = plainPipeline(prefixSpace)
	if err := src.roles.putBOSFirst(addBOS, documentName); err != nil {
		return nil, err
	}
	for i := range src.extra {
		e := &src.extra[i]
		if int64(e.id) >= int64(src.vocab.len()) {
			return nil, e.pos.malformed("special token %d is outside the vocabulary of %d", e.id,
				src.vocab.len())
		}
		e.text = src.vocab.at(int(e.id))
	}
	return build(src)
}

// readFields reads each member with its function. All must exist, and no others.
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
		return inFile(documentName).malformed("%d of %d fields; it was cut or written by "+
			"another program", len(members), len(read))
	}
	return nil
}

// putBOSFirst makes BOS the prefix.
func (r *roles) putBOSFirst(yes bool, file string) error {
	switch {
	case !yes:
		return nil
	case r.bos == nil:
		return inFile(file).malformed("add_bos_token is true, but there is no bos_token; name " +
			"it in tokenizer_config.json")
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
	seen := make(map[uint32]bool)
	return m.eachElement(m.name, func(el value) error {
		id, err := el.id()
		if err != nil {
			return err
		}
		if seen[id] {
			return el.pos.malformed("token %d is named twice", id)
		}
		seen[id] = true
		// this form has one pass: no flags
		*into = append(*into, entry{id: id, kind: k, flagged: true, pos: el.pos})
		return nil
	})
}

// readVocabList reads ["token", …], by id.
func readVocabList(m value) (vocabulary, error) {
	count, length := 0, 0
	err := m.eachElement(m.name, func(el value) error {
		count++
		length += len(el.raw)
		return nil
	})
	if err != nil {
		return vocabulary{}, err
	}
	list, scratch := newTextsBuilder(count, length), []byte(nil)
	err = m.eachElement(m.name, func(el value) error {
		var err error
		scratch, err = el.appendText(scratch[:0])
		list.add(scratch)
		return err
	})
	return vocabulary{texts: list.texts(), pos: m.pos.list(m.name).entry}, err
}
