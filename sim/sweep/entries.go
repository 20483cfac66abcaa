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
	// entryTokens is how far the generator of one batch entry may run ahead of the others: one of
	// its blocks.
	entryTokens = 64
	// batchMemory bounds the masks of all entries of a synthetic batch.
	batchMemory = 2 * units.GiB
)

// beginBatch turns a synthetic trace into a trace of batches.
func (t *Trace) beginBatch() error {
	o := &t.Synth
	if o.Sequences > 1 {
		return fmt.Errorf("sweep: a batch of %d of a synthetic trace of %d sequences: the batch "+
			"size is the number of sequences; name no sequences: %w", t.batch, o.Sequences,
			sim.ErrConfig)
	}
	// Two blocks of two masks each: the current one and the next.
	masks := units.Bytes(t.batch) * 4 * entryTokens * units.Bytes(t.head.Layers*t.head.Words()*8)
	if masks > batchMemory {
		return fmt.Errorf("sweep: the masks of a synthetic batch of %d sequences of %s take %v, "+
			"more than %v; write the trace with \"windrow synth trace --sequences %d\" "+
			"and name the file: %w",
			t.batch, t.head.Model, masks, batchMemory, t.batch, sim.ErrConfig)
	}
	t.first = o.Prompt
	if o.Prompt == o.Tokens {
		t.first = 0 // a trace of prompts alone
	}
	t.tokens = atMost(o.Tokens-t.first, t.most)
	return nil
}

// inStep generates the entries of a batch side by side and calls emit with the union of each step.
func (t *Trace) inStep(ctx context.Context, predicted bool, emit func(*traces.Token) error) error {
	ctx, stop := context.WithCancel(ctx)
	entries, failed := make([]chan traces.Token, t.batch), make([]error, t.batch)
	var wait sync.WaitGroup
	defer wait.Wait()
	defer stop()
	for i := range entries {
		entries[i] = make(chan traces.Token, entryTokens)
		wait.Go(func() {
			defer close(entries[i])
			failed[i] = t.entry(ctx, i, predicted, entries[i])
		})
	}
	for step := range t.tokens {
		union := traces.Token{Pos: uint32(step), Phase: traces.PhaseOf(t.first == 0 &&
			t.Synth.Prompt > 0)}
		for i, entry := range entries {
			token, more := <-entry
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

// entry sends the tokens of one batch entry.
func (t *Trace) entry(ctx context.Context, sequence int, predicted bool,
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

// unite adds masks to a union, by layer. It copies the first masks, which belong to the generator.
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
