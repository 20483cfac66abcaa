package engine

import (
	"context"
	"fmt"
)

// SpeculateOptions configure speculative decoding.
type SpeculateOptions struct {
	GenerateOptions
	Draft int // λ: tokens that the draft model proposes before each verification
}

// Speculation counts steps and tokens.
type Speculation struct {
	Verified int // steps of the target model after the prompt
	Drafted  int // tokens proposed
	Accepted int // of the proposed tokens
}

// Speculate generates with a draft model. The draft model proposes λ tokens one by one. The target
// computes all of them and one more in a single step, and the longest accepted prefix is kept. A
// proposal x is accepted with probability min(1, p(x)/q(x)), with p the target's and q the draft's
// probabilities after the sampling options. The first rejected proposal is replaced by a draw from
// (p − q)⁺, normalised. So every token has the target's own distribution (Leviathan, Kalman and
// Matias, 2023, Theorem 1), and greedy results are equal.
//
// Both engines need at least one sequence, and the target's step room for λ+1 tokens. Rows must be
// resident or predicted: recorded masks are of other tokens.
func Speculate(ctx context.Context, target, draft *Engine, prompt []uint32, opt SpeculateOptions,
	emit func(id uint32) error) ([]uint32, Speculation, error) {
	var count Speculation
	switch {
	case opt.Draft < 1 || opt.Draft+1 > len(target.entries):
		return nil, count, fmt.Errorf("engine: %d drafted tokens: 1 to %d are possible; make "+
			"the target's engine with a larger Batch", opt.Draft, len(target.entries)-1)
	case target.shape.Vocab != draft.shape.Vocab:
		return nil, count, fmt.Errorf("engine: the draft model has a vocabulary of %d, the "+
			"target of %d: they must be the same", draft.shape.Vocab, target.shape.Vocab)
	case target.needsMasks() || draft.needsMasks():
		return nil, count, fmt.Errorf("engine: speculation with rows on flash needs a " +
			"predictor: recorded masks are of other tokens")
	}
	list, err := target.sequences([][]uint32{prompt}, opt.GenerateOptions)
	if err == nil {
		_, err = draft.sequences([][]uint32{prompt}, opt.GenerateOptions)
	}
	if err != nil {
		return nil, count, err
	}
	target.Reset()
	draft.Reset()
	r := &speculation{target: target, draft: draft, s: &list[0], opt: opt, count: &count}
	for !r.s.over {
		if err := ctx.Err(); err != nil {
			return chosen(list)[0], count, err
		}
		before := len(r.s.ids)
		if err := r.round(); err != nil {
			return chosen(list)[0], count, err
		}
		for _, id := range r.s.ids[before:] {
			if err := emit(id); err != nil {
				return chosen(list)[0], count, err
			}
		}
	}
	return chosen(list)[0], count, nil
}

// speculation is one run of Speculate.
type speculation struct {
	target, draft *Engine
	s             *sequence
	opt           SpeculateOptions
	count         *Speculation
	drafted       []uint32
	q             [][]float64 // the draft's probabilities for each drafted token
	p             []float64
	drafts        int // positions that the draft model has computed
}

// round drafts, verifies, and appends the accepted tokens and one more.
func (r *speculation) round() error {
	// The sequence's last token is the first of the verification. The prompt is not computed yet
	// either.
	for r.s.done < len(r.s.ids)-1 {
		n := min(len(r.target.entries), len(r.s.ids)-1-r.s.done)
		if _, err := r.target.Step(r.tokens(r.s.ids[r.s.done:r.s.done+n], r.s.done)); err != nil {
			return err
		}
		r.s.done += n
	}
	left := r.opt.MaxTokens - (len(r.s.ids) - r.s.prompt)
	if err := r.propose(min(r.opt.Draft, left-1)); err != nil {
		return err
	}
	logits, err := r.target.Step(r.tokens(append([]uint32{r.s.ids[len(r.s.ids)-1]}, r.drafted...),
		r.s.done))
	if err != nil {
		return err
	}
	r.count.Verified++
	r.count.Drafted += len(r.drafted)
	kept := r.accept(logits)
	r.count.Accepted += kept
	r.s.done += kept + 1
	r.target.Rewind(0, r.s.done)
	r.drafts = min(r.drafts, r.s.done)
	r.draft.Rewind(0, r.drafts)
	return nil
}

// tokens returns ids at positions from first on.
func (r *speculation) tokens(ids []uint32, first int) []Token {
	list := make([]Token, len(ids))
	for i, id := range ids {
		list[i] = Token{Seq: r.s.seq, Pos: first + i, ID: id, Prefill: first+i < r.s.prompt}
	}
	return list
}

// propose makes the draft model choose up to n tokens.
func (r *speculation) propose(n int) error {
	r.drafted, r.q = r.drafted[:0], r.q[:0]
	text := r.s.ids
	for len(r.drafted) < n {
		var logits []float32
		for ; r.drafts < len(text); r.drafts++ {
			var err error
			if logits, err = r.draft.Forward(Token{Seq: r.s.seq, Pos: r.drafts, ID: text[r.drafts],
				Prefill: r.drafts < r.s.prompt}); err != nil {
				return err
			}
		}
		q := make([]float64, len(limited(logits, r.opt.Vocab)))
		r.s.sampler.distribution(q, limited(logits, r.opt.Vocab))
		id := r.s.sampler.drawFrom(q)
		r.drafted, r.q = append(r.drafted, id), append(r.q, q)
		text = append(text[:len(text):len(text)], id)
	}
	return nil
}

// accept appends the accepted proposals, then one token of the target's own, and returns the number
// of accepted ones.
func (r *speculation) accept(logits [][]float32) (kept int) {
	for i := 0; ; i++ {
		own := limited(logits[i], r.opt.Vocab)
		if r.p == nil {
			r.p = make([]float64, len(own))
		}
		r.s.sampler.distribution(r.p, own)
		if i == len(r.drafted) {
			r.take(r.s.sampler.drawFrom(r.p))
			return i
		}
		id, q := r.drafted[i], r.q[i]
		if r.s.sampler.random.Float64()*q[id] < r.p[id] {
			if !r.take(id) {
				return i
			}
			continue
		}
		for j, v := range q {
			r.p[j] = max(r.p[j]-v, 0)
		}
		r.take(r.s.sampler.drawFrom(r.p))
		return i
	}
}

// take appends a token unless it ends the sequence, and reports whether the sequence goes on.
func (r *speculation) take(id uint32) bool {
	if r.opt.Stop[id] {
		r.s.over = true
		return false
	}
	r.s.append(id, r.opt.GenerateOptions)
	return !r.s.over
}

// needsMasks reports whether tokens must carry masks.
func (e *Engine) needsMasks() bool {
	return e.rows.Masked(e.shape.Layers-1) && e.predict == (Predictors{})
}
