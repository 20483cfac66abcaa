package memory

import (
	"fmt"

	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
)

// Trace gives the masks of a run, token by token, one sequence after the other.
type Trace struct {
	Tokens, Layers, Units int
	// Token returns token i. Its masks are valid until the next call.
	Token func(i int) (Token, error)
}

// Token is the position of a token and its masks by layer.
type Token struct {
	Seq, Pos uint32
	Masks    []mask.Mask
}

// each calls f for every token. begins reports whether the token begins a sequence.
func (t *Trace) each(f func(i int, begins bool, token *Token) error) error {
	var sequences mask.Sequences
	for i := range t.Tokens {
		token, err := t.Token(i)
		if err != nil {
			return fmt.Errorf("memory: token %d: %w", i, err)
		}
		if err := f(i, sequences.Begins(token.Seq), &token); err != nil {
			return err
		}
	}
	return nil
}

// Reads says how the rows of a trace are read, which determines the staging buffer.
type Reads struct {
	Geometry layout.Geometry
	Layout   layout.Options
	Dense    int // number of first layers without reads
}

// Need is the memory demand of a trace under a policy. It is known before the first token, so that
// no buffer grows later.
type Need struct {
	Rows      []int       // by layer, the most rows at once: Req_i of LLM in a flash for this trace
	Staging   units.Bytes // the largest read of one layer
	Positions int         // of the longest sequence
}

// Config returns c with the rows and the staging buffer of the need, and with its positions where c
// has none.
func (n *Need) Config(c Config) Config {
	c.Rows, c.Staging = n.Rows, n.Staging
	if c.Positions == 0 {
		c.Positions = n.Positions
	}
	return c
}

// NeedOf runs a policy and the planner over a trace. Errors are those of the trace, of policy.New
// and of layout.NewPlanner.
func NeedOf(t Trace, reads Reads, spec policy.Spec) (*Need, error) {
	planner, err := layout.NewPlanner(reads.Geometry, reads.Layout)
	if err != nil {
		return nil, err
	}
	n := &Need{Rows: make([]int, t.Layers)}
	policies, inUse := make([]policy.Policy, t.Layers), make([]int, t.Layers)
	for l := range policies {
		if policies[l], err = policy.New(spec, t.Units, policy.Options{Layer: l}); err != nil {
			return nil, err
		}
	}
	var d policy.Decision
	var plan layout.Plan
	err = t.each(func(_ int, begins bool, token *Token) error {
		n.Positions = max(n.Positions, int(token.Pos)+1)
		for l := min(reads.Dense, t.Layers); l < t.Layers; l++ {
			if begins {
				policies[l].Reset()
				inUse[l] = 0
			}
			policies[l].Step(token.Masks[l], &d)
			planner.Plan(l, d.Load, &plan)
			n.Staging = max(n.Staging, units.Bytes(plan.Staging))
			n.Rows[l] = max(n.Rows[l], inUse[l]+len(d.Load))
			inUse[l] += len(d.Load) - len(d.Evict)
		}
		return nil
	})
	return n, err
}
