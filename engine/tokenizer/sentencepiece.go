package tokenizer

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// pieceFile is what is read of a SentencePiece model (sentencepiece_model.proto).
type pieceFile struct {
	pieces       []piece
	modelType    uint64 // of trainer_spec
	byteFallback bool
	suffixSpace  bool // treat_whitespace_as_suffix
	charsmap     int  // bytes of precompiled tables, in both directions
	rules        string
	prefix       bool // add_dummy_prefix
	trim         bool // remove_extra_whitespaces
	escape       bool // escape_whitespaces
}

// piece is a token with its score.
type piece struct {
	text  string
	score float32
	kind  uint64
	at    int
}

// The kinds of pieces and of models, in the numbers of the file.
const (
	pieceNormal      = 1
	pieceUnknown     = 2
	pieceControl     = 3
	pieceUserDefined = 4
	pieceByte        = 6

	typeUnigram = 1
	typeBPE     = 2
)

// maxMergedPiece is the longest piece whose merges are sought: each of its cuts costs a look-up.
const maxMergedPiece = 256

// readPieces reads tokenizer.model. Fields that are not known are skipped: they say how the model was trained.
func readPieces(data []byte) (pieceFile, error) {
	p := pieceFile{modelType: typeUnigram, prefix: true, trim: true, escape: true}
	m := message{data: data}
	for {
		f, ok, err := m.next()
		if err != nil || !ok {
			return p, err
		}
		read := map[uint64]func(field) error{1: p.readPiece, 2: p.readTrainer, 3: p.readNormalizer, 5: p.readDenormalizer}[f.number]
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
	el := piece{kind: pieceNormal, at: f.at}
	err := f.each(func(f field) error {
		switch f.number {
		case 1:
			el.text = string(f.data)
			return f.expect(wireBytes)
		case 2:
			el.score = f.float()
			return f.expect(wireFixed32)
		case 3:
			el.kind = f.bits
			return f.expect(wireVarint)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case !utf8.ValidString(el.text):
		return modelAt(f.at).malformed("piece %q is not UTF-8", el.text)
	case math.IsNaN(float64(el.score)) || math.IsInf(float64(el.score), 0):
		return modelAt(f.at).malformed("piece %q has the score %v", el.text, el.score)
	}
	p.pieces = append(p.pieces, el)
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
		case 1:
			p.rules = string(f.data)
			return f.expect(wireBytes)
		case 2:
			p.charsmap += len(f.data)
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
			p.charsmap += len(f.data)
			return f.expect(wireBytes)
		}
		return nil
	})
}

// fill makes a source of the file. prefix is where a space is put in front, if the model does so at all.
func (p *pieceFile) fill(src *source, prefix string) error {
	at := position{file: modelFile}
	switch {
	case len(p.pieces) == 0:
		return at.malformed("no pieces")
	case p.charsmap > 0:
		return at.unsupported("normalizer %.40q with a table of %d bytes; supported: identity, which has none", p.rules, p.charsmap)
	case p.suffixSpace || !p.escape:
		return at.unsupported("treat_whitespace_as_suffix is %v and escape_whitespaces is %v; supported: false and true", p.suffixSpace, p.escape)
	case p.modelType != typeBPE && p.modelType != typeUnigram:
		return at.unsupported("model type %d; supported: %d (Unigram) and %d (BPE)", p.modelType, typeUnigram, typeBPE)
	case prefix == prefixFirst && p.trim:
		return at.unsupported("legacy is false, but the model removes extra white space; supported: one of them")
	}
	if !p.prefix && prefix == prefixAlways { // the others are put in front by transformers, not by the model
		prefix = prefixNever
	}
	src.spec = pipeline{
		Normalizer: []normalStep{{Type: normalPieces, Prefix: prefix, Trim: p.trim}},
		Model:      modelSpec{Type: modelBPE, ByteFallback: p.byteFallback, FuseUnknown: true, Single: p.modelType == typeUnigram},
		Decoder:    decoderSpec{Type: decodeTokens, Replace: []respelling{{spaceMark, " "}}},
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
		return p.fillMerges(src)
	}
	p.fillScores(src)
	return nil
}

// fillVocab sorts the pieces by what they do.
func (p *pieceFile) fillVocab(src *source) error {
	for i, el := range p.pieces {
		e := entry{text: el.text, id: uint32(i), pos: position{modelFile, "pieces", i}}
		switch el.kind {
		case pieceNormal, pieceByte:
			src.vocab = append(src.vocab, e)
		case pieceUnknown, pieceControl:
			e.kind, e.flags, e.flagged = control, flags{uncut: true}, true
			src.extra = append(src.extra, e)
			if el.kind == pieceControl {
				break
			}
			if src.spec.Model.Unknown != nil {
				return e.pos.malformed("%q is a second unknown piece", el.text)
			}
			src.spec.Model.Unknown = &e.id
		case pieceUserDefined:
			if p.trim && strings.Contains(el.text, "  ") {
				return e.pos.unsupported("user-defined piece %q with two spaces, which the model removes from a text", el.text)
			}
			if p.modelType == typeUnigram {
				src.vocab = append(src.vocab, e)
				break
			}
			e.kind, e.flags, e.flagged = added, flags{frozen: true}, true
			src.extra = append(src.extra, e)
		default:
			return e.pos.unsupported("piece %q of kind %d; supported: normal, unknown, control, user-defined, byte", el.text, el.kind)
		}
	}
	return nil
}

// fillMerges finds the pairs that merge: SentencePiece has no list of them, it merges whatever gives a piece, that of the
// greatest score first and the leftmost of equals.
func (p *pieceFile) fillMerges(src *source) error {
	known := make(map[string]bool, len(p.pieces))
	var byScore []piece
	for _, el := range p.pieces {
		if el.kind == pieceNormal {
			known[el.text] = true
			byScore = append(byScore, el)
		}
	}
	slices.SortStableFunc(byScore, func(a, b piece) int { return cmp.Compare(b.score, a.score) })
	last := float32(math.NaN())
	for _, el := range byScore {
		if len(el.text) > maxMergedPiece {
			return modelAt(el.at).unsupported("piece %.40q… of %d bytes; supported: up to %d", el.text, len(el.text), maxMergedPiece)
		}
		for cut := range el.text {
			if cut == 0 || !known[el.text[:cut]] || !known[el.text[cut:]] {
				continue
			}
			src.merges = append(src.merges, rule{left: el.text[:cut], right: el.text[cut:], tied: el.score == last, pos: modelAt(el.at)})
			last = el.score
		}
	}
	return nil
}

// fillScores computes what a Unigram model compares: an unknown character is worse than every piece, and a user-defined
// piece better (unigram_model.cc; its greatest score is never less than the smallest positive number).
func (p *pieceFile) fillScores(src *source) {
	least, greatest := float32(math.MaxFloat32), float32(0x1p-126)
	for _, el := range p.pieces {
		if el.kind == pieceNormal {
			least, greatest = min(least, el.score), max(greatest, el.score)
		}
	}
	src.spec.Model.UnknownScore = float64(least - unknownPenalty)
	for _, e := range src.vocab {
		el := p.pieces[e.id]
		score := float64(el.score)
		switch el.kind {
		case pieceByte:
			score = math.NaN()
		case pieceUserDefined:
			score = float64(len(el.text))*float64(greatest) - 0.1
		}
		src.scores = append(src.scores, score)
	}
}
