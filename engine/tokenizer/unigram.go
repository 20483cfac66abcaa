package tokenizer

import (
	"math"
	"unicode/utf8"
)

// unigram is a model with a score for every token. A word becomes the tokens with the greatest sum
// of scores.
type unigram struct {
	pieces *prefixes
	best   []node // working memory, by position
}

// node is the best way to a position in the word.
type node struct {
	score float64
	from  int32 // start of its last token, -1 without a path
	id    uint32
}

// unknownPenalty is by how much an unknown character is worse than the worst token (SentencePiece,
// unigram_model.cc).
const unknownPenalty = 10

// newUnigram makes the model of the tokens that have a score; the scores are by id, not a number
// where there is none.
func newUnigram(lex *lexicon, scores []float64) *unigram {
	ids := make([]uint32, 0, len(scores))
	for id, s := range scores {
		if !math.IsNaN(s) {
			ids = append(ids, uint32(id))
		}
	}
	return &unigram{pieces: newPrefixes(lex, ids)}
}

// appendUnigram appends the ids of one word.
func (t *Tokenizer) appendUnigram(dst []uint32, word string) []uint32 {
	u := t.uni
	t.findPaths(word)
	from := len(dst)
	for end := len(word); end > 0; {
		n := u.best[end]
		begin := int(n.from)
		if n.id == t.model.unk {
			for begin > 0 && u.best[begin].id == t.model.unk {
				begin = int(u.best[begin].from)
			}
			dst = t.appendUnknown(dst, word[begin:end])
		} else {
			dst = append(dst, n.id)
		}
		end = begin
	}
	ids := dst[from:]
	for i, j := 0, len(ids)-1; i < j; i, j = i+1, j-1 {
		ids[i], ids[j] = ids[j], ids[i]
	}
	return dst
}

// appendUnknown appends the tokens of a run of unknown characters, the last first.
func (t *Tokenizer) appendUnknown(dst []uint32, run string) []uint32 {
	if id, ok := t.lex.find(run); ok && int(id) < len(t.scores) && !math.IsNaN(t.scores[id]) {
		return append(dst, id)
	}
	if !t.model.fallback {
		return append(dst, t.model.unk)
	}
	for i := len(run) - 1; i >= 0; i-- {
		dst = append(dst, t.base[run[i]])
	}
	return dst
}

// findPaths fills u.best for a word. A character without a token of its own length can be unknown,
// so every position between characters is reached.
func (t *Tokenizer) findPaths(word string) {
	u := t.uni
	u.best = u.best[:0]
	for range len(word) + 1 {
		u.best = append(u.best, node{from: -1})
	}
	for at := 0; at < len(word); {
		_, width := utf8.DecodeRuneInString(word[at:])
		here, single := u.best[at].score, false
		w := u.pieces.walk(word[at:])
		for {
			key, ok := w.next()
			if !ok {
				break
			}
			length, id := len(u.pieces.key(key)), u.pieces.ids[key]
			single = single || length == width
			t.offer(at, at+length, t.scores[id]+here, id)
		}
		if !single {
			score := t.spec.Model.UnknownScore + here
			t.offer(at, at+width, score, t.model.unk)
		}
		at += width
	}
}

// offer proposes a path to end; the first among equals stays.
func (t *Tokenizer) offer(from, end int, score float64, id uint32) {
	if t.spec.Model.Single {
		score = float64(float32(score))
	}
	n := &t.uni.best[end]
	if n.from >= 0 && score <= n.score {
		return
	}
	*n = node{score, int32(from), id}
}
