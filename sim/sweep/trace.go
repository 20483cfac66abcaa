package sweep

import (
	"context"
	"errors"
	"fmt"

	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/batch"
	"github.com/windrow-sim/windrow/traces/synth"
	"github.com/windrow-sim/windrow/traces/whatif"
)

// Trace is the input of a sweep: a Source, or a synthetic trace that is generated for every pass.
type Trace struct {
	Source traces.Source
	Synth  synth.Options
	head   traces.Header
	most   int // tokens at most, or steps; 0 = all
	tokens int // or steps of a batch

	stream *batch.Stream // of Source, if it has batches
	batch  int           // sequences per step; 0 = token by token
	lanes  batch.Lanes   // of a batch of a Source
	first  int           // of a batch of a synthetic trace: the position of its first step
}

// FromSource returns the first most tokens of a trace; 0 = all.
func FromSource(src traces.Source, most int) *Trace {
	return &Trace{Source: src, head: *src.Header(), most: most, tokens: atMost(src.Tokens(), most)}
}

// FromSynth returns the synthetic trace of some options.
func FromSynth(opt synth.Options, most int) (*Trace, error) {
	head, err := synth.HeaderOf(opt)
	if err != nil {
		return nil, err
	}
	return &Trace{Synth: opt, head: head, most: most, tokens: atMost(opt.Tokens*max(opt.Sequences,
		1), most)}, nil
}

func atMost(tokens, most int) int {
	if most > 0 {
		return min(most, tokens)
	}
	return tokens
}

// Header describes the trace.
func (t *Trace) Header() *traces.Header { return &t.head }

// Tokens is the number of simulated tokens, or of steps of a batch.
func (t *Trace) Tokens() int { return t.tokens }

// perToken is the number of tokens in one of Tokens.
func (t *Trace) perToken() int { return max(t.batch, 1) }

// Under returns the trace with another share of active units, or with another predictor. A
// synthetic trace is generated with the share, and keeps its own predictor. Errors are of kind
// sim.ErrConfig, or those of the trace.
func (t *Trace) Under(w whatif.Options) (*Trace, error) {
	if w == (whatif.Options{}) {
		return t, nil
	}
	if t.Source == nil {
		if w != (whatif.Options{Share: w.Share}) {
			return nil, fmt.Errorf("sweep: what if %s: of a synthetic trace only the share can be "+
				"changed; write it with \"windrow synth trace\" and name the file: %w", w,
				sim.ErrConfig)
		}
		opt := t.Synth
		opt.ActiveShare = w.Share
		made, err := FromSynth(opt, t.most)
		if err != nil {
			return nil, fmt.Errorf("sweep: what if %s: %w: %w", w, err, sim.ErrConfig)
		}
		return made, nil
	}
	src, _, err := whatif.Apply(t.Source, w)
	if errors.Is(err, whatif.ErrOptions) {
		return nil, fmt.Errorf("sweep: %w: %w", err, sim.ErrConfig)
	}
	if err != nil {
		return nil, err
	}
	return FromSource(src, t.most), nil
}

// InStep returns batches of size sequences of the trace. Of a Source they are those of
// batch.Stream.Union, cut from its generated tokens. Of a synthetic trace they are the unions of
// its sequences 0 … size−1, which are independent and share the popular units. They equal those of
// a file with that number of sequences. Errors are of kind sim.ErrConfig.
func (t *Trace) InStep(size int) (*Trace, error) {
	u := *t
	u.batch = size
	if t.Source == nil {
		return &u, u.beginBatch()
	}
	if t.stream == nil {
		stream, err := batch.NewStream(t.Source)
		if err != nil {
			return nil, err
		}
		t.stream = stream
	}
	union, err := t.stream.Union(size, 1)
	if err != nil {
		return nil, fmt.Errorf("sweep: %w: %w", err, sim.ErrConfig)
	}
	u.Source, u.head, u.lanes, u.tokens = union, *union.Header(), union.Lanes(),
		atMost(union.Tokens(), t.most)
	return &u, nil
}

// positions is the number of positions that a token attends to, over all sequences of a batch step.
func (t *Trace) positions(i int, token *traces.Token) int {
	switch {
	case t.batch == 0:
		return int(token.Pos) + 1
	case t.Source != nil:
		return t.lanes.Positions(i)
	}
	return t.batch * (t.first + i + 1)
}

// errEnough ends a synthetic trace before its last token.
var errEnough = errors.New("sweep: enough tokens")

// each calls emit with every token. emit may keep the masks.
func (t *Trace) each(ctx context.Context, predicted bool, emit func(*traces.Token) error) error {
	switch {
	case t.Source != nil:
		return t.read(emit)
	case t.batch > 0:
		return t.inStep(ctx, predicted, emit)
	}
	return t.generate(ctx, 0, 0, predicted, emit)
}

func (t *Trace) read(emit func(*traces.Token) error) error {
	var token traces.Token
	for i := range t.tokens {
		if err := t.Source.Token(i, &token); err != nil {
			return err
		}
		if err := emit(&token); err != nil {
			return err
		}
	}
	return nil
}

// generate generates the synthetic trace from a sequence on, and calls emit with all tokens after
// the first skipped ones.
func (t *Trace) generate(ctx context.Context, first, skipped int, predicted bool,
	emit func(*traces.Token) error) error {
	opt, done := t.Synth, -skipped
	opt.First, opt.Predicted = first, predicted
	_, err := synth.Generate(ctx, opt, func(token *traces.Token) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if done++; done <= 0 {
			return nil
		}
		if err := emit(token); err != nil {
			return err
		}
		if done == t.tokens {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}
