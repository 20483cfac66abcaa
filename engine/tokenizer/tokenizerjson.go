package tokenizer

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// readTokenizerJSON reads the one-file form of the tokenizers library. Merges come as "a b" or, since tokenizers 0.20, as
// ["a", "b"].
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
	if len(src.vocab) == 0 {
		return position{file: jsonForm}.malformed("no vocabulary")
	}
	set.prefixSpace = src.spec.prefixSpace()
	return readDecoder(decoder, &src.spec)
}

// prefixSpace reports whether the pipeline puts a blank first; nil when it has no step that could.
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

// template is what a post-processor puts around a text.
type template struct {
	prefix, suffix []string
	ids            map[string][]uint32 // what the file says the tokens are; a token may stand for several
	pos            position
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
			err = c.fields(map[string]func(value) error{"add_prefix_space": expect("true", "false"), "use_regex": expect("true", "false"), "trim_offsets": expect("true", "false")})
		case "TemplateProcessing":
			if t != nil {
				return nil, c.pos.unsupported("post_processor with two templates")
			}
			t = &template{ids: make(map[string][]uint32), pos: c.pos}
			err = c.fields(map[string]func(value) error{
				"single": t.readSingle, "special_tokens": t.readTokens, "pair": func(value) error { return nil },
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

// readSingle reads what stands around one text.
func (t *template) readSingle(m value) error {
	list, err := m.array("")
	if err != nil {
		return err
	}
	text := false
	for _, el := range list {
		var part map[string]struct{ ID string }
		if err := json.Unmarshal(el.raw, &part); err != nil {
			return m.pos.malformed("single is no template: %v", err)
		}
		token, special := part["SpecialToken"]
		switch {
		case special && !text:
			t.prefix = append(t.prefix, token.ID)
		case special:
			t.suffix = append(t.suffix, token.ID)
		case text || part["Sequence"].ID != "A":
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

// readTokens reads the ids of the tokens of a template.
func (t *template) readTokens(m value) error {
	members, err := m.object()
	if err != nil {
		return err
	}
	for _, el := range members {
		var tok struct{ IDs []uint32 }
		if err := json.Unmarshal(el.raw, &tok); err != nil || len(tok.IDs) > maxSteps {
			return el.pos.malformed("special_tokens: %q has no list of ids, or a long one", el.name)
		}
		t.ids[el.name] = tok.IDs
	}
	return nil
}

// resolve returns the ids of the tokens of a template.
func (t *template) resolve(names []string, ids map[string]uint32) ([]uint32, error) {
	var out []uint32
	for _, name := range names {
		if list, ok := t.ids[name]; ok {
			out = append(out, list...)
			continue
		}
		id, ok := ids[name]
		if !ok {
			return nil, t.pos.malformed("the template names %q, which is no token", name)
		}
		out = append(out, id)
	}
	return out, nil
}

func readAddedTokens(m value, set *settings) error {
	list, err := m.array("added_tokens")
	if err != nil {
		return err
	}
	for _, el := range list {
		tok, err := el.addedToken()
		if err != nil {
			return err
		}
		set.added = append(set.added, tok)
	}
	return nil
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
	for _, e := range src.vocab {
		if e.text == text {
			spec.Unknown = &e.id
		}
	}
	if spec.Unknown == nil && !src.spec.byteLevel() && !spec.ByteFallback {
		return unknown.pos.malformed("unk_token %q is not in the vocabulary", text)
	}
	return nil
}

// readUnigram reads a list of tokens with scores. An unknown character is worse than the worst of them.
func readUnigram(c component, src *source) error {
	spec := &src.spec.Model
	spec.Type = modelUnigram
	spec.FuseUnknown = true
	err := c.fields(map[string]func(value) error{
		"unk_id":        func(m value) error { return m.setID(&spec.Unknown) },
		"byte_fallback": intoFlag(&spec.ByteFallback),
		"vocab": func(m value) error {
			return m.eachElement("vocab", func(el value) error {
				e, score, err := el.scored()
				e.id = uint32(len(src.vocab))
				src.vocab, src.scores = append(src.vocab, e), append(src.scores, score)
				return err
			})
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

// scored reads ["token", score].
func (m value) scored() (entry, float64, error) {
	e := entry{pos: m.pos}
	var pair []json.RawMessage
	if err := json.Unmarshal(m.raw, &pair); err != nil || len(pair) != 2 {
		return e, 0, m.pos.malformed("%.60s is no token with its score", m.raw)
	}
	var err error
	if e.text, err = (value{name: "token", raw: pair[0], pos: m.pos}).text(); err != nil {
		return e, 0, err
	}
	score, err := value{name: "score", raw: pair[1], pos: m.pos}.score()
	return e, score, err
}

// score reads a number as serde_json does, which the reference uses: the digits as an integer, then one multiplication or
// division by a power of ten. The result can be off by the last bit, which decides between paths that are equally good
// but for rounding. Digits that do not fit into 64 bits are dropped.
func (m value) score() (float64, error) {
	var exact float64
	if err := m.scalar(&exact, "a score"); err != nil {
		return 0, err
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
func readMergeList(m value) ([]rule, error) {
	var out []rule
	err := m.eachElement("merges", func(el value) error {
		if el.raw[0] != '[' {
			text, err := el.text()
			if err != nil {
				return err
			}
			r, err := splitMerge(text, el.pos)
			out = append(out, r)
			return err
		}
		var p []string
		if err := json.Unmarshal(el.raw, &p); err != nil || len(p) != 2 {
			return el.pos.malformed("%.60s is not a pair of tokens", el.raw)
		}
		out = append(out, rule{left: p[0], right: p[1], pos: el.pos})
		return nil
	})
	return out, err
}
