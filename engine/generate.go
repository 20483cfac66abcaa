package engine

import (
	"context"
	"fmt"

	"github.com/windrow-sim/windrow/internal/mask"
)

// GenerateOptions configure a generation.
type GenerateOptions struct {
	Seq       int // number of the first sequence; it also selects the random stream
	MaxTokens int // tokens to generate after each prompt
	Sampling  Sampling
	Stop      map[uint32]bool // ids that end the document; the ending id is not part of the result
	// Vocab excludes ids from it on: rows of the embedding that the tokenizer has no token for. 0 =
	// all ids are allowed.
	Vocab int
	Chunk int // prompt tokens per step; 0 = 1
	// Masks returns the active units for the token of a sequence at a position, for Flash rows
	// without predictors; nil otherwise.
	Masks func(seq, pos int) ([]mask.Mask, error)
}

// Generate is GenerateBatch of one prompt.
func (e *Engine) Generate(ctx context.Context, prompt []uint32, opt GenerateOptions,
	emit func(id uint32) error) ([]uint32, error) {
	list, err := e.GenerateBatch(ctx, [][]uint32{prompt}, opt, func(_ int, id uint32) error {
		return emit(id)
	})
	if list == nil {
		return nil, err
	}
	return list[0], err
}

// sequence is one document in the making.
type sequence struct {
	seq     int
	ids     []uint32 // prompt, then generated tokens
	prompt  int
	done    int // positions that are computed
	sampler *Sampler
	over    bool
}

// GenerateBatch runs the prompts side by side, then generates up to MaxTokens tokens for each. It
// calls emit for each generated token with its prompt's index. A layer's rows are read from flash
// once for all sequences. It returns the generated tokens; on cancellation the tokens so far, with
// ctx's error.
//
// The last generated token is not run through the model, because no token follows it. The results
// equal those of single runs.
func (e *Engine) GenerateBatch(ctx context.Context, prompts [][]uint32, opt GenerateOptions,
	emit func(i int, id uint32) error) ([][]uint32, error) {
	list, err := e.sequences(prompts, opt)
	if err != nil {
		return nil, err
	}
	e.Reset()
	var tokens []Token
	for {
		if tokens, err = e.nextTokens(tokens[:0], list, opt); err != nil || len(tokens) == 0 {
			return chosen(list), err
		}
		if err := ctx.Err(); err != nil {
			return chosen(list), err
		}
		logits, err := e.Step(tokens)
		if err != nil {
			return chosen(list), err
		}
		for i, t := range tokens {
			s := &list[t.SeqID]
			if s.done++; s.done < len(s.ids) {
				continue // inside the prompt
			}
			id, more := s.choose(logits[i], opt)
			if !more {
				continue
			}
			if err := emit(t.SeqID, id); err != nil {
				return chosen(list), err
			}
		}
	}
}

// sequences checks the prompts and prepares a sequence for each.
func (e *Engine) sequences(prompts [][]uint32, opt GenerateOptions) ([]sequence, error) {
	if len(prompts) == 0 || len(prompts) > len(e.next) {
		return nil, fmt.Errorf("engine: %d prompts: 1 to %d are possible; make the engine with "+
			"more Sequences", len(prompts), len(e.next))
	}
	list := make([]sequence, len(prompts))
	for i, prompt := range prompts {
		seq := opt.Seq + i
		if len(prompt) == 0 {
			return nil, fmt.Errorf("engine: sequence %d: the prompt has no tokens", seq)
		}
		if need := len(prompt) + opt.MaxTokens - 1; need > e.context {
			return nil, fmt.Errorf("engine: sequence %d: %d prompt tokens and %d new ones need "+
				"%d positions, the context has %d; ask for fewer",
				seq, len(prompt), opt.MaxTokens, need, e.context)
		}
		sampler, err := NewSampler(opt.Sampling, seq)
		if err != nil {
			return nil, err
		}
		for _, id := range prompt {
			sampler.Saw(id)
		}
		list[i] = sequence{seq: seq, ids: append([]uint32{}, prompt...), prompt: len(prompt),
			sampler: sampler}
	}
	return list, nil
}

// nextTokens appends the tokens of the next step: one of each unfinished sequence, or a chunk of
// its prompt, as far as the step has room.
func (e *Engine) nextTokens(tokens []Token, list []sequence, opt GenerateOptions) ([]Token, error) {
	waiting := 0
	for i := range list {
		if !list[i].over {
			waiting++
		}
	}
	for i := range list {
		s := &list[i]
		if s.over {
			continue
		}
		waiting--
		room := len(e.entries) - len(tokens) - waiting // at least one for every sequence
		for n := range min(max(opt.Chunk, 1), len(s.ids)-s.done, room) {
			pos := s.done + n
			t := Token{Seq: s.seq, SeqID: i, Pos: pos, ID: s.ids[pos], Prefill: pos < s.prompt}
			if opt.Masks != nil {
				var err error
				if t.Masks, err = opt.Masks(s.seq, pos); err != nil {
					return nil, err
				}
			}
			tokens = append(tokens, t)
		}
	}
	return tokens, nil
}

// choose takes the next token from the logits of the sequence's last one. more is false at the
// sequence's end.
func (s *sequence) choose(logits []float32, opt GenerateOptions) (id uint32, more bool) {
	if len(s.ids)-s.prompt == opt.MaxTokens {
		s.over = true
		return 0, false
	}
	id = s.sampler.Next(limited(logits, opt.Vocab))
	if opt.Stop[id] {
		s.over = true
		return 0, false
	}
	s.append(id, opt)
	return id, true
}

// append adds a generated token.
func (s *sequence) append(id uint32, opt GenerateOptions) {
	s.sampler.Saw(id)
	s.ids = append(s.ids, id)
	s.over = len(s.ids)-s.prompt == opt.MaxTokens
}

// limited leaves out the logits of ids that the tokenizer does not know.
func limited(logits []float32, vocab int) []float32 {
	if vocab > 0 {
		return logits[:min(vocab, len(logits))]
	}
	return logits
}

// chosen returns the generated tokens of each sequence.
func chosen(list []sequence) [][]uint32 {
	all := make([][]uint32, len(list))
	for i := range list {
		all[i] = list[i].ids[list[i].prompt:]
	}
	return all
}
