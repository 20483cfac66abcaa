package serving

import (
	"fmt"

	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/batch"
)

// blockTokens is how many neighbouring tokens share a union made beforehand. Long prompts need a
// sixteenth of the work then.
const blockTokens = 16

// circle is the tokens of one phase of a trace, the first after the last.
type circle struct {
	phase  traces.Phase
	layers int
	masks  []mask.Mask // by token, then layer
	// by token, then layer: units that all tokens before need; one token more than masks
	sums      []int64
	blocks    []mask.Mask // by block, then layer: unions of blockTokens tokens; whole blocks only
	sequences traces.Sequences
}

// readCircles reads a trace. A phase without tokens uses those of the other.
func readCircles(src traces.Source, predicted bool) (prompt, decode *circle, err error) {
	if _, err := batch.NewStream(src); err != nil { // checks the shapes of all masks
		return nil, nil, fmt.Errorf("serving: %w", err)
	}
	layers := src.Header().Layers
	list := [...]*circle{traces.Prefill: newCircle(traces.Prefill, layers),
		traces.Decode: newCircle(traces.Decode, layers)}
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

func newCircle(phase traces.Phase, layers int) *circle {
	return &circle{phase: phase, layers: layers, sums: make([]int64, layers)}
}

func (c *circle) tokens() int { return len(c.masks) / max(c.layers, 1) }

// add appends a token.
func (c *circle) add(seq uint32, masks []mask.Mask) {
	c.sequences.Begins(seq)
	before := c.sums[len(c.sums)-c.layers:]
	for l, m := range masks {
		c.sums = append(c.sums, before[l]+int64(m.Count()))
	}
	c.masks = append(c.masks, masks...)
}

// makeBlocks makes the unions of all whole blocks.
func (c *circle) makeBlocks() {
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

// unite adds to the union of every layer what n tokens from place at on need.
func (c *circle) unite(unions []mask.Mask, at, n int) {
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

// needs is the sum of the units that each of n tokens from place at on needs of a layer.
func (c *circle) needs(layer, at, n int) int64 {
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

// place draws where the request of a number begins in both circles. It depends on nothing else, so
// that the same request has the same masks at any rate.
func (s *Server) place(number int64) (prompt, decode int) {
	random := rng.Stream(s.cfg.Seed, fmt.Sprintf("serving/place/%d", number))
	return random.IntN(s.prompt.tokens()), random.IntN(s.decode.tokens())
}
