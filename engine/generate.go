package engine

import (
	"context"
	"fmt"
)

// GenerateOptions say what to generate.
type GenerateOptions struct {
	Seq       int // number of the sequence, which also picks its random stream
	MaxTokens int // tokens to generate after the prompt
	Sampling  Sampling
	Stop      map[uint32]bool // ids that end the text; the ending id is not part of the result
	Vocab     int             // ids from here on are never chosen: rows of the embedding that the tokenizer has no token for; 0 = all are
	// Masks gives the active units for the token at a position, for Flash rows; nil for Resident rows.
	Masks func(pos int) ([][]uint64, error)
}

// Generate runs the prompt and then up to MaxTokens chosen tokens through the model, calling emit for each chosen token
// as it is known. It returns the chosen tokens; on cancellation those chosen so far, with ctx's error.
//
// The last chosen token is not run through the model, as nothing is predicted from it.
func (e *Engine) Generate(ctx context.Context, prompt []uint32, opt GenerateOptions, emit func(id uint32) error) ([]uint32, error) {
	if len(prompt) == 0 {
		return nil, fmt.Errorf("engine: sequence %d: the prompt has no tokens", opt.Seq)
	}
	if need := len(prompt) + opt.MaxTokens - 1; need > e.context {
		return nil, fmt.Errorf("engine: sequence %d: %d prompt tokens and %d new ones need %d positions, the context has %d; ask for fewer",
			opt.Seq, len(prompt), opt.MaxTokens, need, e.context)
	}
	sampler, err := NewSampler(opt.Sampling, opt.Seq)
	if err != nil {
		return nil, err
	}
	e.Reset()
	var chosen []uint32
	next := prompt[0]
	for pos := 0; ; pos++ {
		if err := ctx.Err(); err != nil {
			return chosen, err
		}
		t := Token{Seq: opt.Seq, Pos: pos, ID: next, Prefill: pos < len(prompt)}
		if opt.Masks != nil {
			if t.Masks, err = opt.Masks(pos); err != nil {
				return chosen, err
			}
		}
		logits, err := e.Forward(t)
		if err != nil {
			return chosen, err
		}
		if pos+1 < len(prompt) {
			next = prompt[pos+1]
			continue
		}
		if len(chosen) == opt.MaxTokens {
			return chosen, nil
		}
		if opt.Vocab > 0 {
			logits = logits[:min(opt.Vocab, len(logits))]
		}
		next = sampler.Next(logits)
		if opt.Stop[next] {
			return chosen, nil
		}
		chosen = append(chosen, next)
		if err := emit(next); err != nil {
			return chosen, err
		}
		if len(chosen) == opt.MaxTokens {
			return chosen, nil
		}
	}
}
