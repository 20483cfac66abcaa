// Package eval measures how well an engine predicts a document: perplexity, and how often its most
// likely token is another engine's.
//
// # Model
//
// The document is divided into windows of Context tokens that start Stride tokens apart. Every
// token is predicted once: in the first window that contains it, from all tokens of that window
// before it. With Stride = Context windows do not overlap and their first tokens are not predicted.
// With a smaller stride only the first token of the document is not predicted, and every later
// token has at least Context − Stride tokens before it, for more work. The perplexity is exp of the
// mean negative log-likelihood over all predicted tokens. transformers' documentation computes the
// same ("Perplexity of fixed-length models"), except that it weights windows by one token too many.
//
// Start with Run.
package eval

import (
	"context"
	"math"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/internal/refusal"
)

// Options configure a measurement.
type Options struct {
	Context int // tokens of a window
	Stride  int // tokens from one window's start to the next; 0 = Context
	Chunk   int // tokens per step; 0 = 1. Changes speed only.
	// Begin replaces the first tokens of every window by the tokenizer's start of a document, so
	// that a window looks like the start of one. Nil = the document unchanged.
	Begin []uint32
	// Against are the most likely tokens of another engine on the same document with the same
	// windows, from its Result.Argmax; nil = none.
	Against []uint32
	// Progress, if not nil, is called with the number of tokens done and of all that will be
	// computed.
	Progress func(done, total int)
}

// Result is how well a text was predicted.
type Result struct {
	Predicted  int      // tokens
	NLL        float64  // sum of negative log-likelihoods, in nats
	Agreed     int      // predicted tokens with the most likely one in Against
	Argmax     []uint32 // most likely token, by predicted position
	Perplexity float64
}

// check refuses options that no window fits.
func (o *Options) check(ids []uint32) error {
	if o.Stride == 0 {
		o.Stride = o.Context
	}
	o.Chunk = max(o.Chunk, 1)
	switch {
	case len(ids) < 2:
		return refusal.Config("eval: a text of %d tokens: at least 2 are needed, one to predict "+
			"from and one to predict; give more text, or a larger {MaxTokens}", len(ids))
	case o.Context < 2 || o.Stride < 1 || o.Stride > o.Context:
		return refusal.Config("eval: {Context} %d, {Stride} %d: a context of 2 tokens or more and "+
			"a stride of 1 to the context are possible", o.Context, o.Stride)
	}
	return nil
}

// windows calls do for every window [from, to) with the first position that it predicts.
func (o *Options) windows(n int, do func(from, to, first int) error) error {
	last := 1 // the first token is predicted by nothing
	for from := 0; ; from += o.Stride {
		to := min(from+o.Context, n)
		if err := do(from, to, last); err != nil {
			return err
		}
		if last = to; to == n {
			return nil
		}
	}
}

// Run measures an engine on a document. The engine's context must hold a window, and its step a
// chunk. On cancellation it returns the measurements so far with ctx's error.
func Run(ctx context.Context, e *engine.Engine, ids []uint32, opt Options) (*Result, error) {
	if err := opt.check(ids); err != nil {
		return nil, err
	}
	r := &Result{}
	total, done := 0, 0
	if err := opt.windows(len(ids), func(from, to, _ int) error {
		total += to - 1 -
			from
		return nil
	}); err != nil {
		return nil, err
	}
	err := opt.windows(len(ids), func(from, to, first int) error {
		e.Reset()
		// The last token of a window would predict a token of the next window: it is not run.
		for at := from; at < to-1; at += opt.Chunk {
			if err := ctx.Err(); err != nil {
				return err
			}
			var tokens []engine.Token
			for pos := at; pos < min(at+opt.Chunk, to-1); pos++ {
				t := engine.Token{Pos: pos - from, ID: ids[pos], Prefill: true}
				if t.Pos < len(opt.Begin) {
					t.ID = opt.Begin[t.Pos]
				}
				tokens = append(tokens, t)
			}
			logits, err := e.Step(tokens)
			if err != nil {
				return err
			}
			for i := range tokens {
				if target := at + i + 1; target >= first {
					r.add(logits[i], ids[target], opt.Against)
				}
			}
			if done += len(tokens); opt.Progress != nil {
				opt.Progress(done, total)
			}
		}
		return nil
	})
	if r.Predicted > 0 {
		r.Perplexity = math.Exp(r.NLL / float64(r.Predicted))
	}
	return r, err
}

// add counts one predicted token.
func (r *Result) add(logits []float32, id uint32, against []uint32) {
	best := 0
	for i, v := range logits {
		if v > logits[best] {
			best = i
		}
	}
	top := float64(logits[best])
	sum := 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v) - top)
	}
	r.NLL += top + math.Log(sum) - float64(logits[id])
	if r.Predicted < len(against) && against[r.Predicted] == uint32(best) {
		r.Agreed++
	}
	r.Predicted++
	r.Argmax = append(r.Argmax, uint32(best))
}
