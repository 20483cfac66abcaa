package tokenizer

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"
)

// maxNesting is the depth of Sequences inside Sequences; real files have one level.
const maxNesting = 4

// component is one part of tokenizer.json, {"type": kind, …}, taken out of its Sequences.
type component struct {
	value
	kind    string
	members []value
}

// flatten returns the components of m: none for null, the elements of a Sequence in their order,
// which has the name list.
func (m value) flatten(list string, depth int) ([]component, error) {
	if m.null() {
		return nil, nil
	}
	members, err := m.object()
	if err != nil {
		return nil, err
	}
	kind, ok := find(members, "type")
	if !ok {
		return nil, m.pos.malformed("%s has no type", m.name)
	}
	name, err := kind.text()
	if err != nil {
		return nil, err
	}
	if name != "Sequence" {
		return []component{{m, name, members}}, nil
	}
	if depth == maxNesting {
		return nil, m.pos.unsupported("%s: more than %d Sequences in each other", m.name,
			maxNesting)
	}
	var out []component
	for _, f := range members {
		if f.name == "type" {
			continue
		}
		if f.name != list {
			return nil, f.pos.unsupported("%s: unknown setting %q of a Sequence", m.name, f.name)
		}
		elements, err := f.array("")
		if err != nil {
			return nil, err
		}
		for _, el := range elements {
			el.name = m.name
			inner, err := el.flatten(list, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, inner...)
		}
	}
	return out, nil
}

// fields reads every setting of a component; a setting outside read is refused.
func (c component) fields(read map[string]func(value) error) error {
	for _, f := range c.members {
		if f.name == "type" {
			continue
		}
		set, ok := read[f.name]
		if !ok {
			return f.pos.unsupported("%s %s: unknown setting %q", c.name, c.kind, f.name)
		}
		if err := set(f); err != nil {
			return err
		}
	}
	return nil
}

// refuse names a component that this package does not have.
func (c component) refuse(supported ...string) error {
	return c.pos.unsupported("%s is of type %.40q; supported: %v", c.name, c.kind, append(supported,
		"Sequence"))
}

// intoText and intoFlag return functions for fields.
func intoText(into *string) func(value) error {
	return func(m value) (err error) { *into, err = m.text(); return }
}

func intoFlag(into *bool) func(value) error {
	return func(m value) (err error) { *into, err = m.flag(); return }
}

// expect returns a function for fields that refuses every other value.
func expect(allowed ...string) func(value) error {
	return func(m value) error { return m.expectRaw(allowed...) }
}

// pattern returns a function that reads {"String": …} or {"Regex": …}.
func pattern(text, regex *string) func(value) error {
	return func(m value) error {
		members, err := m.object()
		if err != nil {
			return err
		}
		for _, f := range members {
			switch f.name {
			case "String":
				*text, err = f.text()
			case "Regex":
				*regex, err = f.text()
			default:
				err = f.pos.malformed("pattern with the unknown kind %q", f.name)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

func readNormalizer(m value, spec *pipeline) error {
	list, err := m.flatten("normalizers", 0)
	if err != nil {
		return err
	}
	for _, c := range list {
		var s normalStep
		switch c.kind {
		case "Prepend":
			s.Type = normalPrepend
			err = c.fields(map[string]func(value) error{"prepend": intoText(&s.Text)})
		case "Replace":
			var regex string
			s.Type = normalReplace
			err = c.fields(map[string]func(value) error{"pattern": pattern(&s.Text, &regex),
				"content": intoText(&s.With)})
			switch {
			case err != nil || regex == "":
			case regex == twoSpaces && s.Text == "":
				s.Type = normalSpaces
			default:
				err = c.pos.unsupported("normalizer Replace with the pattern %.200q, which has "+
					"no scanner here; supported: a plain text, %q", regex, twoSpaces)
			}
		case "Strip":
			s.Type = normalStrip
			err = c.fields(map[string]func(value) error{"strip_left": intoFlag(&s.Left),
				"strip_right": intoFlag(&s.Right)})
		case "Precompiled":
			s.Type = normalTable
			err = c.fields(map[string]func(value) error{"precompiled_charsmap": spec.readTable})
			if err == nil && spec.table == nil {
				continue // null: nothing is replaced
			}
		case "NFC", "NFD", "NFKC", "NFKD":
			s.Type = strings.ToLower(c.kind)
			err = c.fields(nil)
		default:
			err = c.refuse("NFC", "NFD", "NFKC", "NFKD", "Precompiled", "Prepend", "Replace",
				"Strip")
		}
		if err != nil {
			return err
		}
		spec.Normalizer = append(spec.Normalizer, s)
	}
	return nil
}

// twoSpaces is the one pattern of a normalizer with a scanner.
const twoSpaces = " {2,}"

// readTable reads precompiled_charsmap: base64 of SentencePiece's table.
func (p *pipeline) readTable(m value) error {
	if m.null() {
		return nil
	}
	if p.table != nil {
		return m.pos.unsupported("a second %s; supported: one", m.name)
	}
	if m.raw[0] != '"' {
		return m.isNot("a text")
	}
	// the alphabet of base64 is never escaped, but "/" may be
	coded := m.raw[1 : len(m.raw)-1]
	if bytes.IndexByte(coded, '\\') >= 0 {
		coded = bytes.ReplaceAll(coded, []byte(`\/`), []byte("/"))
	}
	raw := make([]byte, base64.StdEncoding.DecodedLen(len(coded)))
	n, err := base64.StdEncoding.Strict().Decode(raw, coded)
	if err != nil {
		return m.pos.malformed("%s is not base64: %v", m.name, err)
	}
	p.table, err = readCharsmap(raw[:n], m.pos)
	return err
}

func readPreTokenizer(m value, spec *pipeline) error {
	list, err := m.flatten("pretokenizers", 0)
	if err != nil {
		return err
	}
	for _, c := range list {
		s, err := c.preStep()
		if err != nil {
			return err
		}
		spec.PreTokenizer = append(spec.PreTokenizer, s)
	}
	return nil
}

// preStep reads one component of the pre-tokenizer. Absent settings have the library's default.
func (c component) preStep() (preStep, error) {
	var s preStep
	var err error
	switch c.kind {
	case "ByteLevel":
		s = preStep{Type: preBytes, Regex: true}
		err = c.fields(map[string]func(value) error{"add_prefix_space": intoFlag(&s.PrefixSpace),
			"use_regex": intoFlag(&s.Regex), "trim_offsets": expect("true", "false")})
	case "Split":
		s.Type = preSplit
		var text, behavior string
		var invert bool
		err = c.fields(map[string]func(value) error{"pattern": pattern(&text, &s.Pattern),
			"behavior": intoText(&behavior), "invert": intoFlag(&invert)})
		if err == nil && text != "" && s.Pattern == "" && behavior == "MergedWithPrevious" &&
			!invert {
			return preStep{Type: preSplitAfter, Text: text}, nil
		}
		// the text between matches is then empty, so removing it changes nothing
		covers := scanners[s.Pattern].covers
		if same := behavior == "Isolated" && !invert || behavior == "Removed" && invert &&
			covers; err == nil && !same {
			err = c.pos.unsupported("pre_tokenizer Split with the behavior %.40q and invert %v; "+
				"supported: Isolated and false", behavior, invert)
		}
		if err == nil && text != "" {
			err = c.pos.unsupported("pre_tokenizer Split at the text %.60q with the behavior "+
				"%.40q; supported: MergedWithPrevious, or a known Regex", text, behavior)
		}
	case "Digits":
		s.Type = preDigits
		err = c.fields(map[string]func(value) error{"individual_digits": intoFlag(&s.Each)})
	case "Punctuation":
		s = preStep{Type: prePunctuation, Each: true}
		err = c.fields(map[string]func(value) error{"behavior": func(m value) error {
			s.Each = string(m.raw) == `"Isolated"`
			return m.expectRaw(`"Isolated"`, `"Contiguous"`)
		}})
	case "Metaspace":
		return c.metaspace()
	default:
		err = c.refuse("ByteLevel", "Split", "Digits", "Punctuation", "Metaspace")
	}
	return s, err
}

// metaspace reads a Metaspace of the pre-tokenizer or decoder, also in its form before tokenizers
// 0.15.
func (c component) metaspace() (preStep, error) {
	s := preStep{Type: preSpaces, Replacement: spaceMark, Prefix: prefixAlways, Cut: true}
	prefix, again := true, ""
	err := c.fields(map[string]func(value) error{
		"replacement": intoText(&s.Replacement), "prepend_scheme": intoText(&s.Prefix),
		"split":            intoFlag(&s.Cut),
		"add_prefix_space": intoFlag(&prefix), "str_rep": intoText(&again),
	})
	if err == nil && !prefix && s.Prefix != prefixNever {
		err = c.pos.malformed("%s Metaspace: add_prefix_space is false, but prepend_scheme is %q",
			c.name, s.Prefix)
	}
	if err == nil && again != "" && again != s.Replacement {
		err = c.pos.malformed("%s Metaspace: str_rep is %.20q, but replacement is %.20q", c.name,
			again, s.Replacement)
	}
	return s, err
}

// readDecoder reads ByteLevel, Metaspace, or the decoder of Llama's files: replacements,
// ByteFallback, Fuse and Strip.
func readDecoder(m value, spec *pipeline) error {
	list, err := m.flatten("decoders", 0)
	if err != nil {
		return err
	}
	supported := []string{"ByteLevel", "Metaspace", "Replace", "ByteFallback", "Fuse", "Strip"}
	if len(list) == 0 {
		return m.pos.unsupported("decoder is null, which puts a space between all tokens; "+
			"supported: %v", supported)
	}
	d := &spec.Decoder
	d.Type = decodeTokens
	var before []string
	for _, c := range list {
		if after := followers()[c.kind]; after == nil || slices.ContainsFunc(before,
			func(kind string) bool { return !slices.Contains(after, kind) }) {
			return c.pos.unsupported("decoder of type %.40q after %q; supported: %v, in this order",
				c.kind, before, supported)
		}
		if err := c.decode(d); err != nil {
			return err
		}
		before = append(before, c.kind)
	}
	if d.Strip > 0 && !slices.Contains(before, "Fuse") {
		return m.pos.unsupported("decoder Strip of every token; supported: after Fuse")
	}
	return nil
}

// followers lists the kinds that may precede each kind of decoder.
func followers() map[string][]string {
	return map[string][]string{
		"ByteLevel":    {},
		"Metaspace":    {},
		"Replace":      {"Replace"},
		"ByteFallback": {"Replace", "Metaspace"},
		"Fuse":         {"Replace", "Metaspace", "ByteFallback"},
		"Strip":        {"Replace", "Metaspace", "ByteFallback", "Fuse"},
	}
}

// decode reads one component of the decoder.
func (c component) decode(d *decoderSpec) error {
	var err error
	switch c.kind {
	case "ByteLevel":
		d.Type = decodeBytes
		return c.fields(map[string]func(value) error{"add_prefix_space": expect("true", "false"),
			"use_regex": expect("true", "false"), "trim_offsets": expect("true", "false")})
	case "Metaspace":
		s, err := c.metaspace()
		if err != nil {
			return err
		}
		d.Replace = append(d.Replace, respelling{s.Replacement, " "})
		if s.Prefix != prefixNever {
			d.First = s.Replacement
		}
		return nil
	case "Replace":
		var r respelling
		var regex string
		err = c.fields(map[string]func(value) error{"pattern": pattern(&r.Old, &regex),
			"content": intoText(&r.New)})
		if err == nil && regex != "" {
			err = c.pos.unsupported("decoder Replace with the pattern %.200q; supported: a "+
				"plain text", regex)
		}
		d.Replace = append(d.Replace, r)
	case "ByteFallback":
		d.Bytes = bytesByRun
		err = c.fields(nil)
	case "Fuse":
		err = c.fields(nil)
	case "Strip":
		var n uint32
		err = c.fields(map[string]func(value) error{
			"content": expect(`" "`), "stop": expect("0"), "start": func(m value) (err error) {
				n,
					err = m.id()
				return
			},
		})
		d.Strip = int(min(n, maxStep+1))
	}
	return err
}
