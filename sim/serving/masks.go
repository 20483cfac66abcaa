package serving

import (
	"fmt"

	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/batch"
)

// blockTokens is the number of consecutive tokens whose union is precomputed. Long prompts then
// take a sixteenth of the work.
const blockTokens = 16

// ring holds the tokens of one phase of a trace. The first token follows the last.
type ring struct {
	phase  traces.Phase
	layers int
	masks  []mask.Mask // by token, then layer
	// by token, then layer: the sum of units that all earlier tokens need; one token more than
	// masks
	sums      []int64
	blocks    []mask.Mask // by block, then layer: unions of blockTokens tokens; whole blocks only
	sequences traces.Sequences
}

// readRings reads a trace. A phase without tokens takes the tokens of the other phase.
func readRings(src traces.Source, predicted bool) (prompt, decode *ring, err error) {
	if _, err := batch.NewStream(src); err != nil { // checks the shapes of all masks
		return nil, nil, fmt.Errorf("serving: %w", err)
	}
	layers := src.Header().Layers
	list := [...]*ring{traces.Prefill: newRing(traces.Prefill, layers),
		traces.Decode: newRing(traces.Decode, layers)}
	var t traces.Token
	for i := range src.Tokens() {
		if err := src.Token(i, &t); err != nil {
			return nil, nil, fmt.Errorf("serving: token %d: %w", i, err)
		}
		list[traces.PhaseOf(t.Phase == traces.Prefill)].add(t.Seq, t.Masks(predicted))
	}
	prompt, decode = list[traces.Prefill], list[traces.Decode]
	prompt.makeBlocks()
	decode.makeBlocks()
	if prompt.tokens() == 0 {
		prompt = decode
	} else if decode.tokens() == 0 {
		decode = prompt
	}
	return prompt, decode, nil
}

func newRing(phase traces.Phase, layers int) *ring {
	return &ring{phase: phase, layers: layers, sums: make([]int64, layers)}
}

func (c *ring) tokens() int { return len(c.masks) / max(c.layers, 1) }

// add appends a token.
func (c *ring) add(seq uint32, masks []mask.Mask) {
	c.sequences.Begins(seq)
	before := c.sums[len(c.sums)-c.layers:]
	for l, m := range masks {
		c.sums = append(c.sums, before[l]+int64(m.Count()))
	}
	c.masks = append(c.masks, masks...)
}

// makeBlocks computes the unions of all whole blocks.
func (c *ring) makeBlocks() {
	for first := 0; first+blockTokens <= c.tokens(); first += blockTokens {
		for l := range c.layers {
			union := make(mask.Mask, len(c.masks[l]))
			for i := first; i < first+blockTokens; i++ {
				union.Or(c.masks[i*c.layers+l])
			}
			c.blocks = append(c.blocks, union)
		}
	}
}

// unite adds the units that n tokens from position at on need to the union of every layer.
func (c *ring) unite(unions []mask.Mask, at, n int) {
	total := c.tokens()
	if n >= total {
		at, n = 0, total
	}
	for n > 0 {
		take, list := 1, c.masks[at*c.layers:]
		if at%blockTokens == 0 && n >= blockTokens && at+blockTokens <= total {
			take, list = blockTokens, c.blocks[at/blockTokens*c.layers:]
		}
		for l, union := range unions {
			union.Or(list[l])
		}
		at, n = (at+take)%total, n-take
	}
}

// needs is the sum over n tokens, from position at on, of the units that each needs of a layer.
func (c *ring) needs(layer, at, n int) int64 {
	total := c.tokens()
	below := func(i int) int64 { return c.sums[i*c.layers+layer] }
	sum := int64(n/total) * below(total)
	if end := at + n%total; end <= total {
		sum += below(end) - below(at)
	} else {
		sum += below(total) - below(at) + below(end-total)
	}
	return sum
}

// place draws the first positions of a request in both rings. They depend on its number alone: the
// same request has the same masks at any rate.
func (s *Server) place(number int64) (prompt, decode int) {
	random := rng.Stream(s.cfg.Seed, fmt.Sprintf("serving/place/%d", number))
	return random.IntN(s.prompt.tokens()), random.IntN(s.decode.tokens())
}
