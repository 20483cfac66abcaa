package tokenizer

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"unicode/utf8"
)

// pieceFile has the needed fields of a SentencePiece model (sentencepiece_model.proto).
type pieceFile struct {
	name         string // of the file
	data         []byte
	pieces       []piece
	fillers      bool   // pieces of no use fill holes in the ids
	modelType    uint64 // of trainer_spec
	byteFallback bool
	suffixSpace  bool   // treat_whitespace_as_suffix
	table        []byte // precompiled_charsmap of the normalizer
	backwards    int    // bytes of that of the denormalizer
	prefix       bool   // add_dummy_prefix
	trim         bool   // remove_extra_whitespaces
	escape       bool   // escape_whitespaces
}

// piece is a token with its score. Its text is data[from:to] of the file.
type piece struct {
	score    float32
	from, to uint32
	kind     uint8
}

func (p *pieceFile) text(el piece) []byte { return p.data[el.from:el.to] }

// The kinds of pieces and of models, in the numbers of the file.
const (
	pieceNormal      = 1
	pieceUnknown     = 2
	pieceControl     = 3
	pieceUserDefined = 4
	pieceUnused      = 5
	pieceByte        = 6

	typeUnigram = 1
	typeBPE     = 2
)

// maxMergedPiece is the longest piece whose merges are searched for: each way to split it costs a
// look-up.
const maxMergedPiece = 256

// readPieces reads tokenizer.model. Unknown fields are skipped: they are about the training.
func readPieces(data []byte) (pieceFile, error) {
	p := pieceFile{name: modelFile, data: data, modelType: typeUnigram, prefix: true, trim: true,
		escape: true}
	count := 0
	for m := (message{data: data}); ; {
		f, ok, err := m.next()
		if err != nil {
			return p, err
		}
		if !ok {
			break
		}
		if f.number == 1 {
			count++
		}
	}
	p.pieces = make([]piece, 0, count)
	m := message{data: data}
	for {
		f, ok, err := m.next()
		if err != nil || !ok {
			return p, err
		}
		read := map[uint64]func(field) error{1: p.readPiece, 2: p.readTrainer, 3: p.readNormalizer,
			5: p.readDenormalizer}[f.number]
		if read == nil {
			continue
		}
		if err := f.expect(wireBytes); err != nil {
			return p, err
		}
		if err := read(f); err != nil {
			return p, err
		}
	}
}

// each calls read for every field of a message.
func (f field) each(read func(field) error) error {
	m := message{f.data, f.at}
	for {
		inner, ok, err := m.next()
		if err != nil || !ok {
			return err
		}
		if err := read(inner); err != nil {
			return err
		}
	}
}

// flag stores a boolean.
func (f field) flag(into *bool) error {
	*into = f.bits != 0
	return f.expect(wireVarint)
}

func (p *pieceFile) readPiece(f field) error {
	el := piece{kind: pieceNormal}
	err := f.each(func(f field) error {
		switch f.number {
		case 1:
			el.from, el.to = uint32(f.at), uint32(f.at+len(f.data))
			return f.expect(wireBytes)
		case 2:
			el.score = f.float()
			return f.expect(wireFixed32)
		case 3:
			el.kind = uint8(min(f.bits, math.MaxUint8))
			return f.expect(wireVarint)
		}
		return nil
	})
	if err == nil {
		err = p.check(el, modelAt(f.at))
	}
	p.pieces = append(p.pieces, el)
	return err
}

// check refuses an invalid piece.
func (p *pieceFile) check(el piece, at position) error {
	switch text := p.text(el); {
	case len(text) == 0:
		return at.malformed("a piece is the empty text")
	case !utf8.Valid(text):
		return at.malformed("piece %q is not UTF-8", text)
	case math.IsNaN(float64(el.score)) || math.IsInf(float64(el.score), 0):
		return at.malformed("piece %q has the score %v", text, el.score)
	}
	return nil
}

func (p *pieceFile) readTrainer(f field) error {
	return f.each(func(f field) error {
		switch f.number {
		case 3:
			p.modelType = f.bits
			return f.expect(wireVarint)
		case 24:
			return f.flag(&p.suffixSpace)
		case 35:
			return f.flag(&p.byteFallback)
		}
		return nil
	})
}

func (p *pieceFile) readNormalizer(f field) error {
	return f.each(func(f field) error {
		switch f.number {
		case 2:
			p.table = f.data
			return f.expect(wireBytes)
		case 3:
			return f.flag(&p.prefix)
		case 4:
			return f.flag(&p.trim)
		case 5:
			return f.flag(&p.escape)
		}
		return nil
	})
}

func (p *pieceFile) readDenormalizer(f field) error {
	return f.each(func(f field) error {
		if f.number == 2 {
			p.backwards += len(f.data)
			return f.expect(wireBytes)
		}
		return nil
	})
}

// fill makes a source of the file. prefix is where a space is put in front, if the model does so at
// all.
func (p *pieceFile) fill(src *source, prefix string) error {
	at := inFile(p.name)
	switch {
	case len(p.pieces) == 0:
		return at.malformed("no pieces")
	case p.backwards > 0:
		return at.unsupported("a denormalizer with a table of %d bytes; supported: none",
			p.backwards)
	case p.suffixSpace || !p.escape:
		return at.unsupported("treat_whitespace_as_suffix is %v and escape_whitespaces is %v; "+
			"supported: false and true", p.suffixSpace, p.escape)
	case p.modelType != typeBPE && p.modelType != typeUnigram:
		return at.unsupported("model type %d; supported: %d (Unigram) and %d (BPE)", p.modelType,
			typeUnigram, typeBPE)
	case prefix == prefixFirst && p.trim:
		return at.unsupported("legacy is false, but the model removes extra white space; " +
			"supported: one of them")
	}
	// the others are put in front by transformers, not by the model
	if !p.prefix && prefix == prefixAlways {
		prefix = prefixNever
	}
	src.spec = pipeline{
		Normalizer: []normalStep{{Type: normalPieces, Prefix: prefix, Trim: p.trim}},
		Model: modelSpec{Type: modelBPE, ByteFallback: p.byteFallback, FuseUnknown: true,
			Single: p.modelType == typeUnigram},
		Decoder: decoderSpec{Type: decodeTokens, Replace: []respelling{{spaceMark, " "}}},
	}
	if len(p.table) > 0 {
		var err error
		if src.spec.table, err = readCharsmap(p.table, at); err != nil {
			return err
		}
		src.spec.Normalizer[0].Table = true
	}
	if p.prefix || p.trim {
		src.spec.Decoder.Strip, src.spec.Decoder.Marks = 1, marksOne
	}
	if p.trim {
		src.spec.Decoder.Marks = marksAll
	}
	if p.byteFallback {
		src.spec.Decoder.Bytes = bytesByCharacter
	}
	if p.modelType == typeUnigram {
		src.spec.Model.Type = modelUnigram
	}
	if err := p.fillVocab(src); err != nil {
		return err
	}
	if p.modelType == typeBPE {
		src.merges = p.merges()
		return nil
	}
	p.fillScores(src)
	return nil
}

// fillVocab lists the pieces, without those that the model itself never produces.
func (p *pieceFile) fillVocab(src *source) error {
	length := 0
	for _, el := range p.pieces {
		length += int(el.to - el.from)
	}
	list := newTextsBuilder(len(p.pieces), length)
	at := inList(p.name, "pieces")
	for i, el := range p.pieces {
		list.add(p.text(el))
		e := entry{id: uint32(i), pos: at.entry(i), kind: control, flags: uncut | outside,
			flagged: true}
		switch {
		case el.kind == pieceNormal || el.kind == pieceByte:
			continue
		case el.kind == pieceControl || el.kind == pieceUnused && p.fillers:
		case el.kind == pieceUnknown:
			if src.spec.Model.Unknown != nil {
				return e.pos.malformed("%q is a second unknown piece", p.text(el))
			}
			id := e.id
			src.spec.Model.Unknown = &id
		case el.kind == pieceUserDefined:
			if p.trim && bytes.Contains(p.text(el), []byte("  ")) {
				return e.pos.unsupported("user-defined piece %q with two spaces, which the "+
					"model removes from a text", p.text(el))
			}
			if t := src.spec.table; t != nil && !t.keeps(string(p.text(el))) {
				return e.pos.unsupported("user-defined piece %q, which the normalizer's table "+
					"changes", p.text(el))
			}
			if p.modelType == typeUnigram {
				continue
			}
			e.kind, e.flags = added, frozen|outside
		default:
			return e.pos.unsupported("piece %q of kind %d; supported: normal, unknown, control, "+
				"user-defined, byte", p.text(el), el.kind)
		}
		e.text = string(p.text(el))
		src.extra = append(src.extra, e)
	}
	src.vocab = vocabulary{texts: list.texts(), pos: at.entry}
	return nil
}

// merges finds the pairs that merge. SentencePiece has no list of them: it merges all pairs that
// make a piece, that of the greatest score first, the leftmost among equals.
func (p *pieceFile) merges() ruleList {
	byScore := make([]uint32, 0, len(p.pieces))
	for i, el := range p.pieces {
		if el.kind == pieceNormal {
			byScore = append(byScore, uint32(i))
		}
	}
	slices.SortStableFunc(byScore, func(a, b uint32) int {
		return cmp.Compare(p.pieces[b].score,
			p.pieces[a].score)
	})
	// pairs of different pieces differ: none is wrong
	list := ruleList{pos: func(int) position { return inFile(p.name) }}
	list.each = func(lex *lexicon, use func(left, right []byte, tied bool) error) error {
		normal := func(text []byte) bool {
			id, ok := lex.findBytes(text)
			return ok && int(id) < len(p.pieces) && p.pieces[id].kind == pieceNormal
		}
		last := float32(math.NaN())
		for _, i := range byScore {
			el := p.pieces[i]
			text := p.text(el)
			if len(text) > maxMergedPiece {
				return inList(p.name, "pieces").entry(int(i)).unsupported("piece %.40q… of %d "+
					"bytes; supported: up to %d", text, len(text), maxMergedPiece)
			}
			for cut := 1; cut < len(text); cut++ {
				if !utf8.RuneStart(text[cut]) || !normal(text[:cut]) || !normal(text[cut:]) {
					continue
				}
				if err := use(text[:cut], text[cut:], el.score == last); err != nil {
					return err
				}
				last = el.score
			}
		}
		return nil
	}
	list.count = func(lex *lexicon) int {
		n := 0
		if err := list.each(lex, func(_, _ []byte, _ bool) error { n++; return nil }); err != nil {
			return 1 // at least one, so that each returns the error again
		}
		return n
	}
	return list
}

// fillScores computes the scores that a Unigram model compares. An unknown character is worse than
// every piece, a user-defined piece better (unigram_model.cc; its greatest score is never less than
// the smallest positive number).
func (p *pieceFile) fillScores(src *source) {
	least, greatest := float32(math.MaxFloat32), float32(0x1p-126)
	for _, el := range p.pieces {
		if el.kind == pieceNormal {
			least, greatest = min(least, el.score), max(greatest, el.score)
		}
	}
	src.spec.Model.UnknownScore = float64(least - unknownPenalty)
	src.scores = make([]float64, len(p.pieces))
	for i, el := range p.pieces {
		switch el.kind {
		case pieceNormal:
			src.scores[i] = float64(el.score)
		case pieceUserDefined:
			src.scores[i] = float64(el.to-el.from)*float64(greatest) - 0.1
		default:
			src.scores[i] = math.NaN()
		}
	}
}
