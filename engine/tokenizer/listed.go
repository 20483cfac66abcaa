package tokenizer

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Listed is the tokenizer of a GGUF file, in llama.cpp's terms (docs/gguf.md, src/llama-vocab.cpp).
type Listed struct {
	File   string   // for errors
	Model  string   // ListedBytes or ListedPieces
	Pre    string   // ListedBytes: how a text is cut into words
	Tokens []string // by id
	Types  []int32  // of the tokens, in the numbers of SentencePiece; nil where all are normal
	Merges []string // ListedBytes: "left right", best first
	Scores []float32
	// The ids of special tokens, −1 where there is none.
	BOS, EOS, Unknown, Padding int64
	// The file's settings; nil if absent, for llama.cpp's default.
	AddBOS, AddEOS, SpacePrefix *bool
}

// The kinds of Listed.Model.
const (
	ListedBytes  = "gpt2"  // byte-level BPE
	ListedPieces = "llama" // SentencePiece's BPE
)

// listedCut is the meaning of a pre-tokenizer's name.
type listedCut struct {
	steps  []preStep // before the bytes
	regex  bool      // GPT-2's pattern cuts as well
	nfc    bool      // the original normalizes; llama.cpp does not
	whole  bool      // a word that is a token becomes that token
	addBOS bool      // BOS comes first unless the file says otherwise
}

// listedCuts are the pre-tokenizers by name.
var listedCuts = func() map[string]listedCut {
	by := func(patterns ...string) (steps []preStep) {
		for _, p := range patterns {
			steps = append(steps, preStep{Type: preSplit, Pattern: p})
		}
		return steps
	}
	digit := preStep{Type: preDigits, Each: true}
	cuts := make(map[string]listedCut)
	for _, row := range []struct {
		cut   listedCut
		names string
	}{
		{listedCut{steps: by(patternLlama3), whole: true, addBOS: true}, "llama-bpe llama3 " +
			"llama-v3 falcon3 falcon-h1 pixtral lfm2"},
		{listedCut{steps: by(patternLlama3)}, "dbrx smaug-bpe"},
		{listedCut{steps: by(patternQwen2), nfc: true}, "qwen2"},
		{listedCut{steps: by(patternQwen2)}, "deepseek-r1-qwen stablelm2 megrez hunyuan"},
		{listedCut{steps: by(patternQwen35), nfc: true}, "qwen35"},
		{listedCut{regex: true}, "gpt-2 phi-2 mpt olmo jais gigachat exaone4"},
		{listedCut{steps: []preStep{digit}, regex: true}, "starcoder refact command-r smollm " +
			"codeshell exaone"},
		{listedCut{steps: []preStep{{Type: prePunctuation}}, regex: true}, "falcon"},
		{listedCut{steps: by(patternO200k)}, "gpt-4o llama4"},
		{listedCut{steps: by(patternTekken), whole: true, addBOS: true}, "tekken"},
		{listedCut{steps: by(patternNumber3, patternHanKana, patternDeepSeek)}, "deepseek-v3 " +
			"hunyuan-dense joyai-llm"},
		{listedCut{steps: append(by(patternLineEnd, patternDeepLetters, patternDeepMarks,
			patternBlankEnd, patternAsian), digit)}, "deepseek-llm"},
		{listedCut{steps: append(by(patternLineEnd, patternLetters, patternMarks, patternAsian),
			digit)}, "deepseek-coder"},
	} {
		for name := range strings.FieldsSeq(row.names) {
			cuts[name] = row.cut
		}
	}
	return cuts
}()

// pipeline returns the steps of a byte-level tokenizer.
func (c listedCut) pipeline(name string) pipeline {
	p := plainPipeline(false)
	p.PreTokenizer = append(slices.Clone(c.steps), preStep{Type: preBytes, Regex: c.regex})
	if name == "falcon" { // behind the bytes
		p.PreTokenizer = append(p.PreTokenizer, preStep{Type: preSplit, Pattern: patternThree})
	}
	if c.nfc {
		p.Normalizer = []normalStep{{Type: normalNFC}}
	}
	p.Model.IgnoreMerges = c.whole
	return p
}

// FromList makes a tokenizer from the lists of a GGUF file. Special tokens are cut out of a text as
// they are written. Errors are ErrFormat and ErrUnsupported.
func FromList(l Listed) (*Tokenizer, error) {
	at := inFile(l.File)
	if len(l.Types) != len(l.Tokens) && l.Types != nil || len(l.Scores) != len(l.Tokens) &&
		l.Scores != nil {
		return nil, at.malformed("%d tokens with %d types and %d scores", len(l.Tokens),
			len(l.Types), len(l.Scores))
	}
	src := source{name: l.File}
	var err error
	addBOS := true
	switch l.Model {
	case ListedBytes:
		addBOS, err = l.fillBytes(&src)
	case ListedPieces:
		err = l.fillPieces(&src)
	default:
		err = at.unsupported("tokenizer of type %.40q; supported: %s, %s", l.Model, ListedBytes,
			ListedPieces)
	}
	if err != nil {
		return nil, err
	}
	for i := range src.extra {
		if e := &src.extra[i]; e.kind == control && l.kind(int(e.id)) != pieceUnused {
			e.flags = e.flags.with(uncut, false)
		}
	}
	src.roles = roles{bos: role(l.BOS), eos: role(l.EOS), pad: role(l.Padding)}
	if l.AddBOS != nil {
		addBOS = *l.AddBOS
	}
	if err := src.roles.putBOSFirst(addBOS, l.File); err != nil {
		return nil, err
	}
	if l.AddEOS != nil && *l.AddEOS {
		if l.EOS < 0 {
			return nil, at.malformed("add_eos_token is true, but there is no eos_token_id")
		}
		src.roles.suffix = []uint32{uint32(l.EOS)}
	}
	return build(src)
}

// role returns the id of a role, nil when there is none.
func role(id int64) *uint32 {
	if id < 0 || id > int64(noToken) {
		return nil
	}
	n := uint32(id)
	return &n
}

// kind returns the type of a token.
func (l *Listed) kind(id int) int32 {
	switch {
	case l.Types == nil:
		return pieceNormal
	case l.Types[id] == pieceUnknown && l.Unknown >= 0 && int64(id) != l.Unknown:
		return pieceUnused // converters call rows beyond the tokens unknown
	}
	return l.Types[id]
}

// fillBytes reads byte-level BPE, and reports whether BOS comes first by default.
func (l *Listed) fillBytes(src *source) (addBOS bool, err error) {
	at := inFile(l.File)
	cut, ok := listedCuts[l.Pre]
	if !ok {
		return false, at.unsupported("texts are cut as %.40q says; supported: %s; a file that "+
			"says nothing must be converted again", l.Pre,
			strings.Join(slices.Sorted(maps.Keys(listedCuts)), ", "))
	}
	src.spec = cut.pipeline(l.Pre)
	list := newTextsBuilder(len(l.Tokens), totalLen(l.Tokens))
	tokens := inList(l.File, "tokens")
	for i, text := range l.Tokens {
		if !utf8.ValidString(text) {
			return false, tokens.entry(i).malformed("token %q is not UTF-8", text)
		}
		list.addString(text)
		e := entry{text: text, id: uint32(i), pos: tokens.entry(i), flagged: true}
		switch l.kind(i) {
		case pieceNormal, pieceByte:
			continue
		case pieceUserDefined:
			e.kind = added
		case pieceUnknown, pieceControl, pieceUnused:
			e.kind, e.flags = control, uncut
		default:
			return false, e.pos.unsupported("token %.40q of type %d", text, l.kind(i))
		}
		src.extra = append(src.extra, e)
	}
	src.vocab = vocabulary{texts: list.texts(), pos: tokens.entry}
	merges := inList(l.File, "merges")
	src.merges = ruleList{count: fixed(len(l.Merges)), pos: merges.entry}
	src.merges.each = func(_ *lexicon, use func(left, right []byte, tied bool) error) error {
		for i, text := range l.Merges {
			left, right, err := splitMerge([]byte(text), merges.entry(i))
			if err != nil {
				return err
			}
			if err := use(left, right, false); err != nil {
				return err
			}
		}
		return nil
	}
	return cut.addBOS && l.BOS >= 0, nil
}

func totalLen(list []string) int {
	n := 0
	for _, s := range list {
		n += len(s)
	}
	return n
}

// fillPieces reads SentencePiece's BPE.
func (l *Listed) fillPieces(src *source) error {
	if l.Scores == nil {
		return inFile(l.File).malformed("SentencePiece without scores")
	}
	p := pieceFile{name: l.File, data: []byte(strings.Join(l.Tokens, "")), modelType: typeBPE,
		escape: true, fillers: true}
	p.prefix = l.SpacePrefix == nil || *l.SpacePrefix
	from := uint32(0)
	for i, text := range l.Tokens {
		kind := l.kind(i)
		if kind < pieceNormal || kind > pieceByte {
			return inList(l.File, "tokens").entry(i).unsupported("token %.40q of type %d", text,
				kind)
		}
		p.byteFallback = p.byteFallback || kind == pieceByte
		el := piece{score: l.Scores[i], from: from, to: from + uint32(len(text)), kind: uint8(kind)}
		if err := p.check(el, inList(l.File, "tokens").entry(i)); err != nil {
			return err
		}
		from = el.to
		p.pieces = append(p.pieces, el)
	}
	return p.fill(src, prefixAlways)
}
