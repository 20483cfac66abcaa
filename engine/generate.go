package engine

import (
	"context"
	"fmt"

	"github.com/windrow-sim/windrow/internal/mask"
)

// GenerateOptions say what to generate.
type GenerateOptions struct {
	Seq       int // number of the first sequence, which also picks its random stream
	MaxTokens int // tokens to generate after each prompt
	Sampling  Sampling
	Stop      map[uint32]bool // ids that end the text; the ending id is not part of the result
	// ids from here on are never chosen: rows of the embedding that the tokenizer has no token for;
	// 0 = all are
	Vocab int
	Chunk int // prompt tokens that go through the model together; 0 = 1
	// Masks gives the active units for the token of a sequence at a position, for Flash rows; nil
	// for Resident rows.
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

// sequence is one text in the making.
type sequence struct {
	seq     int
	ids     []uint32 // prompt, then chosen
	prompt  int
	done    int // positions that are computed
	sampler *Sampler
	over    bool
}

// GenerateBatch runs the prompts side by side, then up to MaxTokens chosen tokens of each, calling
// emit for each chosen token with its prompt's index as it is known. What a layer needs from flash
// is read once for all sequences. It returns the chosen tokens; on cancellation those chosen so
// far, with ctx's error.
//
// The last chosen token is not run through the model, as nothing is predicted from it. The texts
// are those of single runs.
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

// nextTokens appends the tokens of the next step: one of each sequence that goes on, or a chunk of
// its prompt, as far as a step has room.
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
		room := len(e.entries) - len(tokens) - waiting // everyone gets one at least
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

// choose takes the next token from the logits of the sequence's last one; more is false when there
// is none.
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

// append adds a chosen token.
func (s *sequence) append(id uint32, opt GenerateOptions) {
	s.sampler.Saw(id)
	s.ids = append(s.ids, id)
	s.over = len(s.ids)-s.prompt == opt.MaxTokens
}

// limited cuts the logits to ids that the tokenizer knows.
func limited(logits []float32, vocab int) []float32 {
	if vocab > 0 {
		return logits[:min(vocab, len(logits))]
	}
	return logits
}

// chosen are the tokens behind the prompts.
func chosen(list []sequence) [][]uint32 {
	all := make([][]uint32, len(list))
	for i := range list {
		all[i] = list[i].ids[list[i].prompt:]
	}
	return all
}
