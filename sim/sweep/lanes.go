package sweep

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
)

const (
	// laneTokens is how many tokens a sequence of a batch may be ahead of the others: a block of
	// the generator's.
	laneTokens = 64
	// laneMemory bounds the masks of all sequences of a synthetic batch.
	laneMemory = 2 * units.GiB
)

// beginLanes makes a synthetic trace one of batches.
func (t *Trace) beginLanes() error {
	o := &t.Synth
	if o.Sequences > 1 {
		return fmt.Errorf("sweep: a batch of %d of a synthetic trace of %d sequences: a batch "+
			"has as many sequences as it is large; name no sequences: %w", t.batch, o.Sequences,
			sim.ErrConfig)
	}
	// Two blocks of two masks each: the one that is handed out, and the one behind it.
	masks := units.Bytes(t.batch) * 4 * laneTokens * units.Bytes(t.head.Layers*t.head.Words()*8)
	if masks > laneMemory {
		return fmt.Errorf("sweep: a batch of %d sequences of %s, made on the way, takes %v of "+
			"masks, more than %v; write the trace with \"windrow synth trace --sequences %d\" "+
			"and name the file: %w",
			t.batch, t.head.Model, masks, laneMemory, t.batch, sim.ErrConfig)
	}
	t.first = o.Prompt
	if o.Prompt == o.Tokens {
		t.first = 0 // a trace of prompts alone
	}
	t.tokens = atMost(o.Tokens-t.first, t.most)
	return nil
}

// inStep generates the sequences of a batch side by side and hands the union of each step to emit.
func (t *Trace) inStep(ctx context.Context, predicted bool, emit func(*traces.Token) error) error {
	ctx, stop := context.WithCancel(ctx)
	lanes, failed := make([]chan traces.Token, t.batch), make([]error, t.batch)
	var wait sync.WaitGroup
	defer wait.Wait()
	defer stop()
	for i := range lanes {
		lanes[i] = make(chan traces.Token, laneTokens)
		wait.Go(func() {
			defer close(lanes[i])
			failed[i] = t.lane(ctx, i, predicted, lanes[i])
		})
	}
	for step := range t.tokens {
		union := traces.Token{Pos: uint32(step), Phase: traces.PhaseOf(t.first == 0 &&
			t.Synth.Prompt > 0)}
		for i, lane := range lanes {
			token, more := <-lane
			if !more {
				return failed[i]
			}
			union.Active = unite(union.Active, token.Active)
			union.Predicted = unite(union.Predicted, token.Predicted)
		}
		if err := emit(&union); err != nil {
			return err
		}
	}
	return nil
}

// lane sends the tokens of one sequence.
func (t *Trace) lane(ctx context.Context, sequence int, predicted bool,
	to chan<- traces.Token) error {
	return t.generate(ctx, sequence, t.first, predicted, func(token *traces.Token) error {
		select {
		case to <- *token:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// unite adds masks to a union, by layer; of the first masks it makes a copy, since they are the
// generator's.
func unite(union, masks []mask.Mask) []mask.Mask {
	if union == nil {
		for _, m := range masks {
			union = append(union, slices.Clone(m))
		}
		return union
	}
	for l, m := range masks {
		union[l].Or(m)
	}
	return union
}
