package record

import (
	"fmt"
	"slices"

	"github.com/windrow-sim/windrow/traces"
)

// InOrder is an Appender that brings the tokens of sequences that run side by side into the order
// of a trace: one sequence after the other. Tokens of the first sequence pass; those of later ones
// are copied and wait for Flush, which the caller calls when all are complete. Of B sequences of n
// tokens, up to (B−1)·n wait, each as large as in the trace. Single sequences never wait.
type InOrder struct {
	out   Appender
	first uint32 // sequence that passes
	begun bool
	held  map[uint32][]traces.Token // by sequence
}

// NewInOrder returns an InOrder that passes tokens on to out.
func NewInOrder(out Appender) *InOrder {
	return &InOrder{out: out, held: map[uint32][]traces.Token{}}
}

// Append passes a token on or keeps a copy. The first sequence is that of the first token after
// NewInOrder or Flush; a token of an earlier one is an error, as it comes too late.
func (o *InOrder) Append(t *traces.Token) error {
	if !o.begun {
		o.begun, o.first = true, t.Seq
	}
	switch {
	case t.Seq < o.first:
		return fmt.Errorf("record: sequence %d, position %d: comes after sequence %d has begun: "+
			"the first token of a batch must be of its first sequence", t.Seq, t.Pos, o.first)
	case t.Seq == o.first:
		return o.out.Append(t)
	}
	o.held[t.Seq] = append(o.held[t.Seq], clone(t))
	return nil
}

// Flush passes on what waits, in order, and begins anew: the next token may be of any sequence
// behind these.
func (o *InOrder) Flush() error {
	order := make([]uint32, 0, len(o.held))
	for seq := range o.held {
		order = append(order, seq)
	}
	slices.Sort(order)
	for _, seq := range order {
		for i := range o.held[seq] {
			if err := o.out.Append(&o.held[seq][i]); err != nil {
				return err
			}
		}
		delete(o.held, seq)
	}
	o.begun = false
	return nil
}

// clone copies a token with all that it points to.
func clone(t *traces.Token) traces.Token {
	c := *t
	c.Active, c.Predicted, c.Magnitude, c.Feature = rows(t.Active), rows(t.Predicted),
		rows(t.Magnitude), rows(t.Feature)
	return c
}

// rows copies the rows of all layers into one piece of memory; nil stays nil.
func rows[S ~[]E, E any](list []S) []S {
	if list == nil {
		return nil
	}
	size := 0
	for _, row := range list {
		size += len(row)
	}
	all, out := make(S, 0, size), make([]S, len(list))
	for l, row := range list {
		from := len(all)
		all = append(all, row...)
		out[l] = all[from:len(all):len(all)]
	}
	return out
}
