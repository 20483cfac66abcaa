package tokenizer

import (
	"math"
	"strconv"
	"strings"
)

// readTokenizerJSON reads the one-file form of the tokenizers library. Merges are "a b" or, since
// tokenizers 0.20, ["a", "b"].
func readTokenizerJSON(src *source, set *settings, data []byte) error {
	file, err := jsonFile(jsonForm, data)
	if err != nil {
		return err
	}
	members, err := file.object()
	if err != nil {
		return err
	}
	decoder := value{name: "decoder", raw: []byte("null"), pos: file.pos}
	for _, m := range members {
		switch m.name {
		case "version", "padding": // padding concerns batches
		case "truncation":
			err = m.expectRaw("null")
		case "normalizer":
			err = readNormalizer(m, &src.spec)
		case "pre_tokenizer":
			err = readPreTokenizer(m, &src.spec)
		case "post_processor":
			set.template, err = readPostProcessor(m)
		case "decoder":
			decoder = m
		case "added_tokens":
			err = readAddedTokens(m, set)
		case "model":
			err = readModel(m, src)
		default:
			err = m.pos.unsupported("unknown part %q, which may change the ids", m.name)
		}
		if err != nil {
			return err
		}
	}
	if src.vocab.len() == 0 {
		return inFile(jsonForm).malformed("no vocabulary")
	}
	set.prefixSpace = src.spec.prefixSpace()
	return readDecoder(decoder, &src.spec)
}

// prefixSpace reports whether the pipeline puts a blank first; nil without a step that could.
func (p *pipeline) prefixSpace() *bool {
	for _, s := range p.PreTokenizer {
		switch s.Type {
		case preBytes:
			return &s.PrefixSpace
		case preSpaces:
			yes := s.Prefix != prefixNever
			return &yes
		}
	}
	for _, s := range p.Normalizer {
		if s.Type == normalPrepend {
			yes := true
			return &yes
		}
	}
	return nil
}

// template holds the tokens that a post-processor puts around a text.
type template struct {
	prefix, suffix []string
	// the ids of the template's tokens; a token may stand for several
	ids map[string][]uint32
	pos position
}

// readPostProcessor reads a template. ByteLevel moves offsets and leaves the ids alone.
func readPostProcessor(m value) (*template, error) {
	list, err := m.flatten("processors", 0)
	if err != nil {
		return nil, err
	}
	var t *template
	for _, c := range list {
		switch c.kind {
		case "ByteLevel":
			err = c.fields(map[string]func(value) error{"add_prefix_space": expect("true", "false"),
				"use_regex": expect("true", "false"), "trim_offsets": expect("true", "false")})
		case "TemplateProcessing":
			if t != nil {
				return nil, c.pos.unsupported("post_processor with two templates")
			}
			t = &template{ids: make(map[string][]uint32), pos: c.pos}
			err = c.fields(map[string]func(value) error{
				"single": t.readSingle, "special_tokens": t.readTokens, "pair": func(value) error {
					return nil
				},
			})
		default:
			err = c.refuse("ByteLevel", "TemplateProcessing")
		}
		if err != nil {
			return nil, err
		}
	}
	return t, nil
}

// readSingle reads the template for one text.
func (t *template) readSingle(m value) error {
	list, err := m.array("")
	if err != nil {
		return err
	}
	text := false
	for _, el := range list {
		kind, id, err := el.templatePart()
		switch {
		case err != nil:
			return err
		case kind == "SpecialToken" && !text:
			t.prefix = append(t.prefix, id)
		case kind == "SpecialToken":
			t.suffix = append(t.suffix, id)
		case text || kind != "Sequence" || id != "A":
			return m.pos.unsupported("a template other than tokens, the text, tokens")
		default:
			text = true
		}
	}
	if !text {
		return m.pos.malformed("the template has no place for the text")
	}
	return nil
}

// templatePart reads {kind: {"id": …, "type_id": …}}.
func (m value) templatePart() (kind, id string, err error) {
	parts, err := m.object()
	if err != nil {
		return "", "", err
	}
	if len(parts) != 1 {
		return "", "", m.pos.malformed("single is no template: %.60s has %d kinds", m.raw,
			len(parts))
	}
	members, err := parts[0].object()
	if err != nil {
		return "", "", err
	}
	named, ok := find(members, "id")
	if !ok {
		return "", "", m.pos.malformed("single is no template: %.60s has no id", m.raw)
	}
	id, err = named.text()
	return parts[0].name, id, err
}

// readTokens reads the ids of the tokens of a template.
func (t *template) readTokens(m value) error {
	members, err := m.object()
	if err != nil {
		return err
	}
	for _, el := range members {
		about, err := el.object()
		if err != nil {
			return err
		}
		list, ok := find(about, "ids")
		if !ok {
			return el.pos.malformed("special_tokens: %q has no list of ids", el.name)
		}
		ids, err := list.array("")
		if err != nil {
			return err
		}
		t.ids[el.name] = make([]uint32, len(ids))
		for i, id := range ids {
			if t.ids[el.name][i], err = id.id(); err != nil {
				return err
			}
		}
	}
	return nil
}

// resolve returns the ids of the tokens of a template.
func (t *template) resolve(names []string, lex *lexicon) ([]uint32, error) {
	var out []uint32
	for _, name := range names {
		if list, ok := t.ids[name]; ok {
			out = append(out, list...)
			continue
		}
		id, ok := lex.find(name)
		if !ok {
			return nil, t.pos.malformed("the template names %q, which is no token", name)
		}
		out = append(out, id)
	}
	return out, nil
}

// readAddedTokens reads the list of added tokens, which have flags and ids.
func readAddedTokens(m value, set *settings) error {
	n, err := m.count()
	if err != nil {
		return err
	}
	set.added = make([]entry, 0, n+len(tokenRoles())) // room for the roles
	return m.eachElement("added_tokens", func(el value) error {
		tok, err := el.addedToken()
		switch {
		case err != nil:
			return err
		case !tok.numbered:
			return el.pos.malformed("added token %q has no id", tok.text)
		}
		set.added = append(set.added, tok.entry)
		return nil
	})
}

func readModel(m value, src *source) error {
	list, err := m.flatten("", maxNesting)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return m.pos.malformed("model is null")
	}
	switch c := list[0]; c.kind {
	case "BPE":
		return readBPE(c, src)
	case "Unigram":
		return readUnigram(c, src)
	default:
		return m.pos.unsupported("model is of type %.40q; supported: BPE, Unigram", c.kind)
	}
}

func readBPE(c component, src *source) error {
	spec := &src.spec.Model
	spec.Type = modelBPE
	var unknown value
	err := c.fields(map[string]func(value) error{
		"unk_token": func(m value) error { unknown = m; return nil },
		"dropout":   expect("null", "0.0"),

		"continuing_subword_prefix": expect("null", `""`),
		"end_of_word_suffix":        expect("null", `""`),

		"fuse_unk":      intoFlag(&spec.FuseUnknown),
		"byte_fallback": intoFlag(&spec.ByteFallback),
		"ignore_merges": intoFlag(&spec.IgnoreMerges),
		"vocab":         func(m value) (err error) { src.vocab, err = readVocab(m); return },
		"merges":        func(m value) (err error) { src.merges, err = readMergeList(m); return },
	})
	if err != nil || unknown.raw == nil || unknown.null() {
		return err
	}
	text, err := unknown.text()
	if err != nil {
		return err
	}
	for i := range src.vocab.len() {
		if src.vocab.at(i) == text {
			id := uint32(i)
			if src.vocab.ids != nil {
				id = src.vocab.ids[i]
			}
			spec.Unknown = &id
		}
	}
	if spec.Unknown == nil && !src.spec.byteLevel() && !spec.ByteFallback {
		return unknown.pos.malformed("unk_token %q is not in the vocabulary", text)
	}
	return nil
}

// readUnigram reads a list of tokens with scores. An unknown character is worse than the worst of
// them.
func readUnigram(c component, src *source) error {
	spec := &src.spec.Model
	spec.Type = modelUnigram
	spec.FuseUnknown = true
	err := c.fields(map[string]func(value) error{
		"unk_id":        func(m value) error { return m.setID(&spec.Unknown) },
		"byte_fallback": intoFlag(&spec.ByteFallback),
		"vocab": func(m value) (err error) {
			src.vocab, src.scores,
				err = readScored(m)
			return
		},
	})
	least := math.Inf(1)
	for _, s := range src.scores {
		least = min(least, s)
	}
	if len(src.scores) > 0 {
		spec.UnknownScore = least - unknownPenalty
	}
	return err
}

// readScored reads a list of ["token", score], by id.
func readScored(m value) (vocabulary, []float64, error) {
	count, length := 0, 0
	err := m.eachElement("vocab", func(el value) error {
		token, _, err := el.pair("token with its score")
		count++
		length += len(token.raw)
		return err
	})
	if err != nil {
		return vocabulary{}, nil, err
	}
	list, scratch := newTextsBuilder(count, length), []byte(nil)
	scores := make([]float64, 0, count)
	err = m.eachElement("vocab", func(el value) error {
		token, number, err := el.pair("token with its score")
		if err != nil {
			return err
		}
		if scratch, err = token.appendText(scratch[:0]); err != nil {
			return err
		}
		list.add(scratch)
		score, err := number.score()
		scores = append(scores, score)
		return err
	})
	return vocabulary{texts: list.texts(), pos: m.pos.list("vocab").entry}, scores, err
}

// pair reads a list of two values.
func (m value) pair(what string) (first, second value, err error) {
	n := 0
	err = m.walk('[', func(_, raw []byte, _ position) error {
		if n == 0 {
			first = value{name: "token", raw: raw, pos: m.pos}
		} else {
			second = value{name: "score", raw: raw, pos: m.pos}
		}
		n++
		return nil
	})
	if err == nil && n != 2 {
		err = m.pos.malformed("%.60s is no %s", m.raw, what)
	}
	return first, second, err
}

// score reads a number as the reference's serde_json does: the digits as an integer, then one
// multiplication or division by a power of ten. The result can be off by the last bit, which
// decides between paths that differ by rounding only. Digits that do not fit into 64 bits are
// dropped.
func (m value) score() (float64, error) {
	if _, err := strconv.ParseFloat(string(m.raw), 64); err != nil {
		return 0, m.isNot("a score")
	}
	mantissa, tail, _ := strings.Cut(strings.ToLower(string(m.raw)), "e")
	exponent := 0
	if tail != "" {
		n, err := strconv.Atoi(tail)
		if err != nil || n < -400 || n > 400 {
			return 0, m.pos.malformed("score %.40s is out of range", m.raw)
		}
		exponent = n
	}
	digits, fraction, full := uint64(0), false, false
	for _, c := range strings.TrimPrefix(mantissa, "-") {
		if c == '.' {
			fraction = true
			continue
		}
		d := uint64(c - '0')
		full = full || digits > (math.MaxUint64-d)/10
		switch {
		case !full:
			digits = digits*10 + d
			if fraction {
				exponent--
			}
		case !fraction:
			exponent++
		}
	}
	f := float64(digits)
	for ; exponent < -308; exponent += 308 {
		f /= 1e308
	}
	if exponent < 0 {
		f /= math.Pow10(-exponent)
	} else {
		f *= math.Pow10(exponent)
	}
	if mantissa[0] == '-' {
		f = -f
	}
	return f, nil
}

// readMergeList reads a list of merges in either spelling.
func readMergeList(m value) (ruleList, error) {
	n, err := m.count()
	if err != nil {
		return ruleList{}, err
	}
	list := ruleList{count: fixed(n), pos: m.pos.list("merges").entry}
	list.each = func(_ *lexicon, use func(left, right []byte, tied bool) error) error {
		var left, right []byte
		return m.eachElement("merges", func(el value) error {
			if el.raw[0] != '[' {
				var err error
				if left, err = el.appendText(left[:0]); err != nil {
					return err
				}
				before, after, err := splitMerge(left, el.pos)
				if err != nil {
					return err
				}
				return use(before, after, false)
			}
			first, second, err := el.pair("pair of tokens")
			if err != nil {
				return err
			}
			if left, err = first.appendText(left[:0]); err != nil {
				return err
			}
			if right, err = second.appendText(right[:0]); err != nil {
				return err
			}
			return use(left, right, false)
		})
	}
	return list, nil
}
